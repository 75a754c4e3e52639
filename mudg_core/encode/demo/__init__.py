"""The two small CLIP models of the demo world, and the script that trained them (`train.py`)."""
