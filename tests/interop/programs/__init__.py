"""Programs that run in a peer's own environment: standard library, numpy and the peer, nothing else."""
