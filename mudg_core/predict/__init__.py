"""A finished classifier at work: images in, classes with probabilities out. Start reading at `model.py`."""
