"""The paper's twenty tasks as ready specs: its last table, and class names where they are few.

Names of the long ones are read from the user's own copy of the dataset.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import yaml

from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.target.spec import CLASSES_FROM, Target, parse_target
from mudg_core.yaml_text import load as load_yaml

# In the order of the paper's table, with the number of classes.
READY = {
    "imagenet": 1000,
    "caltech": 100,
    "pets": 37,
    "cars": 196,
    "flowers": 102,
    "food": 101,
    "aircraft": 100,
    "sun": 397,
    "dtd": 47,
    "eurosat": 10,
    "ucf": 101,
    "imagenet-v2": 1000,
    "imagenet-sketch": 1000,
    "imagenet-a": 200,
    "imagenet-r": 200,
    "domainnet": 345,
    "office-home": 65,
    "pacs": 7,
    "vlcs": 5,
    "terra-incognita": 10,
}


def ready_values(name: str) -> Json:
    """What the spec says, as plain values."""
    values: Json = load_yaml(_text(name))
    return values


def ready_text(name: str, data: Path | None = None, evaluation: Path | None = None) -> str:
    """The spec as a file of the user's own; `data` is where class names are read, if it brings none."""
    text, more = _text(name), Json()
    if "classes" not in ready_values(name):
        if data is None:
            raise InputError(
                what=f"the {READY[name]:,} class names of {name} are read from your copy of the dataset",
                where=name,
                fix=f"say where it is: `mudg target init {name} --data FOLDER`",
            )
        more[CLASSES_FROM] = str(data)
    if evaluation is not None:
        more["evaluation"] = str(evaluation)
    return text + (yaml.safe_dump(more, sort_keys=False, allow_unicode=True) if more else "")


def ready_spec(name: str, data: Path | None = None, evaluation: Path | None = None) -> Target:
    """The target, with as many classes as it should have."""
    target = parse_target(ready_text(name, data, evaluation).encode(), where=f"ready spec {name}")
    if len(target.classes) != READY[name]:
        raise InputError(
            what=f"{len(target.classes):,} classes found, and {name} has {READY[name]:,}",
            where=str(data),
            fix="name the list or split file itself, or write a spec of your own with `classes_from`",
        )
    return target


def _text(name: str) -> str:
    if name not in READY:
        raise InputError(
            what=f"there is no ready spec {name[:80]!r}",
            where="mudg target ready",
            fix=f"take one of {', '.join(READY)}",
        )
    return files("mudg_core.target").joinpath("ready", f"{name}.yaml").read_text(encoding="utf-8")
