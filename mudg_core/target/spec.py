"""The target spec: what a user wants a classifier for.

A YAML file is the one thing every user writes by hand, so every error names the line it is about, and comes
before anything runs. Class names are text and nothing else: `no` is not a boolean, `1999` is not a number and
`../../x` is not a path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from mudg_core.errors import InputError, SettingsError
from mudg_core.settings import PROFILES, Area, Json, Seed, Settings
from mudg_core.target.class_names import MAX_CLASSES, MAX_NAME, NameCheck, check_classes, check_synonyms
from mudg_core.target.paths import absolute_images, absolute_settings
from mudg_core.target.published import class_names
from mudg_core.target.user_files import Lines, decode_text, line_of, parse_yaml, read_text

MAX_BYTES = 4 << 20
MAX_MISTAKES = 10  # listed after the first
CLASSES_FROM = "classes_from"
# Fields that stand for a setting, by the paper's letters: n_neighbors, m, k1, N.
SHORTHANDS = {
    "neighbors": ("dataset", "neighbors"),
    "augmentations": ("augment", "count"),
    "per_class": ("dataset", "per_class"),
    "iterations": ("train", "iterations"),
}
PROFILED = ("augment", "dataset", "train")
Stripped = Annotated[str, StringConstraints(strip_whitespace=True)]


class Target(Area):
    """Class names, their prompt template, and optionally images to evaluate on."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="used in run names and paths")
    description: str = Field("", max_length=1000)
    classes: tuple[Stripped, ...] = Field(min_length=2, max_length=MAX_CLASSES)
    synonyms: dict[str, tuple[Stripped, ...]] = Field(
        default_factory=dict, description="other names by class; they only add queries"
    )
    template: str = Field("a photo of a {}.", max_length=MAX_NAME)
    evaluation: str | None = Field(
        None,
        description="demo:TARGET, a dataset's folder, or LAYOUT:PATH (zhou, fgvc, imagenet, wordnet, folder)",
    )
    seeds: tuple[Seed, ...] = Field((0,), min_length=1, max_length=32)
    profile: Literal["mudg", "paper", "author-code"] | None = Field(
        None, description="whose values to augment, select and train by; the index is what it is"
    )
    neighbors: int | None = Field(None, description="dataset.neighbors")
    augmentations: int | None = Field(None, description="augment.count, m")
    per_class: int | None = Field(None, description="dataset.per_class, k1")
    iterations: int | None = Field(None, description="train.iterations, N")
    settings: Json = Field(default_factory=dict, description="settings that hold for this target alone")

    @field_validator("template")
    @classmethod
    def _one_slot(cls, template: str) -> str:
        if template.count("{}") != 1 or re.search(r"[{}]", template.replace("{}", "")):
            raise ValueError("the template needs exactly one {} for the class name")
        return template

    @model_validator(mode="after")
    def _consistent(self) -> Target:
        if len(set(self.seeds)) != len(self.seeds):
            raise _mistake("seeds are repeated", "seeds")
        if unknown := self.synonyms.keys() - set(self.classes):
            raise _mistake(f"synonyms of {min(unknown)!r}, which is no class", "synonyms")
        for field, (area, name) in SHORTHANDS.items():
            values = self.settings.get(area)
            if getattr(self, field) is not None and isinstance(values, Mapping) and name in values:
                what = f"`{field}` and settings.{area}.{name} are the same thing: give one of them"
                raise _mistake(what, "settings", area, name)
        return self

    def overrides(self, settings: Settings) -> Json:
        """What this target changes in the settings of a run.

        Its profile comes first, and only where the run has left what the run's own profile says: a value
        that a user has set stays. The target's own settings win over both.
        """
        changes = _profile_changes(settings, self.profile) if self.profile else {}
        for field, (area, name) in SHORTHANDS.items():
            if (value := getattr(self, field)) is not None:
                changes.setdefault(area, {})[name] = value
        for area, values in self.settings.items():
            both = isinstance(values, Mapping) and area in changes
            changes[area] = {**changes[area], **values} if both else values
        return changes

    def located(self) -> Target:
        """The same target, each path in it absolute."""
        images = self.evaluation and absolute_images(self.evaluation)
        return self.model_copy(update={"evaluation": images, "settings": absolute_settings(self.settings)})

    def names(self, label: int) -> tuple[str, ...]:
        """The names of a class, its own first."""
        return self.classes[label], *self.synonyms.get(self.classes[label], ())

    def prompts(self) -> list[str]:
        """The plain prompt of each class."""
        return [self.template.replace("{}", name) for name in self.classes]

    def prompt(self, label: int, descriptor: str | None) -> str:
        """A class's prompt with a descriptor: "a photo of a cat, which has stripes."."""
        plain = self.template.replace("{}", self.classes[label])
        return plain if descriptor is None else f"{plain.removesuffix('.')}, {descriptor}."


FIELDS = (*Target.model_fields, CLASSES_FROM)


