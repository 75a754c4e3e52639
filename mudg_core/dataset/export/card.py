"""The README of an export: what it is, where it came from, and what it is not.

Whoever comes upon the folder in a year must see that its labels were never checked by anybody, and that the
pictures belong to people who did not agree to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import yaml

from mudg_core.dataset.export.source import Source
from mudg_core.settings import Json

MAX_CLASSES = 200
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
HOW = {
    "imagefolder": "`torchvision.datasets.ImageFolder(folder)`; `classes.json` maps folders to class names.",
    "huggingface": '`datasets.load_dataset(folder, split="train")` gives `image` and `label` with its names.',
    "webdataset": (
        '`webdataset.WebDataset(files).decode("pil").to_tuple("jpg", "cls")`; '
        "`cls` is the number at the head of each folder name in `classes.json`."
    ),
}
WARNING = """\
> **The labels are pseudo-labels.** A model gave them to images that it found in a crawled pool. Nobody has
> looked at them: some are wrong, and some images are not what their class says.
>
> **The images belong to their owners.** They were found on the web and come without any licence. `url` says
> where each was found. Before you publish or share them, find out whether you may."""


def card(source: Source, to: str) -> str:
    """Markdown; with front matter, which the Hugging Face Hub reads, where the export is for it."""
    names = source.lineage["targets"]
    title = ", ".join(names) if names else f"{len(source.classes)} classes"
    parts = [
        f"# {plain(title)}: a training set made by mudg",
        f"{source.size:,} images of {len(source.classes):,} classes, chosen by mudg "
        f"{source.lineage['mudg']} from the images that text queries found. {HOW[to]}",
        WARNING,
        "## Lineage\n\n" + table(_lineage(source.lineage), ("", "")),
        f"## Classes\n\n{_classes(source)}",
    ]
    head = f"---\n{front_matter(source, title)}---\n\n" if to == "huggingface" else ""
    return head + "\n\n".join(parts) + "\n"


def front_matter(source: Source, title: str) -> str:
    fields = {
        "pretty_name": title[:200],
        "license": "other",
        "task_categories": ["image-classification"],
        "size_categories": [next((words for most, words in SIZES if source.size < most), "n>1M")],
        "tags": ["mudg", "pseudo-labels", "image-retrieval"],
        "configs": [
            {"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*.parquet"}]}
        ],
        "mudg": {
            "images": source.size,
            "classes": list(source.classes),
            **{name: source.lineage[name] for name in ("dataset", "digest", "index", "targets", "seed")},
        },
    }
    return str(yaml.safe_dump(fields, sort_keys=False, allow_unicode=True))


def plain(text: str) -> str:
    """Words that Markdown and HTML leave alone."""
    marked = re.sub(r"([\\`*_\[\]|~$@])", r"\\\1", " ".join(text.split()))
    return escape(marked, quote=False)


def _lineage(lineage: Json) -> list[tuple[str, str]]:
    settings = ", ".join(f"{name} {value}" for name, value in lineage["settings"].items())
    made = ", ".join(f"{v['artifacts']} {stage}" for stage, v in lineage["made_from"].items())
    return [
        ("target", ", ".join(lineage["targets"]) or "unknown"),
        ("artifact", lineage["dataset"]),
        ("digest", lineage["digest"]),
        ("made", lineage["created"]),
        ("index version", str(lineage["index"])),
        ("seed", str(lineage["seed"])),
        ("prompt", lineage["template"]),
        ("settings", settings),
        ("made from", made),
    ]


def _classes(source: Source) -> str:
    counts = zip(source.classes, source.per_class(), strict=True)
    lines = [(str(label), name, f"{count:,}") for label, (name, count) in enumerate(counts)]
    more = len(lines) - MAX_CLASSES
    return table(lines[:MAX_CLASSES], ("label", "class", "images")) + (
        f"\n\nand {more:,} more." if more > 0 else ""
    )


def table(lines: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    rows = [header, ["---"] * len(header)]
    return "\n".join(
        "| " + " | ".join(cells) + " |" for cells in (*rows, *([plain(c) for c in line] for line in lines))
    )
