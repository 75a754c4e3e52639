"""Pictures from strangers: upright RGB, or refused with a reason.

Pillow's own `Image.open` is not used, because what it makes of a bomb or of broken metadata depends on how
the process treats warnings, which threads share. Its format classes are called directly instead, on content
and never on a name, and every limit is judged from the header, before memory is taken for pixels.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

EMPTY = "image: empty"
TOO_MANY_BYTES = "image: too many bytes"
TOO_MANY_PIXELS = "image: too many pixels"
TOO_MANY_SCANS = "image: too many scans"
PACKED_BMP = "image: run-length encoded BMP"
TOO_SMALL = "image: too small"
TOO_LONG = "image: too long and thin"
TRUNCATED = "image: truncated"
DAMAGED = "image: damaged"
ANIMATED = "image: animated"
OTHER_FORMAT = "image: format not supported"
NOT_AN_IMAGE = "image: not an image"
HTML, SVG, XML = (f"{NOT_AN_IMAGE} ({kind})" for kind in ("html", "svg", "xml"))

MAX_SCANS = 64  # of a JPEG: encoders make a dozen, each walks through all pixels, and twelve bytes are one
_HARMLESS_WORK = 2e10  # bytes times pixels below which even a JPEG that is all scans takes about a second
_SLOW_DECODER = "bmp_rle"  # of Pillow, in Python: half a second a megabyte, for a kind that is rare
_HEAD = 1024
_GREY_16 = ("I;16", "I;16B", "I;16L", "I")
_OTHER_MAGIC = (b"II*\0", b"MM\0*", b"8BPS", b"\0\0\1\0", b"\xff\x0a", b"\0\0\0\x0cJXL ", b"\0\0\0\x0cjP  ")
_ORIENTATION = 274
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Refused(Exception):
    """A picture that is not taken. `reason` is one of the phrases above, so that refusals can be counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Limits:
    max_bytes: int = 32 * 2**20
    max_pixels: int = 64_000_000
    max_aspect: float = 50.0
    min_side: int = 1


DEFAULT_LIMITS = Limits()


def decode(data: bytes, limits: Limits = DEFAULT_LIMITS, shortest: int | None = None) -> Image.Image:
    """The picture in `data` as upright RGB, fully loaded. Raises `Refused`, and only that, for a bad one.

    Whoever makes it smaller anyway may say what its shorter side must be at least (`shortest`): a JPEG is
    then halved while it is decoded, once or more, which saves most of the time that a camera's photo takes.
    """
    return decode_measured(data, limits, shortest)[0]


def decode_measured(
    data: bytes, limits: Limits = DEFAULT_LIMITS, shortest: int | None = None
) -> tuple[Image.Image, tuple[int, int]]:
    """The same, and the size of the upright picture before any halving."""
    if not data:
        raise Refused(EMPTY)
    if len(data) > limits.max_bytes:
        raise Refused(TOO_MANY_BYTES)
    try:
        image = _read_header(data, limits)
        size = image.size
        if shortest is not None and isinstance(image, JpegImageFile):
            _halve(image, shortest)
        upright, is_turned = _upright(image)
        return upright, size[::-1] if is_turned else size
    except (Refused, MemoryError):  # the latter is the machine's fault, not the picture's
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise Refused(TOO_MANY_PIXELS) from error
    except Exception as error:  # decoders raise almost anything on bytes that were made to hurt them
        raise Refused(TRUNCATED if "truncated" in str(error).lower() else DAMAGED) from error


def _read_header(data: bytes, limits: Limits) -> ImageFile:
    """The picture's header, judged; no pixel is decoded yet."""
    opener = _format(data)[1]
    if opener is WebPImageFile:
        _check_webp(data, limits)
    elif opener is PngImageFile and _is_apng(data):
        raise Refused(ANIMATED)
    image = opener(io.BytesIO(data))
    _check_size(image.size, limits)
    if getattr(image, "is_animated", False):
        raise Refused(ANIMATED)
    if opener is _Jpeg and _has_too_many_scans(data, image.width * image.height):
        raise Refused(TOO_MANY_SCANS)
    if any(tile[0] == _SLOW_DECODER for tile in image.tile):
        raise Refused(PACKED_BMP)
    return image


