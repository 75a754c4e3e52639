"""Good pictures of the kinds that are easily got wrong, all of one scene, and what they should look like."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from PIL import Image

from tests.support.hostile import encoded, png

RGB = tuple[int, int, int]
CORNERS: tuple[RGB, ...] = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255))
GREYS: tuple[RGB, ...] = ((0, 0, 0), (85, 85, 85), (170, 170, 170), (255, 255, 255))
SIDE = 32
TURNS = Image.Transpose
STORED = {  # how to store a picture that EXIF's orientation then puts right
    2: TURNS.FLIP_LEFT_RIGHT,
    3: TURNS.ROTATE_180,
    4: TURNS.FLIP_TOP_BOTTOM,
    5: TURNS.TRANSPOSE,
    6: TURNS.ROTATE_90,
    7: TURNS.TRANSVERSE,
    8: TURNS.ROTATE_270,
}


class Odd(NamedTuple):
    """A picture and the colours of its corners: upper left and right, lower left and right."""

    data: bytes
    corners: tuple[RGB, ...] = CORNERS


def scene(corners: tuple[RGB, ...] = CORNERS) -> Image.Image:
    """Four squares of one colour each, so that every turn and every swap of channels shows."""
    image = Image.new("RGB", (2 * SIDE, 2 * SIDE))
    for number, colour in enumerate(corners):
        left, top = SIDE * (number % 2), SIDE * (number // 2)
        image.paste(colour, (left, top, left + SIDE, top + SIDE))
    return image


def odd_images() -> dict[str, Odd]:
    return _turned() | _layered() | _inked() | _grey() | _described()


def _turned() -> dict[str, Odd]:
    return {
        f"{kind} stored turned {number}": Odd(
            encoded(scene().transpose(turn), kind, exif=orientation(number))
        )
        for number, turn in STORED.items()
        for kind in ("JPEG", "PNG", "WEBP")
    }


def orientation(number: int, order: str = "<", kind: int = 3) -> bytes:
    """EXIF that says nothing else; `kind` 3 is a short number, 4 a long one."""
    value = struct.pack(order + ("L" if kind == 4 else "Hxx"), number)
    start = b"II*\0" if order == "<" else b"MM\0*"
    return b"Exif\0\0" + start + struct.pack(order + "LHHHL", 8, 1, 274, kind, 1) + value + bytes(4)


def _layered() -> dict[str, Odd]:
    """The last corner is transparent, over black that must not show."""
    mask = Image.new("L", (2 * SIDE, 2 * SIDE), 255)
    mask.paste(0, (SIDE, SIDE, 2 * SIDE, 2 * SIDE))
    rgba, grey = (scene((*corners[:3], (0, 0, 0))) for corners in (CORNERS, ((90, 90, 90), *GREYS[1:])))
    rgba.putalpha(mask)
    grey.putalpha(mask)
    greys = ((90, 90, 90), *GREYS[1:])
    palette = rgba.convert("RGB").quantize(4)
    clear = palette.getpixel((2 * SIDE - 1, 2 * SIDE - 1))
    alphas = bytes(0 if index == clear else 255 for index in range(4))
    return {
        "RGBA PNG": Odd(encoded(rgba, "PNG")),
        "RGBA WEBP": Odd(encoded(rgba, "WEBP", lossless=True)),
        "LA PNG": Odd(encoded(grey.convert("LA"), "PNG"), greys),
        "palette PNG with a clear colour": Odd(encoded(palette, "PNG", transparency=clear)),
        "palette PNG with alphas": Odd(encoded(palette, "PNG", transparency=alphas)),
        "palette GIF with a clear colour": Odd(encoded(palette, "GIF", transparency=clear)),
        "RGB PNG with a clear colour": Odd(encoded(rgba.convert("RGB"), "PNG", transparency=(0, 0, 0))),
        "grey PNG with a clear shade": Odd(encoded(grey.convert("L"), "PNG", transparency=0), greys),
    }


def _inked() -> dict[str, Odd]:
    """Pillow writes CMYK as Adobe does; YCCK is that with its colours as luma and chroma, and a mark."""
    ink = scene().convert("CMYK")
    *colours, black = ink.split()
    turned = [
        plane.point(lambda value: 255 - value)
        for plane in Image.merge("RGB", colours).convert("YCbCr").split()
    ]
    ycck = encoded(Image.merge("CMYK", [*turned, black]), "JPEG", quality=95)
    mark = ycck.index(b"Adobe") + 11
    return {
        "CMYK JPEG": Odd(encoded(ink, "JPEG", quality=95)),
        "YCCK JPEG": Odd(ycck[:mark] + b"\2" + ycck[mark + 1 :]),
    }


def _grey() -> dict[str, Odd]:
    grey = scene(GREYS).convert("L")
    deep = b"".join(b"\0" + bytes(byte for shade in row for byte in (shade, shade)) for row in _rows(grey))
    line = Image.new("L", (2 * SIDE, 2 * SIDE), 255)
    line.paste(0, (0, 0, SIDE, SIDE))
    side = 2 * SIDE
    return {
        "grey JPEG": Odd(encoded(grey, "JPEG", quality=95), GREYS),
        "grey PNG": Odd(encoded(grey, "PNG"), GREYS),
        "grey PNG of 16 bits": Odd(png(side, side, zlib.compress(deep), kind=b"\x10\x00"), GREYS),
        "grey BMP": Odd(encoded(grey, "BMP"), GREYS),
        "grey GIF": Odd(encoded(grey, "GIF"), GREYS),
        "PNG of one bit": Odd(encoded(line.convert("1"), "PNG"), (GREYS[0], *GREYS[3:] * 3)),
    }


def _rows(grey: Image.Image) -> list[bytes]:
    pixels = grey.tobytes()
    return [pixels[at : at + grey.width] for at in range(0, len(pixels), grey.width)]


def _described() -> dict[str, Odd]:
    """Notes that are broken or turn nothing."""
    jpeg = encoded(scene(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    return {
        "broken EXIF": Odd(jpeg),
        "EXIF that is not": Odd(encoded(scene(), "JPEG", exif=b"Exif\0\0nothing of the kind")),
        "EXIF cut short": Odd(encoded(scene(), "JPEG", exif=orientation(6)[:-12])),
        "upright": Odd(encoded(scene(), "JPEG", exif=orientation(1))),
        "turned by nine": Odd(encoded(scene(), "JPEG", exif=orientation(9))),
        "junk behind the end": Odd(encoded(scene(), "JPEG") + b"junk" * 100),
        "progressive": Odd(encoded(scene(), "JPEG", progressive=True)),
        "several pictures, as cameras write": Odd(
            encoded(scene(), "MPO", save_all=True, append_images=[scene(GREYS)])
        ),
    }
