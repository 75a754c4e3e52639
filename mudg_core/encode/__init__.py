"""Models and what they make of the corpus: unit vectors of images and texts."""