def _halve(image: JpegImageFile, shortest: int) -> None:
    """Has the decoder skip the finest waves: by 2, 4 or 8, as much as leaves `shortest` pixels."""
    short = min(image.size)
    wide, high = (-(-side * shortest // short) for side in image.size)
    image.draft(None, (wide, high))


class _Jpeg(JpegImageFile):
    """Pillow parses all of EXIF for a resolution that nobody asks for here, and warns when it is broken.

    As a plain JPEG, a camera's multi-picture file gives its first picture.
    """

    def _read_dpi_from_exif(self) -> None:
        pass


_FORMATS: tuple[tuple[bytes, str, Callable[[io.BytesIO], ImageFile]], ...] = (
    (b"\xff\xd8\xff", "jpg", _Jpeg),
    (b"\x89PNG\r\n\x1a\n", "png", PngImageFile),
    (b"GIF87a", "gif", GifImageFile),
    (b"GIF89a", "gif", GifImageFile),
    (b"BM", "bmp", BmpImageFile),
)


def _format(data: bytes) -> tuple[str, Callable[[io.BytesIO], ImageFile]]:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "webp", WebPImageFile
    for magic, suffix, opener in _FORMATS:
        if data.startswith(magic):
            return suffix, opener
    raise Refused(_what_else(data[:_HEAD]))


def suffix_of(data: bytes) -> str:
    """What the name of a file with this picture should end in. Raises `Refused` for other bytes."""
    return _format(data)[0]


def _what_else(head: bytes) -> str:
    """Why bytes that are none of our formats are refused: most are the error page of a web server."""
    if head.startswith(_OTHER_MAGIC) or head[4:8] == b"ftyp":
        return OTHER_FORMAT
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not text.startswith(b"<"):
        return NOT_AN_IMAGE
    if b"<html" in text or b"<!doctype html" in text or text.startswith((b"<head", b"<body")):
        return HTML
    if b"<svg" in text or b"<!doctype svg" in text:
        return SVG
    return XML if text.startswith(b"<?xml") else NOT_AN_IMAGE


def _check_size(size: tuple[int, int], limits: Limits) -> None:
    short, long = sorted(size)
    if short * long > limits.max_pixels:
        raise Refused(TOO_MANY_PIXELS)
    if short < limits.min_side:
        raise Refused(TOO_SMALL)
    if long > short * limits.max_aspect:
        raise Refused(TOO_LONG)


def _check_webp(data: bytes, limits: Limits) -> None:
    """Its decoder takes memory for the whole canvas as soon as it is made, so the header is read here."""
    if len(data) < 30 or len(data) < 8 + int.from_bytes(data[4:8], "little"):
        raise Refused(TRUNCATED)
    kind, size = data[12:16], None
    if kind == b"VP8X":
        size = 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    elif kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        size = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        size = width & 0x3FFF, height & 0x3FFF
    if size is None:
        raise Refused(DAMAGED)
    _check_size(size, limits)


def _has_too_many_scans(data: bytes, pixels: int) -> bool:
    return len(data) * pixels > _HARMLESS_WORK and data.count(b"\xff\xda") > MAX_SCANS


def _is_apng(data: bytes) -> bool:
    """Whether a PNG declares other than one frame; of a senseless declaration Pillow would only warn."""
    _, declared, rest = data[: data.find(b"IDAT")].partition(b"acTL")
    return bool(declared) and (b"acTL" in rest or rest[:4] != b"\0\0\0\1")


def _upright(image: ImageFile) -> tuple[Image.Image, bool]:
    """The picture as it is meant to be seen, and whether its sides have changed places for that."""
    rgb = _rgb(image)
    exif = image.info.get("exif")  # only now: a PNG may have it behind its pixels
    number = _orientation(exif) if exif else 0
    turn = _UPRIGHT.get(number)
    return (rgb, False) if turn is None else (rgb.transpose(turn), number >= 5)


def _rgb(image: ImageFile) -> Image.Image:
    """White shows through what is transparent: so it does on most web pages these pictures come from.

    Dropping alpha instead would uncover colours that nobody was meant to see, often black on black.
    """
    if image.mode in _GREY_16:  # Pillow would clip all but the darkest 256 shades; a clear shade is shown
        return image.convert("I").point(lambda shade: shade / 256).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    layered = image.convert("RGBA")
    flat = Image.new("RGB", image.size, "white")
    flat.paste(layered, mask=layered)
    return flat


def _orientation(exif: bytes) -> int:
    """The orientation in EXIF's first directory, or 0; broken EXIF says nothing."""
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return 0
    try:
        (start,) = struct.unpack_from(order + "L", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, start)
        for at in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(order + "HH", tiff, at)
            if tag == _ORIENTATION:
                return int(struct.unpack_from(order + ("L" if kind == 4 else "H"), tiff, at + 8)[0])
    except struct.error:
        pass
    return 0
