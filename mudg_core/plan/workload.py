"""How much of everything a run has: settings, and the four numbers that no setting says."""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.encode.models import model_config
from mudg_core.errors import InputError
from mudg_core.plan.towers import Towers, towers
from mudg_core.settings import AugmentSettings, Settings
from mudg_core.target.descriptor_pool import built_in, read_pool
from mudg_core.target.prompts import WAFFLES

USUAL_CLASSES = 10


@dataclass(frozen=True)
class Workload:
    """A corpus that is indexed once and one target that is searched for in it."""

    settings: Settings
    encoder: Towers  # f_index
    student: Towers
    pair_images: int  # searched for q(p)
    queries: int
    pool: int  # descriptors to choose from
    tested: int  # evaluation images

    @property
    def rows(self) -> int:
        return self.settings.corpus.rows

    @property
    def dim(self) -> int:
        return self.encoder.dim

    @property
    def pairs(self) -> int:
        """Texts that the centroids are trained on."""
        return min(self.rows, self.settings.index.training_texts)

    @property
    def cells(self) -> int:
        return self.settings.index.cells

    @property
    def block(self) -> int:
        """Rows that are in memory at once where shards stream by."""
        return min(self.rows, self.settings.corpus.rows_per_shard)

    @property
    def batch(self) -> int:
        """Images or texts in one forward pass of f_index."""
        return self.settings.encode.batch(self.settings.compute.device)

    @property
    def workers(self) -> int:
        return self.settings.compute.workers

    @property
    def classes(self) -> int:
        return -(-self.queries // queries_per_class(self.settings))

    @property
    def hits(self) -> int:
        return self.queries * self.settings.dataset.neighbors

    @property
    def candidates(self) -> int:
        """Images found, at most: no two queries share one."""
        return min(self.rows, self.hits)

    @property
    def picks(self) -> int:
        return min(self.candidates, self.classes * self.settings.dataset.per_class)

    @property
    def held_out(self) -> int:
        """Images that the gate judges by, at most: candidates that are not trained on."""
        gate = self.settings.gate
        each = max(1, min(gate.per_class, gate.images // self.classes))
        return min(self.candidates - self.picks, self.classes * each)


def workload(
    settings: Settings,
    queries: int | None = None,
    pair_images: int | None = None,
    pool: int | None = None,
    tested: int | None = None,
) -> Workload:
    """`pair_images` defaults to the whole corpus, which is what the index build searches for q(p); `tested`
    to as many as the demo has for each class in a domain."""
    rows = settings.corpus.rows
    if pair_images is not None and pair_images > rows:
        raise InputError(
            what=f"q(p) over {pair_images} images of a corpus of {rows}",
            fix="search at most the corpus, or raise corpus.rows",
        )
    queries = queries or USUAL_CLASSES * queries_per_class(settings)
    classes = -(-queries // queries_per_class(settings))
    return Workload(
        settings=settings,
        encoder=_towers(settings.encode.model),
        student=_towers(settings.train.model),
        pair_images=pair_images or rows,
        queries=queries,
        pool=pool or _pool(settings.augment),
        tested=classes * settings.evaluate.demo_images if tested is None else tested,
    )


def queries_per_class(settings: Settings) -> int:
    method = settings.augment.method
    if method == "none":
        return 1
    return WAFFLES if method.startswith("waffle") else settings.augment.count


def _towers(model: str) -> Towers:
    return towers(model_config(model), model)


def _pool(settings: AugmentSettings) -> int:
    there = len(read_pool(settings.descriptors) if settings.descriptors else built_in())
    return min(there, settings.pool or there)
