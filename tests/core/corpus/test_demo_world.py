"""The demo web is reproducible row by row, and its dirt comes at the promised rates."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from mudg_core.corpus.demo import ABSENT_STYLES, CORPUS_STYLES, KIND_SHARES, DemoWorld, Truth
from mudg_core.corpus.demo.world import DemoRow
from mudg_core.errors import InputError

WORLD = DemoWorld(seed=7)
TRUTHS = [WORLD.truth(index) for index in range(12_000)]
ROWS = [WORLD.row(index) for index in range(900)]
SHARE_TOLERANCE = 0.01


def _digest(row: DemoRow) -> str:
    pixels = b"" if row.image is None else row.image.tobytes()
    return hashlib.sha256(pixels + f"{row.caption}|{row.url}|{row.truth}".encode()).hexdigest()


def _share(kept: list[bool]) -> float:
    return sum(kept) / len(kept)


def test_same_bytes_from_another_world_object_in_any_order() -> None:
    again = pickle.loads(pickle.dumps(DemoWorld(seed=7)))
    for index in (250, 3, 77, 0, 119):
        assert _digest(again.row(index)) == _digest(ROWS[index])


def test_same_bytes_from_another_process() -> None:
    script = (
        "import hashlib; from mudg_core.corpus.demo import DemoWorld\n"
        "for i in range(0, 60, 7):\n"
        "    r = DemoWorld(seed=7).row(i); p = b'' if r.image is None else r.image.tobytes()\n"
        "    print(hashlib.sha256(p + f'{r.caption}|{r.url}|{r.truth}'.encode()).hexdigest())"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [_digest(ROWS[index]) for index in range(0, 60, 7)]


def test_truth_needs_no_drawing_and_agrees_with_rows() -> None:
    assert [row.truth for row in ROWS] == TRUTHS[: len(ROWS)]


def test_another_seed_is_another_sample() -> None:
    assert _digest(DemoWorld(seed=8).row(0)) != _digest(ROWS[0])


def test_far_rows_and_big_seeds_work() -> None:
    world = DemoWorld(seed=2**60 + 1)
    assert world.row(2**40).url != world.row(2**40 + 1).url != world.row(1).url


@pytest.mark.parametrize("style", CORPUS_STYLES)
def test_style_shares(style: str) -> None:
    assert _share([truth.style == style for truth in TRUTHS]) == pytest.approx(CORPUS_STYLES[style], abs=0.04)


def test_absent_styles_are_absent() -> None:
    assert not {truth.style for truth in TRUTHS} & set(ABSENT_STYLES)


def test_kinds_are_long_tailed() -> None:
    counts = Counter(truth.kind for truth in TRUTHS if truth.kind)
    for kind, share in KIND_SHARES.items():
        assert counts[kind] / counts.total() == pytest.approx(share, abs=0.006)


def test_shares_of_dirt() -> None:
    assert _share([truth.hub for truth in TRUTHS]) == pytest.approx(0.03, abs=SHARE_TOLERANCE)
    copies = [truth.duplicate_of is not None for truth in TRUTHS]
    assert _share(copies) == pytest.approx(0.15, abs=SHARE_TOLERANCE)
    assert _share([truth.caption_is_wrong for truth in TRUTHS]) == pytest.approx(0.05, abs=SHARE_TOLERANCE)
    assert _share([row.image is None for row in ROWS]) == pytest.approx(0.03, abs=0.02)
    assert _share(["/gone/" in row.url for row in ROWS]) == pytest.approx(0.08, abs=0.03)
    assert all(row.url.startswith("https://images.demo.example/") for row in ROWS)


def test_copies_are_near_and_popularity_is_uneven() -> None:
    copies = [row for row in ROWS if row.truth.duplicate_of is not None and row.image is not None][:40]
    for row in copies:
        assert row.image is not None and row.truth.duplicate_of is not None
        original = np.asarray(WORLD.popular(row.truth.duplicate_of), dtype=np.float32)
        assert np.abs(np.asarray(row.image, dtype=np.float32) - original).mean() < 22
        assert row.truth.style in ("photo", "clipart")
    counts = Counter(truth.duplicate_of for truth in TRUTHS if truth.kind == "cat")
    del counts[None]
    assert counts.most_common()[0][1] > 3 * counts.most_common()[-1][1]


def test_hubs_show_no_single_kind() -> None:
    hubs = [row for row in ROWS if row.truth.hub]
    assert hubs and all(row.truth.kind is None and row.caption for row in hubs)


def test_wrong_captions_name_another_kind() -> None:
    wrong = [row for row in ROWS if row.truth.caption_is_wrong]
    assert _share([str(row.truth.kind) in row.caption.lower() for row in wrong]) < 0.1


def test_right_captions_mostly_name_the_kind() -> None:
    right = [row for row in ROWS if row.truth.kind and not row.truth.caption_is_wrong]
    assert _share([str(row.truth.kind) in row.caption.lower() for row in right]) > 0.75


def test_style_mix_can_be_chosen() -> None:
    truths: list[Truth] = [DemoWorld(1, style_weights={"neon": 1.0}).truth(index) for index in range(200)]
    assert {truth.style for truth in truths if truth.duplicate_of is None} == {"neon"}


def test_larger_pictures() -> None:
    image = DemoWorld(seed=1, size=96).portrait("cat", "photo", 0)
    assert image.size == (96, 96)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DemoWorld(1, size=32),
        lambda: DemoWorld(-1),
        lambda: DemoWorld(1, style_weights={"oil": 1.0}),
        lambda: DemoWorld(1, style_weights={}),
    ],
)
def test_impossible_worlds_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InputError):
        make()
