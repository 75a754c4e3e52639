"""Training and prediction beside the plain way to do them (`python -m benchmarks.train`)."""
