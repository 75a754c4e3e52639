"""Our embedding of a corpus beside bare forward passes and clip-retrieval (`python -m benchmarks.embed`)."""
