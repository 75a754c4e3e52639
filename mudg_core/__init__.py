"""The method itself: pure functions and small classes over arrays, files and models.

Nothing in here imports Prefect or Dask, so every stage also runs in a notebook with no server.
"""

__version__ = "0.1.0"