def _profile_changes(settings: Settings, profile: str) -> Json:
    """Values of the target's profile, where the run still has those of its own profile."""
    run_profile, own = (Settings.model_validate(PROFILES[name]) for name in (settings.profile, profile))
    changes: Json = {}
    for area in PROFILED:
        now, before, after = (getattr(tree, area).model_dump() for tree in (settings, run_profile, own))
        if changed := {key: after[key] for key in after if now[key] == before[key] != after[key]}:
            changes[area] = changed
    return changes


def _mistake(what: str, *location: str) -> PydanticCustomError:
    """An error about several fields that names one of them, so that it gets its line."""
    return PydanticCustomError("target", "{what}", {"what": what, "at": location})


def slug(name: str, number: int) -> str:
    """A folder name for a class, safe whatever the class is called; the number keeps two classes apart."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{number:04d}-{words}" if words else f"{number:04d}"


def load_target(path: str | Path) -> Target:
    """The target in a YAML file, its paths absolute, or an InputError with the line at fault."""
    text = read_text(path, "target spec", MAX_BYTES, "see `mudg target run --help` for an example")
    return _target(text, where=str(path)).located()


def parse_target(data: bytes, where: str = "target spec", *, files: bool = True) -> Target:
    """The target in the bytes of a YAML document. Without `files`, one that names a file of classes is
    refused: who wrote it and who reads it may sit at different machines."""
    return _target(decode_text(data, where), where, files)


def _target(text: str, where: str, files: bool = True) -> Target:
    tree, lines = parse_yaml(text, where, as_text=("classes", "synonyms"))
    if not files and CLASSES_FROM in tree:
        raise InputError(
            what="classes_from names a file, which is not read here",
            where=f"{where}:{line_of(lines, (CLASSES_FROM,))}",
            fix="list the classes, or use `mudg target submit`, which reads the file where you are",
        )
    tree = _with_names(tree, lines, where)
    try:
        target = Target.model_validate(tree)
    except ValidationError as error:
        raise _input_error(error, lines, where) from error
    _check_settings(target, lines, where)
    return target


def _with_names(tree: Json, lines: Lines, where: str) -> Json:
    """The document with its classes read from `classes_from`, and every name in it checked."""
    tree, check, names = dict(tree), NameCheck(), tree.get("classes")
    if CLASSES_FROM in tree:
        here = f"{where}:{line_of(lines, (CLASSES_FROM,))}"
        source = tree.pop(CLASSES_FROM)
        if "classes" in tree or not isinstance(source, str) or not source.strip():
            what = "classes_from is the path of a file or folder, and stands in for `classes`"
            raise InputError(what=what, where=here, fix="give one of the two")
        names = tree["classes"] = check_classes(class_names(source), check)
        if len(names) < 2:
            what = f"classes_from: {len(names)} classes found, 2 at least"
            raise InputError(what=what, where=source, fix="see docs/target.md for what is read")
    elif isinstance(names, list):
        places = (f"{where}:{line_of(lines, ('classes', number))}" for number in range(len(names)))
        check_classes(zip(names, places, strict=False), check)
    if "synonyms" in tree and isinstance(names, list):
        tree |= check_synonyms(tree["synonyms"], names, lines, where, check)
    return tree


def _input_error(error: ValidationError, lines: Lines, where: str) -> InputError:
    """All mistakes, each with its line. Unknown fields come first, as a misspelt one is also missing."""
    mistakes: list[tuple[int, str]] = []
    for detail in sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden"):
        location = tuple(detail.get("ctx", {}).get("at") or detail["loc"])
        reason = f"{'.'.join(map(str, location)) or 'spec'}: {_reason(detail)}"
        mistakes.append((line_of(lines, location), reason))
    first, *others = mistakes
    more = [f"line {line}: {reason}" for line, reason in others[:MAX_MISTAKES]]
    return InputError(
        what="\n".join([first[1], *more]), where=f"{where}:{first[0]}", fix=f"fields: {', '.join(FIELDS)}"
    )


def _reason(detail: Any) -> str:
    match detail["type"]:
        case "extra_forbidden":
            like = get_close_matches(str(detail["loc"][-1]), FIELDS, n=1)
            return f"no such field; did you mean {like[0]}?" if like else "no such field"
        case "missing":
            return "this field is needed"
        case "too_short":
            return f"at least {detail['ctx']['min_length']} are needed, and there are {len(detail['input'])}"
    return str(detail["msg"]).removeprefix("Value error, ")


def _check_settings(target: Target, lines: Lines, where: str) -> None:
    """Settings are checked where they are read, as they would otherwise be refused in the middle of a run."""
    try:
        Settings().replace(target.overrides(Settings()))
    except SettingsError as error:
        cause = error.__cause__
        path = tuple(cause.errors()[0]["loc"]) if isinstance(cause, ValidationError) else ()
        field = next((name for name, own in SHORTHANDS.items() if own == path), "")
        location = (field,) if field and getattr(target, field) is not None else ("settings", *path)
        place = f"{where}:{line_of(lines, location)}"
        raise InputError(what=error.what, where=place, fix=error.fix) from error
