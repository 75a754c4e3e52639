"""The paper's tasks as specs: its last table, figure by figure."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from mudg_core.errors import InputError
from mudg_core.target.ready import READY, ready_spec, ready_text, ready_values
from mudg_core.target.spec import load_target

PLAIN = "a photo of a {}."
# m, k1, N and the template of each task, as the paper's table gives them; n is 64 throughout.
TABLE = {
    "imagenet": (16, 96, 300, PLAIN),
    "caltech": (64, 384, 100, PLAIN),
    "pets": (64, 384, 200, "a photo of a {}, a type of pet."),
    "cars": (16, 96, 1000, PLAIN),
    "flowers": (64, 384, 200, "a photo of a {}, a type of flower."),
    "food": (64, 384, 100, "a photo of a {}, a type of food."),
    "aircraft": (64, 384, 1000, "a photo of a {}, a type of aircraft."),
    "sun": (16, 96, 300, PLAIN),
    "dtd": (64, 384, 200, "a photo of a {} texture."),
    "eurosat": (64, 384, 200, "a photo of a {}, from a satellite."),
    "ucf": (64, 384, 200, "a photo of a person doing {}."),
    "imagenet-v2": (16, 96, 200, PLAIN),
    "imagenet-sketch": (16, 96, 200, PLAIN),
    "imagenet-a": (16, 96, 200, PLAIN),
    "imagenet-r": (16, 96, 200, PLAIN),
    "domainnet": (16, 96, 200, PLAIN),
    "office-home": (64, 384, 200, PLAIN),
    "pacs": (64, 384, 100, PLAIN),
    "vlcs": (64, 384, 50, PLAIN),
    "terra-incognita": (64, 384, 100, "a photo of a {}, from a camera trap."),
}
SHORT = [name for name in TABLE if "classes" in ready_values(name)]


def some_names(folder: Path, count: int) -> Path:
    file = folder / "names.txt"
    file.write_text("".join(f"thing {number}\n" for number in range(count)))
    return file


def test_all_twenty_are_there_and_no_other() -> None:
    there = {Path(entry.name).stem for entry in files("mudg_core.target").joinpath("ready").iterdir()}
    assert list(TABLE) == list(READY) and set(READY) == there
    assert len(SHORT) == 7


@pytest.mark.parametrize("name", TABLE)
def test_figures_and_template(name: str, tmp_path: Path) -> None:
    target = ready_spec(name, None if name in SHORT else some_names(tmp_path, READY[name]))
    figures = target.augmentations, target.per_class, target.iterations, target.template
    assert (target.name, target.neighbors, target.profile) == (name, 64, "paper")
    assert figures == TABLE[name]
    assert len(target.classes) == READY[name] and target.seeds == (0, 1, 2)
    file = tmp_path / "spec.yaml"
    file.write_text(ready_text(name, None if name in SHORT else tmp_path / "names.txt", Path("my images")))
    assert load_target(file) == target.model_copy(update={"evaluation": str(Path.cwd() / "my images")})


def test_long_lists_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1,000 class names") as caught:
        ready_spec("imagenet")
    assert "--data" in caught.value.fix
    with pytest.raises(InputError, match="99 classes found, and caltech has 100"):
        ready_spec("caltech", some_names(tmp_path, 99))


def test_unknown_names_are_told(tmp_path: Path) -> None:
    for name in ("mnist", "../spec", "ready/pacs"):
        with pytest.raises(InputError, match="no ready spec"):
            ready_spec(name)
