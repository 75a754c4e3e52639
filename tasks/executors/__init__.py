"""Prefect on Dask, and what it needs."""
