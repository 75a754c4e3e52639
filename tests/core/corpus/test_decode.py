"""Pictures of strangers are decoded right or refused with a reason, whatever they are."""

from __future__ import annotations

import io
import pickle
import random
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image, ImageChops, ImageFile, ImageOps
from PIL.BmpImagePlugin import BmpImageFile

from mudg_core.corpus import decode as module
from mudg_core.corpus.decode import Limits, Refused, decode
from tests.support.hostile import THRESHOLDS, Hostile, bombs, encoded, hostile_images, noise, png, run_length
from tests.support.odd import CORNERS, STORED, Odd, odd_images, orientation, scene

HOSTILE, ODD, BOMBS = hostile_images(), odd_images(), bombs()
PLAIN = [("JPEG", {}), ("JPEG", {"progressive": True}), ("PNG", {}), ("WEBP", {}), ("GIF", {}), ("BMP", {})]
TOLERANCE = 8  # of the lossy formats


def reason(data: bytes, limits: Limits | None = None) -> str | None:
    try:
        decode(data, limits or Limits())
    except Refused as refused:
        return refused.reason
    return None


def corners(image: Image.Image) -> list[tuple[int, ...]]:
    near, far = 8, image.width - 8
    return [image.getpixel(place) for place in ((near, near), (far, near), (near, far), (far, far))]  # type: ignore[misc]


def is_near(found: list[tuple[int, ...]], wanted: tuple[tuple[int, ...], ...]) -> bool:
    return all(
        abs(a - b) <= TOLERANCE
        for one, two in zip(found, wanted, strict=True)
        for a, b in zip(one, two, strict=True)
    )


@pytest.mark.parametrize(("kind", "options"), PLAIN)
@pytest.mark.parametrize("image", [noise(64), noise(33, seed=3).crop((0, 0, 33, 17))])
def test_plain_pictures_are_what_pillow_makes_of_them(
    image: Image.Image, kind: str, options: dict[str, bool]
) -> None:
    data = encoded(image, kind, **options)
    found = decode(data)
    assert found.mode == "RGB" and not isinstance(found, ImageFile.ImageFile)
    assert found.size == image.size
    assert found.tobytes() == Image.open(io.BytesIO(data)).convert("RGB").tobytes()


@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE.keys())
def test_f68_hostile_pictures_are_refused_with_their_reason(case: Hostile) -> None:
    assert reason(case.data) == case.reason


@pytest.mark.parametrize("case", ODD.values(), ids=ODD.keys())
def test_f68_odd_pictures_are_decoded_right(case: Odd) -> None:
    image = decode(case.data)
    assert image.mode == "RGB" and image.size == scene().size
    assert is_near(corners(image), case.corners)


@pytest.mark.parametrize("filters", ["error", "always", "ignore"])
@pytest.mark.parametrize("case", BOMBS.values(), ids=BOMBS.keys())
def test_f67_bombs_are_refused_whatever_becomes_of_warnings(
    case: Hostile, filters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda _: pytest.fail("pixels were decoded"))
    monkeypatch.setattr(Image.core, "new", lambda *_: pytest.fail("memory was taken"))
    with warnings.catch_warnings(record=filters == "always"):
        warnings.simplefilter(filters)  # type: ignore[arg-type]
        assert reason(case.data) == "image: too many pixels"


def test_f67_bombs_are_on_all_sides_of_both_thresholds() -> None:
    first = Image.MAX_IMAGE_PIXELS
    assert first is not None
    below, between, above = (width * height for width, height in THRESHOLDS.values())
    assert Limits().max_pixels < below < first < between < 2 * first < above


def test_f82_runs_of_a_bmp_are_not_decoded_in_python() -> None:
    """A file of 29 MB took 12 seconds."""
    image = BmpImageFile(io.BytesIO(run_length(8, 8)))
    image.load()
    assert image.size == (8, 8), "Pillow takes it"
    start = time.process_time()
    assert reason(run_length(4000, 3500)) == "image: run-length encoded BMP"
    assert time.process_time() - start < 1


def test_f67_pixels_are_counted_before_the_webp_decoder_takes_its_canvas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "WebPImageFile", lambda _: pytest.fail("the decoder was made"))
    for options in ({}, {"lossless": True}, {"exif": orientation(6)}):
        data = encoded(noise(64), "WEBP", **options)
        assert reason(data, Limits(max_pixels=64 * 64 - 1)) == "image: too many pixels"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(max_pixels=64 * 32), None),
        (Limits(max_pixels=64 * 32 - 1), "image: too many pixels"),
        (Limits(min_side=32), None),
        (Limits(min_side=33), "image: too small"),
        (Limits(max_aspect=2), None),
        (Limits(max_aspect=1.9), "image: too long and thin"),
    ],
)
@pytest.mark.parametrize(("kind", "options"), PLAIN)
def test_limits_hold_to_the_pixel(
    kind: str, options: dict[str, bool], limits: Limits, expected: str | None
) -> None:
    for box in ((0, 0, 64, 32), (0, 0, 32, 64)):
        assert reason(encoded(noise(64).crop(box), kind, **options), limits) == expected


def test_limit_of_bytes() -> None:
    data = encoded(noise(), "PNG")
    assert reason(data, Limits(max_bytes=len(data))) is None
    assert reason(data, Limits(max_bytes=len(data) - 1)) == "image: too many bytes"


@pytest.mark.parametrize(("kind", "options"), PLAIN)
def test_f68_a_picture_cut_anywhere_is_refused_or_whole(kind: str, options: dict[str, bool]) -> None:
    data = encoded(noise(24), kind, **options)
    whole = decode(data).tobytes()
    for length in range(len(data)):
        try:
            assert decode(data[:length]).tobytes() == whole, length  # all but the end mark was there
        except Refused as refused:
            assert refused.reason.startswith("image: ")


