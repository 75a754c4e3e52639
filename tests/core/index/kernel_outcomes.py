"""What an index decides in a world full of ties: `test_index_every_kernel.py` runs this as on several CPUs.

Images, texts and centroids come in turns (see `tests/core/kernel_outcomes.py`): crowds of them tie, while a
float32 product of each rounds in a way of its own.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from mudg_core.index import ivf, kmeans
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.kmeans import Clustering, LocalPool, PairShard
from mudg_core.index.nearest_cell import assign
from mudg_core.index.neighbors import nearest
from mudg_core.index.part import Placement, spill
from mudg_core.index.recall import recall_at
from mudg_core.index.router import RouterFit, first_cells, fit
from mudg_core.index.routing import Probing
from mudg_core.index.search import Searcher, merge, read_part
from mudg_core.index.variants import trial
from tests.core.index.making import Float32, Int64
from tests.core.kernel_outcomes import crowd, even
from tests.support.kernels import show

CELLS, IMAGES, TEXTS = 24, 640, 160
CODES = ("flat", "fp16", "sq8", "sq4")


@cache
def images() -> Float32:
    """Turns, and copies of some of them."""
    return np.concatenate([crowd(8, 70, 1), crowd(8, 10, 1)])


@cache
def texts() -> Float32:
    """Half of them like all turns of an image alike."""
    return np.concatenate([even(TEXTS // 2, 2), crowd(4, TEXTS // 8, 3)])


def centroids(shards: int = 1) -> Clustering:
    """Trained on pairs cut into shards, not at tiles."""
    pairs = images(), texts()[np.arange(IMAGES) % TEXTS]
    parts = np.array_split(np.arange(IMAGES), shards)
    pool = LocalPool([PairShard(pairs[0][part], pairs[1][part]) for part in parts])
    return kmeans.train(pool, Clustering(images()[:CELLS], ()), 3)


@cache
def level() -> Coarse:
    centring = Centring(images()[:8].mean(axis=0), texts()[-8:].mean(axis=0))
    return Coarse.unrouted(centring, np.concatenate([even(8, 4), crowd(1, CELLS - 8, 5)]))


@cache
def tied() -> Coarse:
    """Nothing is taken away, so that half of the texts are as near to each cell as to every other."""
    nothing = np.zeros_like(images()[0])
    return Coarse.unrouted(Centring(nothing, nothing), crowd(1, CELLS, 5))


@cache
def home() -> Placement:
    return Placement(np.arange(IMAGES), level().cells_of(images()))


@cache
def neighbors() -> Int64:
    return nearest(texts(), images(), np.arange(IMAGES), 10).rows


@cache
def routed() -> RouterFit:
    return fit(level(), texts(), home().homes(neighbors()), 0)


@cache
def spilled() -> Placement:
    return spill(home(), neighbors(), *first_cells(routed().coarse, texts()), 0.1)


def cells() -> list[object]:
    """Of centroids that tie, and of shards of one image."""
    whole = home().cells
    each = [int(level().cells_of(images()[row : row + 1])[0]) for row in range(0, IMAGES, 40)]
    assert each == whole[::40].tolist()
    return [whole.tolist(), assign(texts(), level().centroids).tolist(), tied().cells_of(texts()).tolist()]


def trained() -> list[object]:
    one, four, many = (centroids(shards) for shards in (1, 4, 37))
    assert one.centroids.tobytes() == four.centroids.tobytes() == many.centroids.tobytes()
    objectives = [[str(step.kmeans), str(step.cross_modal)] for step in one.history]
    return [one.centroids.view(np.int32).tolist(), objectives]


def router() -> list[object]:
    fitted = routed()
    weights = [fitted.coarse.weights.view(np.int32).tolist(), fitted.coarse.bias.view(np.int32).tolist()]
    return [*weights, [str(loss) for loss in fitted.losses]]


def placement() -> list[list[int]]:
    first, sure = first_cells(routed().coarse, texts())
    return [first.tolist(), sure.view(np.int32).tolist(), spilled().rows.tolist(), spilled().cells.tolist()]


def chosen() -> list[object]:
    sizes, every = spilled().sizes(CELLS), []
    for coarse in (level(), level().for_images(), routed().coarse, tied()):
        for probing in (Probing(1), Probing(5), Probing(20), Probing(20, 0.6, 0.7), Probing(20, 0.9)):
            every.append(coarse.choose(texts(), sizes, probing).tolist())
    return every


def variant() -> list[str]:
    levels = {"centred": (level(), home()), "spilled": (routed().coarse, spilled())}
    return [
        str(trial(name, *made, texts()[:40], neighbors()[:40], 0.7).curve) for name, made in levels.items()
    ]


@cache
def parts(code: str, many: int) -> list[Any]:
    """Blanks are trained and filled here, so what faiss encodes is compared as well."""
    found = []
    for part in np.array_split(np.arange(IMAGES), many):
        here = np.isin(spilled().rows, part)
        rows, own = spilled().rows[here], spilled().cells[here]
        found.append(ivf.populate(ivf.blank(code, CELLS, images()), [(rows, own, images()[rows])]))
    return found


def hits(code: str) -> list[object]:
    """One part, three, and three that are read apart; quick and exact; in a batch and one by one."""
    probing, every, rows = Probing(8, 0.9, 0.7), [], []
    for many in (1, 3):
        searcher = Searcher(routed().coarse, parts(code, many), images().__getitem__, spilled=True)
        for rerank in (0, 40):
            quick = searcher.search(texts(), 30, probing, rerank).hits
            exact = searcher.search(texts(), 30, probing, rerank, exact=True).hits
            alone = [searcher.search(texts()[[line]], 30, probing, rerank).hits.rows[0] for line in (0, 150)]
            assert (quick.rows == exact.rows).all() and (quick.rows[[0, 150]] == np.stack(alone)).all()
            rows.append(quick.rows.tolist())
            every += [rows[-1], exact.cosines.view(np.int32).tolist()]
    assert rows[:2] == rows[2:], "any number of parts"
    read = searcher.choose(texts(), probing)
    apart = merge([read_part(part, texts(), read, 30, True) for part in parts(code, 3)], 30)
    assert apart.rows.tolist() == rows[0]
    found = np.array(rows[0])
    return [*every, [str(recall_at(found, neighbors(), k).to_json()) for k in (1, 10)]]


def codes(code: str) -> list[list[int]]:
    """Bytes of a trained code and of what it encodes."""
    found = []
    for cell in range(CELLS):
        lists = parts(code, 1)[0].invlists
        size = lists.list_size(cell) * lists.code_size
        found.append(ivf.faiss.rev_swig_ptr(lists.get_codes(cell), size).tolist())
    return found


OUTCOMES = {
    "cells": cells,
    "centroids": trained,
    "router": router,
    "spill": placement,
    "chosen cells": chosen,
    "variant": variant,
    **{f"rows of {code}": lambda code=code: hits(code) for code in CODES},
    **{f"bytes of {code}": lambda code=code: codes(code) for code in CODES},
}

if __name__ == "__main__":
    show(OUTCOMES)
