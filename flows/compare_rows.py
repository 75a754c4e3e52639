"""The rows of a comparison: a name, the group it stands in, and what it changes in a target's settings.

A row that only changes training shares its training set with `mudg`, and so on: the store knows what is made
already, so a row costs what is its own. To add a row, add a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from flows.build_classifier import NEAREST_NEIGHBOURS
from mudg_core.errors import InputError
from mudg_core.evaluate.comparison import METHOD, REFERENCE
from mudg_core.settings import PAPER, DatasetSettings, Json, TrainSettings

Kind = Literal["prompts", "trained", "cache", "few-shot"]
SHOTS = 16
CROSS_ENTROPY: Json = {"loss": "cross-entropy"}


@dataclass(frozen=True)
class Row:
    """One way to a classifier.

    `prompts`: zero-shot, averaged over the prompts that `changes` gives; `trained`: a student; `cache`: no
    training, but the images that MUDG trains on; `few-shot`: a student trained on labelled images.
    `by_lot`: prompts are drawn, for every seed anew. `own_index`: `changes` decide how the index is built.
    `paper` is the row's name among the paper's figures, where it has another.
    """

    name: str
    group: str
    about: str
    changes: Json = field(default_factory=dict)
    kind: Kind = "trained"
    by_lot: bool = False
    own_index: bool = False
    profile: str | None = None
    paper: str = ""

    @property
    def paper_name(self) -> str:
        return self.paper or self.name


def _prompts(name: str, about: str, method: str, *, by_lot: bool = False, paper: str = "") -> Row:
    changes = {"augment": {"method": method}}
    return Row(name, "prompts", about, changes, kind="prompts", by_lot=by_lot, paper=paper)


def _index(variant: str, probes: int | None) -> Row:
    narrow = "" if probes is None else f", reading {probes} cell a query"
    name = f"index-{variant}" + ("" if probes is None else f"-{probes}")
    changes = {"variant": variant} | ({} if probes is None else {"probes": probes})
    about = {"kmeans": "cells of plain k-means on images", "paired": "cells of paired k-means"}[variant]
    return Row(name, "index", about + narrow, {"index": changes}, own_index=True)


def _profile(name: str) -> Row:
    about = {"paper": "as the paper's text has it", "author-code": "as its authors' code has it"}[name]
    changes = {"index": PAPER["index"]}
    return Row(f"profile-{name}", "profiles", f"MUDG {about}", changes, own_index=True, profile=name)


SELECTIONS = [m for m in get_args(DatasetSettings.model_fields["select"].annotation) if m != "cluster"]
LOSSES = [name for name in get_args(TrainSettings.model_fields["loss"].annotation) if name != "diversity"]

ROWS: tuple[Row, ...] = (
    _prompts(REFERENCE, "the plain prompt", "none"),
    _prompts("templates", "an ensemble of handcrafted templates", "templates"),
    _prompts("waffle-words", "random words after the name", "waffle-words", by_lot=True, paper="waffle"),
    _prompts(
        "waffle-characters", "random letters after it", "waffle-characters", by_lot=True, paper="waffle"
    ),
    _prompts("random-descriptors", "descriptors of the pool, drawn by lot", "random", by_lot=True),
    _prompts("per-class-descriptors", "each class with its own phrases", "per-class"),
    _prompts("cupl", "each class with its own whole prompts", "cupl"),
    _prompts("adaptive", "descriptors that keep classes apart (Eq. 4)", "adaptive", by_lot=True),
    Row(METHOD, "retrieval", "the whole method, with the settings of this run"),
    Row(
        "nearest-neighbours",
        "retrieval",
        "the nearest images of plain prompts; filter and loss as in MUDG",
        NEAREST_NEIGHBOURS,
    ),
    Row(
        "nearest-neighbours-plain",
        "retrieval",
        "the same without a filter, by cross entropy",
        NEAREST_NEIGHBOURS
        | {"dataset": NEAREST_NEIGHBOURS["dataset"] | {"min_cosine": -1.0}, "train": CROSS_ENTROPY},
    ),
    Row("tip-adapter", "adapters", "a cache of MUDG's images, by likeness", kind="cache"),
    Row("tip-x", "adapters", "the same, and by likeness of doubt (as SuS-X)", kind="cache"),
    *(Row(f"select-{m}", "selection", f"images by {m}", {"dataset": {"select": m}}) for m in SELECTIONS),
    _index("kmeans", None),
    _index("paired", None),
    _index("kmeans", 1),
    _index("paired", 1),
    Row(
        "kmeans-cross-entropy",
        "index",
        "cells of plain k-means, and no diversity loss",
        {"index": {"variant": "kmeans"}, "train": CROSS_ENTROPY},
        own_index=True,
    ),
    Row("label-cosine", "labels", "of the query of the highest cosine", {"dataset": {"label": "cosine"}}),
    Row("augment-waffle", "augmentation", "random words", {"augment": {"method": "waffle-words"}}),
    Row("augment-random", "augmentation", "random descriptors", {"augment": {"method": "random"}}),
    Row("augment-none", "augmentation", "plain prompts alone", {"augment": {"method": "none"}}),
    *(Row(f"loss-{name}", "loss", f"trained by {name}", {"train": {"loss": name}}) for name in LOSSES),
    _profile("paper"),
    _profile("author-code"),
    Row("few-shot", "upper bound", f"{SHOTS} labelled images a class", kind="few-shot"),
)
GROUPS = tuple(dict.fromkeys(row.group for row in ROWS))


def chosen_rows(names: Sequence[str] = (), groups: Sequence[str] = ()) -> list[Row]:
    """All rows, or those named and those of the groups named; zero-shot is always there to compare with."""
    known = {row.name for row in ROWS}
    if unknown := [name for name in names if name not in known]:
        raise InputError(what=f"there is no row {unknown[0]!r}", fix=f"rows: {', '.join(sorted(known))}")
    if unknown := [name for name in groups if name not in GROUPS]:
        raise InputError(what=f"there is no group {unknown[0]!r}", fix=f"groups: {', '.join(GROUPS)}")
    if not names and not groups:
        return list(ROWS)
    return [row for row in ROWS if row.name in {*names, REFERENCE} or row.group in groups]
