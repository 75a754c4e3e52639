"""Near copies: alike to the eye and to the model."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from mudg_core.corpus.demo.world import DemoWorld
from mudg_core.encode.duplicates import MAX_BITS, first_copies, perceptual_hashes

SAME = np.ones((100, 2), np.float16) / np.float16(np.sqrt(2))


def bits(one: int, other: int) -> int:
    return ((int(one) ^ int(other)) & (2**64 - 1)).bit_count()


def hash_of(image: Image.Image) -> int:
    return int(perceptual_hashes(np.array(image.convert("RGB"))[None])[0])


def saved_again(image: Image.Image) -> Image.Image:
    stored = io.BytesIO()
    image.resize((57, 57)).resize(image.size).save(stored, "JPEG", quality=60)
    return Image.open(stored)


def test_a_picture_saved_again_keeps_its_hash_and_others_have_another() -> None:
    world = DemoWorld(seed=0)
    pictures = [world.portrait(kind, "photo", 0) for kind in ("cat", "bus", "house", "apple")]
    hashes = [hash_of(picture) for picture in pictures]
    for picture, own in zip(pictures, hashes, strict=True):
        assert bits(own, hash_of(saved_again(picture))) <= MAX_BITS
        assert bits(own, hash_of(picture.point(lambda value: min(255, value + 10)))) <= MAX_BITS
        assert all(bits(own, other) > MAX_BITS for other in hashes if other != own)


def test_hashes_do_not_depend_on_the_batch() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 48, 48, 3), dtype=np.uint8)
    together = perceptual_hashes(pixels)
    assert together.tolist() == [int(perceptual_hashes(pixels[i : i + 1])[0]) for i in range(5)]
    assert perceptual_hashes(pixels[:0]).shape == (0,)


@pytest.mark.parametrize("flips", range(MAX_BITS + 3))
def test_copies_are_within_some_bits(flips: int) -> None:
    """Wherever the bits lie: the search by tables must miss none."""
    random = np.random.default_rng(flips)
    for _ in range(20):
        base = int(random.integers(-(2**63), 2**63 - 1))
        mask = sum(1 << int(place) for place in random.choice(64, flips, replace=False))
        other = ((base ^ mask) + 2**63) % 2**64 - 2**63
        far = ((base ^ (2**64 - 1)) + 2**63) % 2**64 - 2**63
        found = first_copies(np.array([far, base, other], np.int64), SAME[:3])
        assert found.tolist() == [0, 1, 1 if flips <= MAX_BITS else 2]


def test_the_first_of_a_chain_stands_for_all() -> None:
    chain = np.array([0, 0b1111111, 0b11111111111111], np.int64)  # each seven bits from the one before
    assert first_copies(chain, SAME[:3]).tolist() == [0, 0, 0]
    assert first_copies(chain[::-1].copy(), SAME[:3]).tolist() == [0, 0, 0]


def test_alike_to_the_eye_alone_is_no_copy() -> None:
    features = np.eye(3, dtype=np.float16)
    assert first_copies(np.zeros(3, np.int64), features).tolist() == [0, 1, 2]
    assert first_copies(np.zeros(3, np.int64), SAME[:3]).tolist() == [0, 0, 0]


def test_nothing() -> None:
    assert first_copies(np.zeros(0, np.int64), SAME[:0]).tolist() == []
