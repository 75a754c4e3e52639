"""The tiny model."""

from tests.core.encode.tiny import loaded, tiny, tiny_folder

__all__ = ["loaded", "tiny", "tiny_folder"]
