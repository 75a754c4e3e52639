"""What is decided in a world full of ties: `test_every_kernel.py` runs this as on several CPUs.

Vectors come in turns: each is another one with its coordinates moved along. So their true products tie, or
lie on a threshold, in crowds, while a float32 product of each rounds in a way of its own. The world itself is
made of whole numbers, square roots and quotients, and the same everywhere.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from PIL import Image

from mudg_core.dataset import absent_classes, confusable_classes, leaks
from mudg_core.dataset.cluster_selection import cluster_images, plan_selection
from mudg_core.dataset.fetch_filter_refill import CHOSEN, fetch_filter_refill
from mudg_core.dataset.image_map import nearest_to_prompts
from mudg_core.dataset.pseudo_labels import label_exactly
from mudg_core.dataset.selection_rules import BY_FEATURES, Images, Rule
from mudg_core.encode.duplicates import first_copies, perceptual_hashes
from mudg_core.evaluate.baselines import Cache, choose_weights
from mudg_core.evaluate.gate import judge
from mudg_core.evaluate.measures import answer, measure, score
from mudg_core.index.exact import same_exp, same_log
from mudg_core.predict.model import Model, best
from mudg_core.settings import DatasetSettings
from mudg_core.target.descriptor_selection import score as score_descriptors
from mudg_core.target.spec import Target
from tests.core.index.making import Float32, Int64
from tests.support.kernels import show

HALF, STEP = 257, 3  # coordinates of half a vector, and by how many a turn moves them
ALL = np.arange(240)


def numbers(rows: int, seed: int) -> Int64:
    """Two halves for each row."""
    return np.random.default_rng(seed).integers(-99, 100, (rows, 2, HALF))


def unit(halves: Int64 | np.ndarray[Any, np.dtype[np.float64]]) -> Float32:
    flat = halves.reshape(len(halves), -1).astype(np.float64)
    return np.asarray(flat / np.sqrt((flat * flat).sum(axis=1, keepdims=True)), np.float32)


def turned(vectors: Float32, turns: int) -> Float32:
    """Every vector in each of its turns, turn by turn."""
    halves = vectors.reshape(len(vectors), 2, HALF)
    return np.concatenate([np.roll(halves, STEP * turn, axis=2) for turn in range(turns)]).reshape(
        -1, 2 * HALF
    )


def crowd(bases: int, turns: int, seed: int) -> Float32:
    return turned(unit(numbers(bases, seed)), turns)


def even(rows: int, seed: int) -> Float32:
    """Vectors that no turn changes: all turns of an image have the same product with one of them."""
    return unit(np.repeat(numbers(rows, seed)[:, :, :1], HALF, axis=2))


def apart(cosine: float, bases: int, turns: int, seed: int) -> tuple[Float32, Float32]:
    """Pairs whose cosine is this one, as nearly as float32 can say it."""
    one = numbers(bases, seed)
    across = np.stack([one[:, 1], -one[:, 0]], axis=1)
    other = cosine * one + np.sqrt(1 - cosine**2) * across
    return turned(unit(one), turns), turned(unit(other), turns)


def order(method: str) -> Int64:
    features = crowd(3, 80, 1)
    images = Images(ALL, np.ones(240, np.int64), np.ones(240, np.float32), features)
    prompts = np.concatenate([even(4, 2), crowd(1, 3, 3)])
    return BY_FEATURES[method](images, Rule(method, 16, 0, prompts))


def plan() -> Int64:
    features = crowd(4, 60, 4)
    columns = {"row": ALL, "label": ALL % 3, "query": ALL % 3, "rank": ALL, "cosine": features[:, 0]}
    planned = plan_selection(pa.table(columns), features.__getitem__, Rule("cluster", 16, 0), threads=2)
    return np.stack([planned.column(name).to_numpy() for name in ("group", "quota", "turn")])


def ranks() -> Int64:
    """Labels by exact ranks, where every query likes all turns of an image alike."""
    hits = pa.table({"row": ALL, "label": ALL % 6, "query": ALL % 12})
    labels = label_exactly(hits, even(12, 20), crowd(4, 60, 21).__getitem__, 8).labelled
    return np.stack([labels.column(name).to_numpy() for name in ("row", "label", "query", "rank")])


def descriptors() -> list[object]:
    """Eq. 4 where a descriptor turns all labels alike: true losses are zero, float32 would see some rise."""
    bases = unit(numbers(24, 22))

    def encode(texts: Sequence[str]) -> Float32:
        said = [[*map(int, re.findall(r"\d+", text)), 0] for text in texts]
        return np.stack([turned(bases[[label]], 1 + turn)[-1] for label, turn, *_ in said])

    target = Target(name="t", classes=tuple(f"thing {number}" for number in range(24)))
    ranking = score_descriptors(
        target, [f"kind {turn}" for turn in range(20)], encode, label_clusters=6, seed=0
    )
    scored = [[one.descriptor, one.loss, *one.collapsed] for one in ranking.scored]
    return [scored, ranking.choose(8, 0.9), ranking.assigned.tolist()]


def pictures(features: Float32, hashed: bool, phash: int = 0) -> leaks.Pictures:
    count = len(features)
    names = np.arange(count).astype(object)
    files = np.array([""] * count, object)
    return leaks.Pictures(names, files, np.full(count, phash), np.full(count, hashed), features)


def leaked(cosine: float, hashed: bool, phash: int = 0) -> list[list[object]]:
    """Rows, images and reasons: where there is a hash, copies and lookalikes are told apart."""
    one, other = apart(cosine, 6, 30, 5)
    table = leaks.find_leaks([pictures(one, hashed, phash)], pictures(other, True))
    return [table.column(name).to_pylist() for name in ("row", "image", "why")]


def twin_pairs() -> list[list[int]]:
    """Labels that each know nine tenths of the other's images."""
    labels, means = turned(even(1, 6), 40), crowd(1, 40, 7)
    means *= np.sign((means * labels).sum(axis=1, keepdims=True))
    means[1::2] *= np.float32(0.9)
    found = confusable_classes.find_confusable_classes(
        labels, np.full((40, 1), -1), means, np.zeros(2 * HALF, np.float32)
    )
    return [[pair.one, pair.other] for pair in found]


