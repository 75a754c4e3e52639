"""A picture whose EXIF was dropped gets its orientation back, and nothing else of it changes."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

from mudg_core.corpus.web.orientation import with_orientation
from tests.support.hostile_web import picture

TURNED = {2: "Mirrored horizontal", 3: "Rotated 180", 6: "Rotated 90 CW", 8: "Rotated 90 CCW"}


@pytest.mark.parametrize(("turn", "name"), TURNED.items())
def test_orientation_is_written_and_pixels_stay(turn: int, name: str) -> None:
    turned = with_orientation(picture(), json.dumps({"Image Orientation": name}))
    with Image.open(io.BytesIO(turned)) as image, Image.open(io.BytesIO(picture())) as before:
        assert image.getexif()[274] == turn
        assert image.tobytes() == before.tobytes()


@pytest.mark.parametrize(
    "exif",
    [None, "", "{}", '{"Image Orientation": "Horizontal (normal)"}', '{"Image Orientation": [1]}', "[", "[]"],
)
def test_without_one_the_bytes_stay(exif: str | None) -> None:
    assert with_orientation(picture(), exif) == picture()


def test_what_is_no_jpeg_stays() -> None:
    assert with_orientation(b"\x89PNG", '{"Image Orientation": "Rotated 180"}') == b"\x89PNG"
