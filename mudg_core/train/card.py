"""The model card: what the classifier is, its lineage, its evaluation, and what is unknown.

Somebody who has the exported folder and nothing else has this page: it says what was measured, and what not.
The page is `card.md.j2`. Names in it are strangers' words, so they go through `plain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mudg_core import __version__
from mudg_core.dataset.export.card import plain

CARD_FILE = "README.md"
MAX_CLASSES = 200
MAX_SOURCES = 50
MAX_WARNINGS = 50
ARMS = {"zero_shot": "zero-shot", "mudg": "finetuned"}
WAYS = {"single": "single prompt", "averaged": "averaged prompts"}
BETTER = {True: "better than zero-shot", False: "not certainly better than zero-shot", None: "not estimated"}


@dataclass(frozen=True)
class Origin:
    """One source of the corpus, and how much of the training set came from it."""

    kind: str
    name: str
    shards: int
    images: int


@dataclass(frozen=True)
class Verdict:
    """What was estimated without labels: whether the finetuned weights are better, and why so."""

    alpha: float
    better: bool | None  # none where it could not be estimated
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class CardFacts:
    """All that the card is made of. `scores` has accuracies in percent by arm and way ({"mean", "domains"}),
    of this very seed; without evaluation images there are none."""

    target: str
    classes: tuple[str, ...]
    template: str
    temperature: float
    base: str
    base_digest: str
    seed: int
    images: tuple[int, ...]  # for each class
    description: str = ""
    origins: tuple[Origin, ...] = ()
    corpus_rows: int = 0
    corpus_shards: int = 0
    made_from: Mapping[str, str] = field(default_factory=dict)  # stage -> stage/key
    settings: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    over_seeds: tuple[float, ...] = ()  # finetuned, one prompt a class: the mean of each seed
    verdict: Verdict | None = None
    warnings: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """How far the weights went from the initial (0) to the finetuned ones (1)."""
        return 1.0 if self.verdict is None else self.verdict.alpha


def card(facts: CardFacts) -> str:
    """Markdown with the front matter that the Hugging Face Hub reads."""
    from jinja2 import Environment, StrictUndefined  # commands that only name the file do without

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"plain": plain, "number": "{:,}".format}
    template = environment.from_string(Path(__file__).with_name("card.md.j2").read_text(encoding="utf-8"))
    rows = [
        (f"{ARMS[arm]}, {WAYS[way]}", score)
        for arm, ways in facts.scores.items()
        for way, score in ways.items()
    ]
    limits = {"MAX_CLASSES": MAX_CLASSES, "MAX_SOURCES": MAX_SOURCES, "MAX_WARNINGS": MAX_WARNINGS}
    return template.render(
        **vars(facts),
        **limits,
        alpha=facts.alpha,
        BETTER=BETTER,
        WAYS=WAYS,
        version=__version__,
        rows=rows,
        domains=list(rows[0][1]["domains"]) if rows else [],
        front_matter=_front_matter(facts),
    )


def _front_matter(facts: CardFacts) -> str:
    fields = {
        "library_name": "open_clip",
        "pipeline_tag": "zero-shot-image-classification",
        "tags": ["clip", "open_clip", "mudg", "pseudo-labels"],
        "license": "other",
        "license_name": "that-of-the-base-model",
        "mudg": {"version": __version__, "target": facts.target, "alpha": facts.alpha, **facts.made_from},
    }
    return str(yaml.safe_dump(fields, sort_keys=False, allow_unicode=True))