def shares() -> Int64:
    """How many captions have no more support than each class."""
    captions = crowd(4, 60, 8)
    hits = (ALL[:40, None] * 7 + ALL[None, :16] * 11) % 240
    centre = absent_classes.mean_vector(captions)
    known = absent_classes.support(even(40, 9), hits, captions.__getitem__, centre)
    found = absent_classes.presence(even(40, 9), hits[::-1], known, centre, captions.__getitem__)
    return np.rint(found.share * (1 + len(known))).astype(np.int64)


def without_copies() -> Int64:
    one, other = apart(absent_classes.COPY, 4, 60, 10)
    features = np.concatenate([one, other])
    hits = (ALL[:, None] + np.array([[240, 1, 241]])) % 480
    return absent_classes.without_copies(ALL, hits, 2, features.__getitem__)


def kept() -> list[bool]:
    """Which images the filter by cosine leaves, where all have just the cosine it asks for."""
    texts, images = apart(0.3, 4, 60, 11)
    stored = io.BytesIO()
    Image.new("RGB", (4, 4)).save(stored, "PNG")
    zero = np.zeros(240, np.int64)
    columns = {"row": ALL, "label": zero, "group": ALL, "quota": zero + 1, "turn": zero}
    seen = iter(range(240))

    def embed(shown: Sequence[Image.Image]) -> Float32:
        return images[[next(seen) for _ in shown]]

    settings = DatasetSettings(min_cosine=0.3)
    filled = fetch_filter_refill(
        pa.table(columns),
        texts,
        lambda rows: ({row: stored.getvalue() for row in rows}, {}),
        embed,
        settings,
        required=False,
    )
    return [outcome == CHOSEN for outcome in filled.table.column("outcome").to_pylist()]


