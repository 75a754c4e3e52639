"""Which way up a picture is, put back where re-encoding has dropped it.

img2dataset decodes without turning and stores without EXIF: the picture of a phone held upright lies on its
side. What the EXIF said is in its table, so it goes back into the file, which no second encoding spoils.
"""

from __future__ import annotations

import json
import struct

_TURNS = {
    "Mirrored horizontal": 2,
    "Rotated 180": 3,
    "Mirrored vertical": 4,
    "Mirrored horizontal then rotated 90 CCW": 5,
    "Rotated 90 CW": 6,
    "Mirrored horizontal then rotated 90 CW": 7,
    "Rotated 90 CCW": 8,
}
_START = b"\xff\xd8"
_ORIENTATION, _SHORT = 274, 3


def with_orientation(jpeg: bytes, exif: str | None) -> bytes:
    """The picture with the orientation that `exif` (img2dataset's, a JSON text) tells, if it tells one."""
    try:
        turn = _TURNS.get(json.loads(exif or "{}").get("Image Orientation"))
    except (ValueError, AttributeError, TypeError):
        turn = None
    if turn is None or not jpeg.startswith(_START):
        return jpeg
    return _START + _segment(turn) + jpeg[len(_START) :]


def _segment(turn: int) -> bytes:
    """APP1 with an EXIF directory of one entry."""
    directory = struct.pack(">HHHLHHL", 1, _ORIENTATION, _SHORT, 1, turn, 0, 0)
    content = b"Exif\0\0" + b"MM\0*" + struct.pack(">L", 8) + directory
    return b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content
