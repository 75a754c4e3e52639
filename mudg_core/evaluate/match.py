"""Which class of a target a class of a dataset is: by name, as people write the same name differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mudg_core.dataset.warning import TargetWarning
from mudg_core.errors import InputError
from mudg_core.target.class_names import name_key

SHOWN = 5


@dataclass(frozen=True)
class Matching:
    """`labels[i]` is the target's label of the dataset's class i; None if the target has no such class."""

    labels: tuple[int | None, ...]
    unknown: tuple[str, ...]


def match(
    names: Sequence[str], classes: Sequence[str], synonyms: Mapping[str, Sequence[str]], where: str, tree: str
) -> Matching:
    """A class's own name wins over a looser spelling, and that over a synonym; what fits two classes fits
    none. A dataset that shares no class with the target is a mistake."""
    own = enumerate(classes)
    others = [(label, name) for label, owner in enumerate(classes) for name in synonyms.get(owner, ())]
    spellings = [{name_key(name): label for label, name in own}, _loose(enumerate(classes)), _loose(others)]
    labels = [
        next((known[key] for known, key in zip(spellings, _keys(name), strict=True) if key in known), None)
        for name in names
    ]
    unknown = tuple(name for name, label in zip(names, labels, strict=True) if label is None)
    if len(unknown) == len(names):
        raise InputError(
            what=f"no evaluation image found: {_summary(unknown)} among the classes of the target",
            where=where,
            fix=f"use class names of the dataset, give its names as `synonyms`, or lay it out as {tree}",
        )
    return Matching(tuple(labels), unknown)


def warn_of_unmatched(unknown: Sequence[str], empty: Sequence[str]) -> list[TargetWarning]:
    """Classes of the dataset that the target lacks, and classes of the target without evaluation images."""
    warnings = []
    if unknown:
        message = (
            f"{_many(len(unknown), 'of the evaluation data is', 'of the evaluation data are')} not among the "
            "target's, so images of them are left out. If one is there under another name, give the "
            "dataset's name among the `synonyms`."
        )
        warnings.append(TargetWarning("unmatched", tuple(unknown), message, {"classes": len(unknown)}))
    if empty:
        message = (
            f"{_many(len(empty), 'has', 'have')} no evaluation image: accuracies say nothing about them. "
            "Other images can still be taken for them, and then count as wrong."
        )
        warnings.append(TargetWarning("unmeasured", tuple(empty), message, {"classes": len(empty)}))
    return warnings


def _many(number: int, one: str, more: str) -> str:
    return f"{number:,} {'class' if number == 1 else 'classes'} {one if number == 1 else more}"


def _keys(name: str) -> tuple[str, str, str]:
    return name_key(name), plain(name), plain(name)


def _loose(named: Iterable[tuple[int, str]]) -> dict[str, int]:
    """Labels by their plain names, without names that two classes share."""
    labels_of: dict[str, set[int]] = {}
    for label, name in named:
        labels_of.setdefault(plain(name), set()).add(label)
    return {name: min(labels) for name, labels in labels_of.items() if len(labels) == 1}


def _summary(names: Sequence[str]) -> str:
    if not names:
        return "no folder or list of classes is there, so none is"
    few = ", ".join(repr(name[:60]) for name in names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    return f"none of its {len(names):,} classes ({few}) is"


def plain(name: str) -> str:
    """Without case, and `_` or `-` as spaces."""
    return name_key(name.replace("_", " ").replace("-", " "))
