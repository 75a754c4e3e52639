"""Our index beside others, on generated worlds and on the demo corpus (`python -m benchmarks.index`)."""
