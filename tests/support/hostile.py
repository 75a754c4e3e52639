"""Pictures and tars made to hurt, each with the reason for which it is refused.

They are meant to be fed through anything that reads what strangers wrote: whatever goes in, no good sample
beside them may be lost. `tests.support.odd` has good pictures of the kinds that are easily got wrong.
"""

from __future__ import annotations

import io
import random
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from tests.support.hostile_tars import tar_cases
from tests.support.raw_tar import END, sample

THRESHOLDS = {
    "below Pillow's": (8750, 8000),
    "at the first": (10_000, 10_000),
    "at the second": (16_000, 16_000),
}


class Hostile(NamedTuple):
    data: bytes
    reason: str


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    stored = io.BytesIO()
    image.save(stored, kind, **options)
    return stored.getvalue()


def noise(side: int = 64, seed: int = 0) -> Image.Image:
    return Image.frombytes("RGB", (side, side), random.Random(seed).randbytes(3 * side * side))


def hostile_images() -> dict[str, Hostile]:
    return _not_images() | _torn() | _animated() | bombs() | _broken()


def _not_images() -> dict[str, Hostile]:
    none, other = "image: not an image", "image: format not supported"
    return {
        "empty": Hostile(b"", "image: empty"),
        "text": Hostile(b"404 not found", none),
        "bytes": Hostile(bytes(range(256)) * 8, none),
        "html": Hostile(b"\r\n<!DOCTYPE html><html><svg></svg></html>", f"{none} (html)"),
        "html behind a mark": Hostile(b"\xef\xbb\xbf<HTML><BODY>gone</BODY></HTML>", f"{none} (html)"),
        "svg": Hostile(b'<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>', f"{none} (svg)"),
        "svg behind a prologue": Hostile(b'<?xml version="1.0"?>\n<!-- x -->\n<svg/>', f"{none} (svg)"),
        "xml": Hostile(b'<?xml version="1.0"?><Error>AccessDenied</Error>', f"{none} (xml)"),
        "tiff": Hostile(encoded(noise(), "TIFF"), other),
        "avif": Hostile(b"\0\0\0\x1cftypavif" + bytes(64), other),
        "polyglot": Hostile(b"GIF89a<script>alert(1)</script>", "image: damaged"),
        "too many bytes": Hostile(encoded(noise(), "JPEG") + bytes(32 * 2**20), "image: too many bytes"),
    }


