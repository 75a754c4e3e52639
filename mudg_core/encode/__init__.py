"""Models and what they make of the corpus: unit vectors of images and texts."""

import mudg_core.encode.torchvision_ops  # noqa: F401  (before anything below here imports open_clip)
