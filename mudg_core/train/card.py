"""The model card: what the classifier is, its lineage, its evaluation, and what is unknown.

Somebody who has the exported folder and nothing else has this page: it says what was measured, and what not.
Names in it are strangers' words, so they go through `plain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from mudg_core import __version__
from mudg_core.dataset.export.card import plain, table

CARD_FILE = "README.md"
MAX_CLASSES = 200
MAX_SOURCES = 50
MAX_WARNINGS = 50
ARMS = {"zero_shot": "zero-shot", "mudg": "finetuned"}
WAYS = {"single": "single prompt", "averaged": "averaged prompts"}


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
    parts = [
        f"# {plain(facts.target)}: a classifier made by mudg",
        _what(facts),
        f"## Usage\n\n{USE.strip()}",
        f"## Classes\n\n{_classes(facts)}",
        f"## Evaluation\n\n{_metrics(facts)}",
        f"## Gate\n\n{_gate(facts)}",
        f"## Lineage\n\n{_lineage(facts)}",
        f"## Licences\n\n{LICENCES.strip()}",
        f"## Training\n\n{_training(facts)}",
        f"## Warnings and limits\n\n{_limits(facts)}",
    ]
    return f"---\n{front_matter(facts)}---\n\n" + "\n\n".join(parts) + "\n"


def front_matter(facts: CardFacts) -> str:
    fields = {
        "library_name": "open_clip",
        "pipeline_tag": "zero-shot-image-classification",
        "tags": ["clip", "open_clip", "mudg", "pseudo-labels"],
        "license": "other",
        "license_name": "that-of-the-base-model",
        "mudg": {"version": __version__, "target": facts.target, "alpha": facts.alpha, **facts.made_from},
    }
    return str(yaml.safe_dump(fields, sort_keys=False, allow_unicode=True))


# A test runs this code as it stands, in an environment that has open_clip and nothing of ours.
USE = """
With open_clip alone, in this folder:

```python
import json
from pathlib import Path

import open_clip
import torch
from PIL import Image
from safetensors.torch import load_file

model, _, preprocess = open_clip.create_model_and_transforms("local-dir:.")
facts = json.loads(Path("classes.json").read_text())
texts = load_file("classifier.safetensors")["single"]  # or "averaged"

image = preprocess(Image.open("image.jpg").convert("RGB")).unsqueeze(0)
with torch.inference_mode():
    cosines = model.eval().encode_image(image, normalize=True) @ texts.T
probabilities = (facts["temperature"]["single"] * cosines).softmax(dim=-1)[0]
best = int(probabilities.argmax())
print(facts["classes"][best], float(probabilities[best]))
```

`open_clip_model.safetensors` and `open_clip_config.json` are a model of open_clip like any other.
`classifier.safetensors` has one text feature for each class, from its plain prompt (`single`), and the mean
over its augmented prompts (`averaged`); `classes.json` has names, prompts and temperatures. The learnt soft
prompt is part of those features: texts that you encode yourself lack it. `mudg predict . image.jpg`
does the same, also for whole folders.
"""

LICENCES = """
- **Weights**: derived from the base model and under its licence, which mudg does not know.
- **Training images**: retrieved from the corpus. No licence of any of them is known. The provenance of the
  dataset artifact has the address of each (`mudg dataset export` writes it out).
- **mudg**, which made this: Apache-2.0.
"""

LIMITS = """
- It knows the classes above and nothing else: an image of something else gets one of them all the same, often
  with a high probability.
