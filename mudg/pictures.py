"""Images as pictures: contact sheets, and HTML for notebooks that loads nothing from anywhere."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

SIDE, COLUMNS = 128, 8
MOST = 200  # pictures in one piece of HTML


def thumbnail(data: bytes, side: int = SIDE) -> Image.Image:
    """Decoded under the limits that hold for images of strangers."""
    from mudg_core.corpus.decode import decode

    return decode(data).resize((side, side))


def contact_sheet(images: Sequence[bytes], columns: int = COLUMNS) -> Image.Image:
    """The images in order, line by line."""
    from PIL import Image

    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (min(columns, len(images)) * SIDE, rows * SIDE), "white")
    for place, data in enumerate(images):
        sheet.paste(thumbnail(data), (place % columns * SIDE, place // columns * SIDE))
    return sheet


def gallery(title: str, pictures: Iterable[tuple[bytes | None, str]]) -> str:
    """HTML with a picture above each text; whatever the texts hold is text."""
    shown = [_figure(data, text) for data, text in list(pictures)[:MOST]]
    style = "display:flex;flex-wrap:wrap;gap:8px"
    return f'<div><b>{escape(title)}</b><div style="{style}">{"".join(shown)}</div></div>'


def _figure(data: bytes | None, text: str) -> str:
    picture = "" if data is None else f'<img width="{SIDE}" height="{SIDE}" src="{_data_uri(data)}">'
    caption = f'<figcaption style="font-size:11px;overflow-wrap:anywhere">{escape(text)}</figcaption>'
    return f'<figure style="margin:0;width:{SIDE}px">{picture}{caption}</figure>'


def _data_uri(data: bytes) -> str:
    stream = io.BytesIO()
    thumbnail(data).save(stream, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
