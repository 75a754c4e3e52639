"""Images from the web: links fetched by img2dataset (`download.py`), all through a guard (`guard.py`)."""