- The labels of the training images are pseudo-labels: a model gave them, and no person has checked them.
- Probabilities use the temperature of training; they are not calibrated.
- It inherits what CLIP learnt from the web: its biases, and its failures with text, counts and places.
"""


def _what(facts: CardFacts) -> str:
    about = f" {plain(facts.description)}" if facts.description else ""
    return (
        f"A CLIP model with a classifier for {len(facts.classes):,} classes.{about} {_weights(facts)} "
        f"Made by mudg {__version__} from class names alone: no labelled image was used."
    )


def _weights(facts: CardFacts) -> str:
    base = plain(facts.base)
    if facts.alpha == 0:
        return f"Its weights are the initial ones of {base} (zero-shot)."
    if facts.alpha == 1:
        return f"Its weights are those of {base}, finetuned on {sum(facts.images):,} retrieved images."
    return (
        f"Its weights are interpolated: alpha {facts.alpha:.2f} between those of {base} (0) and those "
        f"finetuned on {sum(facts.images):,} retrieved images (1)."
    )


def _classes(facts: CardFacts) -> str:
    lines = [(str(n), name, f"{facts.images[n]:,}") for n, name in enumerate(facts.classes[:MAX_CLASSES])]
    more = len(facts.classes) - MAX_CLASSES
    rest = f"\n\nand {more:,} more (`classes.json` has all)." if more > 0 else ""
    prompt = f'Prompt: "{plain(facts.template)}"; `images` are training images.\n\n'
    return prompt + table(lines, ("number", "class", "images")) + rest


def _metrics(facts: CardFacts) -> str:
    rows = [
        (f"{ARMS[arm]}, {WAYS[way]}", found["mean"], found["domains"])
        for arm, ways in facts.scores.items()
        for way, found in ways.items()
    ]
    if not rows:
        return "It was not evaluated: its target has no evaluation images."
    domains = list(rows[0][2])
    lines = [(name, f"{mean:.1f}", *(f"{by[domain]:.1f}" for domain in domains)) for name, mean, by in rows]
    text = "Accuracy in percent on the target's evaluation images, by domain; each domain counts the same "
    text += f"in the mean. Seed {facts.seed}.\n\n" + table(lines, ("", "mean", *map(plain, domains)))
    if len(facts.over_seeds) > 1:
        means = ", ".join(f"{mean:.1f}" for mean in facts.over_seeds)
        text += f"\n\nFinetuned, {WAYS['single']}, by seed: {means}."
    if 0 < facts.alpha < 1:
        text += f"\n\nThe weights in this folder are interpolated (alpha {facts.alpha:.2f}) and "
        text += "were not evaluated."
    return text


def _gate(facts: CardFacts) -> str:
    if facts.verdict is None:
        return "The gain of finetuning was not estimated: these are the finetuned weights."
    words = {
        True: "better than zero-shot",
        False: "not certainly better than zero-shot",
        None: "not estimated",
    }
    text = (
        f"Estimate without labels: finetuning is **{words[facts.verdict.better]}**. The exported weights are "
    )
    text += f"at alpha {facts.alpha:.2f} (0: zero-shot, 1: finetuned)."
    return text + "".join(f"\n- {plain(reason)}" for reason in facts.verdict.reasons)


def _lineage(facts: CardFacts) -> str:
    images = f"{sum(facts.images):,} images, chosen from a corpus of {facts.corpus_rows:,} rows in "
    images += f"{facts.corpus_shards:,} shards"
    shown = facts.origins[:MAX_SOURCES]
    origins = [(o.kind, o.name, f"{o.shards:,}", f"{o.images:,}") for o in shown]
    more = len(facts.origins) - len(shown)
    text = images + ":\n\n" + table(origins, ("kind", "source", "shards used", "images"))
    text += f"\n\nand {more:,} more sources." if more > 0 else ""
    base = [("base model", facts.base), ("sha256 of its configuration and weights", facts.base_digest)]
    return text + "\n\n" + table([*base, *facts.made_from.items()], ("", "artifact"))


def _training(facts: CardFacts) -> str:
    lines = [(name, str(value)) for name, value in sorted(facts.settings.items())]
    return table([("seed", str(facts.seed)), *lines], ("setting", "value"))


def _limits(facts: CardFacts) -> str:
    shown: Sequence[str] = facts.warnings[:MAX_WARNINGS]
    more = len(facts.warnings) - len(shown)
    lines = [f"- **Warning**: {plain(warning)}" for warning in shown]
    lines += [f"- and {more:,} more warnings."] if more > 0 else []
    return "\n".join([*lines, LIMITS.strip()])