@pytest.mark.parametrize("number", STORED)
@pytest.mark.parametrize(("order", "kind"), [("<", 3), (">", 3), ("<", 4), (">", 4)])
def test_f68_orientation_is_read_as_pillow_reads_it(number: int, order: str, kind: int) -> None:
    data = encoded(noise(64).crop((0, 0, 64, 40)), "JPEG", exif=orientation(number, order, kind))
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    assert decode(data).size == expected.size
    assert decode(data).tobytes() == expected.tobytes()


def test_f68_a_png_may_say_behind_its_pixels_how_it_is_turned() -> None:
    turned = encoded(scene().transpose(STORED[6]), "PNG", exif=orientation(6))
    start, end = turned.index(b"eXIf") - 4, turned.index(b"IDAT") - 4
    chunk, tail = turned[start:end], turned.rindex(b"IEND") - 4
    moved = turned[:start] + turned[end:tail] + chunk + turned[tail:]
    assert is_near(corners(decode(moved)), CORNERS)


def test_f68_broken_exif_says_nothing_and_warns_of_nothing() -> None:
    tags = (
        b"Exif\0\0II*\0\x08\0\0\0\x02\0"
        + b"\x0f\x01\x02\0\xff\xff\xff\0\xff\xff\0\0"
        + b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
    )
    data = encoded(scene().transpose(STORED[6]), "JPEG", exif=tags)
    with pytest.raises(UserWarning, match="Tag data"):
        Image.open(io.BytesIO(data)).getexif()
    assert is_near(corners(decode(data)), CORNERS)


def test_white_shows_through_in_proportion() -> None:
    half = Image.new("RGBA", (8, 8), (0, 0, 0, 128))
    assert decode(encoded(half, "PNG")).getpixel((4, 4)) == (127, 127, 127)
    opaque = noise(16)
    opaque.putalpha(255)
    assert decode(encoded(opaque, "PNG")).tobytes() == noise(16).tobytes()


def test_sixteen_bits_keep_their_shades() -> None:
    shades = {
        0: 0,
        255: 0,
        256: 1,
        128 * 256: 128,
        255 * 256: 255,
        65535: 255,
    }  # the upper byte, as for colours
    row = b"\0" + b"".join(shade.to_bytes(2, "big") for shade in shades)
    image = decode(png(len(shades), 1, zlib.compress(row), kind=b"\x10\x00"))
    assert image.tobytes() == bytes(shade for shade in shades.values() for _ in range(3))


@pytest.mark.parametrize(("kind", "options"), PLAIN)
def test_damaged_bytes_never_raise_anything_else(kind: str, options: dict[str, bool]) -> None:
    dice = random.Random(7)
    data = encoded(noise(16), kind, **options)
    for _ in range(400):
        hurt = bytearray(data)
        for _ in range(dice.randint(1, 4)):
            hurt[dice.randrange(min(len(hurt), dice.choice((64, 4096))))] = dice.randrange(256)
        assert (reason(bytes(hurt), Limits(max_pixels=10_000)) or "image: ").startswith("image: ")


def test_threads_agree_with_each_other() -> None:
    cases = [case.data for case in (*HOSTILE.values(), *ODD.values()) if len(case.data) < 2**20]
    alone = [reason(data) for data in cases]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(reason, cases * 4)) == alone * 4


def test_no_switch_of_pillow_is_touched() -> None:
    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters)
    for case in HOSTILE.values():
        reason(case.data)
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters))
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


def test_lack_of_memory_is_not_the_fault_of_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", full)
    with pytest.raises(MemoryError):
        decode(encoded(noise(), "PNG"))


def test_refusals_cross_process_borders() -> None:
    copy = pickle.loads(pickle.dumps(Refused("image: truncated")))
    assert copy.reason == str(copy) == "image: truncated"


@pytest.mark.parametrize(
    ("size", "shortest", "found"),
    [
        ((640, 480), None, (640, 480)),
        ((640, 480), 480, (640, 480)),
        ((640, 480), 241, (640, 480)),
        ((640, 480), 240, (320, 240)),
        ((480, 640), 240, (240, 320)),
        ((640, 480), 64, (160, 120)),
        ((640, 480), 1, (80, 60)),
        ((97, 33), 10, (49, 17)),
        ((640, 480), 1000, (640, 480)),
    ],
)
def test_a_jpeg_is_halved_as_long_as_enough_is_left(
    size: tuple[int, int], shortest: int | None, found: tuple[int, int]
) -> None:
    data = encoded(noise(16).resize(size), "JPEG")
    assert decode(data, shortest=shortest).size == found


def test_only_jpegs_are_halved_and_limits_are_for_what_was_sent() -> None:
    image = noise(64)
    assert decode(encoded(image, "PNG"), shortest=8).size == (64, 64)
    with pytest.raises(Refused, match="too many pixels"):
        decode(encoded(image, "JPEG"), Limits(max_pixels=64 * 64 - 1), shortest=8)


def test_a_halved_picture_is_upright_and_looks_the_same() -> None:
    image = noise(8).resize((320, 320), Image.Resampling.BICUBIC)
    turned = image.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[274] = 6  # to be turned by 90 degrees clockwise when shown
    stored = io.BytesIO()
    turned.save(stored, "JPEG", quality=95, exif=exif)
    small = decode(stored.getvalue(), shortest=80)
    assert small.size == (80, 80)
    wanted = image.resize((80, 80), Image.Resampling.BOX)
    difference = ImageChops.difference(small, wanted)
    assert max(high for _, high in difference.getextrema()) < 24  # type: ignore[misc, operator]