def classes() -> tuple[Float32, Int64, Float32]:
    """Images, labels and texts; of an image some classes are as likely as others."""
    return crowd(4, 60, 12), ALL % 6, np.concatenate([even(3, 13), crowd(1, 3, 14)])


def near_classes() -> tuple[Float32, Float32]:
    """Images that lie between two classes, one of which is another said with other numbers."""
    one, other = apart(0.0, 4, 60, 15)
    return unit((one + other).reshape(240, 2, HALF).astype(np.float64)), np.concatenate([one[:8], other[:8]])


def answers() -> list[list[int]]:
    images, truth, texts = classes()
    given = answer(images, truth, texts, 25.0)
    bins = measure({"": given}, 6).calibration.bins
    return [given.predicted.tolist(), given.above.tolist(), [one.images for one in bins]]


def predictions() -> list[list[int]]:
    images, texts = near_classes()
    model = Model(cast(Any, None), tuple(map(str, range(16))), texts, 25.0)
    return [[guess.label for guess in guesses] for guesses in best(model, images, 4)]


def cache() -> list[object]:
    images, labels, texts = classes()
    known = Cache.of(images[::2], labels[::2], texts, 25.0)
    weights = choose_weights(known, images[1::2], labels[1::2])
    return [str(weights), known.predict(images, weights).tolist()]


def accuracy() -> list[object]:
    images, texts = near_classes()
    found = score({"": images}, {"": ALL % 16}, texts)
    return [round(found.mean * 1000), [round(value * 1000) for value in found.classes]]


def verdict() -> list[object]:
    random = np.random.default_rng(0)
    logits = {alpha: random.integers(0, 3, (240, 6)).astype(np.float32) for alpha in (0.0, 0.5, 1.0)}
    found = judge(logits, ALL % 6, 0.0)
    return [str(found.alpha), found.better, [str(item.kappa) for item in found.estimates]]


def hashes() -> Int64:
    """Of pictures whose waves tie: each is its own mirror image along the diagonal."""
    every = []
    for side in (32, 57, 64, 224):
        tone = np.random.default_rng(side).integers(0, 256, (8, side, side))
        grey = np.triu(tone) + np.triu(tone, 1).transpose(0, 2, 1)
        every.append(perceptual_hashes(np.repeat(grey[..., None], 3, axis=3).astype(np.uint8)))
    return np.concatenate(every)


def copies() -> Int64:
    one, other = apart(0.95, 8, 30, 16)
    features = np.stack([one, other], axis=1).reshape(480, -1).astype(np.float16)
    return first_copies(np.arange(480) // 2 * 0x1234567, features)


OUTCOMES = {
    "clusters": lambda: cluster_images(crowd(6, 40, 17), 20, np.random.default_rng(0)),
    "plan": plan,
    **{method: lambda method=method: order(method) for method in BY_FEATURES},
    "copies of evaluation images": lambda: leaked(0.96, hashed=True, phash=0b11),
    "lookalikes": lambda: leaked(0.95, hashed=True),
    "lookalikes without a hash": lambda: leaked(0.98, hashed=False),
    "twins": twin_pairs,
    "absent": shares,
    "without copies": without_copies,
    "filter": kept,
    "exact ranks": ranks,
    "Eq. 4": descriptors,
    "map": lambda: nearest_to_prompts(ALL, ALL % 2, crowd(2, 120, 18).__getitem__, even(2, 19), 30),
    "accuracy": accuracy,
    "answers": answers,
    "predictions": predictions,
    "cache": cache,
    "gate": verdict,
    "hashes": hashes,
    "near copies": copies,
    "exp": lambda: same_exp(np.linspace(-60, 1, 9999)).view(np.int64),
    "log": lambda: same_log(np.linspace(1, 99, 9999)).view(np.int64),
}

if __name__ == "__main__":
    show(OUTCOMES)
