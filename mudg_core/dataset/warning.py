"""What a user should know about a target before trusting its classifier, in plain words and with numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

WARNINGS = "warnings.json"
Kind = Literal["absent", "twins", "few", "leaks", "unmatched", "unmeasured", "descriptors"]


@dataclass(frozen=True)
class TargetWarning:
    """One thing that is likely to be wrong with a target. The message also says what to do about it."""

    kind: Kind
    classes: tuple[str, ...]
    message: str
    numbers: Mapping[str, float] = field(default_factory=dict)


def write_warnings(warnings: Sequence[TargetWarning], folder: Path) -> None:
    lines = [asdict(warning) for warning in warnings]
    (folder / WARNINGS).write_text(json.dumps(lines, indent=1, ensure_ascii=False))


def read_warnings(folder: Path) -> list[TargetWarning]:
    lines = json.loads((folder / WARNINGS).read_text())
    return [TargetWarning(**{**line, "classes": tuple(line["classes"])}) for line in lines]


def warn_of_descriptors(queries: Mapping[str, Any]) -> list[TargetWarning]:
    """If Eq. 4 gives every descriptor of the pool the same loss, so that the tie-break alone chose some.

    `queries` is the content of `queries.json`.
    """
    pool, chosen = len(queries["scored"]), len(queries["descriptors"])
    losses = {item["loss"] for item in queries["scored"]}
    if len(losses) != 1 or pool <= chosen:
        return []
    groups, loss = crowded(queries["clusters"]), losses.pop()
    why = f"all {pool:,} of the pool pull {loss} of {groups} groups of similar classes together"
    if not groups:
        why = f"no two classes are in one group, so all {pool:,} of the pool have loss 0"
    message = (
        f"Eq. 4 could not choose descriptors: {why}. The smallest rise of their cosines chose, and then the "
        "order of the pool. Bring other phrases (augment.descriptors), or choose another method "
        "(augment.method)."
    )
    return [TargetWarning("descriptors", (), message, {"pool": pool, "loss": loss, "groups": groups})]


def crowded(clusters: Sequence[Sequence[str]]) -> int:
    """Clusters of two labels or more: the highest loss that a descriptor can have."""
    return sum(len(cluster) > 1 for cluster in clusters)


def warn_of_few(
    names: Sequence[str], candidates: Sequence[int], chosen: Sequence[int] | None, wanted: int, share: float
) -> list[TargetWarning]:
    """Classes with less than `share` of the images that were wanted, and at which step they were lost.

    `chosen` are the images of the finished training set, if there is one.
    """
    warnings = []
    for label, name in enumerate(names):
        there = int(candidates[label])
        kept = there if chosen is None else int(chosen[label])
        if min(there, kept) < share * wanted:
            numbers = {"candidates": there, "wanted": wanted}
            numbers |= {} if chosen is None else {"chosen": kept}
            warnings.append(TargetWarning("few", (name,), _few(name, there, kept, wanted, share), numbers))
    return warnings


def _few(name: str, there: int, kept: int, wanted: int, share: float) -> str:
    if there < share * wanted:
        return (
            f"'{name}' has only {there} candidate images, and {wanted} were wanted: other classes won the "
            "rest of what it finds, or it finds little. Raise dataset.neighbors, add images of it to the "
            "corpus, or leave the class out."
        )
    return (
        f"Of {there} candidates for '{name}' only {kept} images were kept, and {wanted} were wanted. The "
        "report says why each was rejected: lower dataset.min_cosine if they are good, or raise "
        "dataset.neighbors if links are dead."
    )
