"""Programs that run in a peer's own environment: standard library, torch and the peer, nothing else."""

NAME, TAG = "mudg", "local"
CLIP_MODEL = f"open_clip:{NAME}/{TAG}"  # as clip-retrieval is told of a model of ours
