"""How a training set is made, measured (`python -m benchmarks.dataset`)."""