def _torn() -> dict[str, Hostile]:
    whole = {kind: encoded(noise(), kind) for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP")}
    whole["progressive JPEG"] = encoded(noise(), "JPEG", progressive=True)
    return {
        f"{kind} cut at {part} %": Hostile(data[: len(data) * part // 100], "image: truncated")
        for kind, data in whole.items()
        for part in (30, 60, 95)
    }


def _animated() -> dict[str, Hostile]:
    frames = {"save_all": True, "append_images": [noise(seed=1)]}
    made = {f"animated {kind}": encoded(noise(), kind, **frames) for kind in ("GIF", "WEBP", "PNG")}
    made["PNG of no frame"] = png(1, 1, zlib.compress(bytes(4)), (b"acTL", bytes(8)))
    return {name: Hostile(data, "image: animated") for name, data in made.items()}


def bombs() -> dict[str, Hostile]:
    """Headers that claim more pixels than anyone has memory for, with next to nothing behind them."""
    return {
        f"{kind} bomb {threshold}": Hostile(data, "image: too many pixels")
        for threshold, size in THRESHOLDS.items()
        for kind, data in _claiming(*size).items()
    }


def _claiming(width: int, height: int) -> dict[str, bytes]:
    tiny = Image.new("RGB", (8, 8))
    jpeg, gif, bmp, webp = (encoded(tiny, kind) for kind in ("JPEG", "GIF", "BMP", "WEBP"))
    size, canvas = struct.pack("<HH", width, height), struct.pack("<II", width - 1, height - 1)
    frame = gif.index(b",\0\0\0\0") + 5
    sof = jpeg.index(b"\xff\xc0") + 5
    extended = b"VP8X\x0a\0\0\0\0\0\0\0" + canvas[:3] + canvas[4:7]
    return {
        "PNG": png(width, height, zlib.compress(bytes(100))),
        "JPEG": jpeg[:sof] + struct.pack(">HH", height, width) + jpeg[sof + 4 :],
        "BMP": bmp[:18] + struct.pack("<II", width, height) + bmp[26:],
        "GIF": gif[:6] + size + gif[10:],
        "GIF frame": gif[:frame] + size + gif[frame + 4 :],
        "WEBP": webp[:26] + size + webp[30:],
        "extended WEBP": b"RIFF" + struct.pack("<I", len(webp) + 10) + b"WEBP" + extended + webp[12:],
    }


def run_length(width: int, height: int) -> bytes:
    """A BMP of 256 colours (BI_RLE8), every pixel a run of its own: what costs a decoder most."""
    rows = (b"\1\7" * width + b"\0\0") * height + b"\0\1"
    start = 14 + 40 + 4 * 256
    file = struct.pack("<2sIHHI", b"BM", start + len(rows), 0, 0, start)
    picture = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(rows), 0, 0, 256, 0)
    return file + picture + bytes(4 * 256) + rows


def png(
    width: int, height: int, pixels: bytes, *extra: tuple[bytes, bytes], kind: bytes = b"\x08\x02"
) -> bytes:
    """A PNG of any claim; `kind` is bits a channel and colour type, `extra` are chunks before the pixels."""
    header = struct.pack(">II", width, height) + kind + bytes(3)
    chunks = ((b"IHDR", header), *extra, (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def many_scans(size: tuple[int, int], scans: int) -> bytes:
    """A progressive JPEG whose last scan, which refines one plane by nothing, comes again and again."""
    data = encoded(Image.new("RGB", size), "JPEG", progressive=True)
    last = data[data.rfind(b"\xff\xda") : -2]
    return data[:-2] + last * scans + data[-2:]


def _broken() -> dict[str, Hostile]:
    row = zlib.compress(bytes(4))
    text = b"Comment\0\0" + zlib.compress(bytes(2**22))
    return {
        "JPEG of many scans": Hostile(many_scans((1000, 1000), 3000), "image: too many scans"),
        "BMP in runs": Hostile(run_length(64, 64), "image: run-length encoded BMP"),
        "JPEG that is only a start": Hostile(b"\xff\xd8\xff\xe0", "image: damaged"),
        "PNG with a text bomb": Hostile(png(1, 1, row, (b"zTXt", text)), "image: damaged"),
        "PNG with a bad checksum": Hostile(
            png(1, 1, row).replace(b"\x08\x02", b"\x08\x00"), "image: damaged"
        ),
        "PNG without pixels": Hostile(png(4, 4, b""), "image: truncated"),
        "PNG of no height": Hostile(png(4, 0, row), "image: damaged"),
        "WEBP of nothing": Hostile(b"RIFF" + struct.pack("<I", 40) + b"WEBP" + bytes(36), "image: damaged"),
        "thread": Hostile(encoded(Image.new("RGB", (400, 2)), "PNG"), "image: too long and thin"),
    }


def hostile_tar(path: Path) -> list[tuple[str, str | None]]:
    """A tar of bad samples between good ones. Returns keys and reasons as they must come, None for good."""
    good = encoded(noise(), "JPEG")
    content, expected = b"", list[tuple[str, str | None]]()
    for number, case in enumerate(tar_cases(good)):
        content += sample(f"good{number}", good) + case.data
        expected += [(f"good{number}", None), (case.key, case.reason)]
    path.write_bytes(content + sample("last", good) + END)
    return [*expected, ("last", None)]
