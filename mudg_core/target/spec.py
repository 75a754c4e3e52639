"""The target spec: what a user wants a classifier for.

A YAML file is the one thing every user writes by hand, so every complaint about it carries the line it is
about, and comes before anything runs. Class names are text and nothing else: `no` is not a boolean, `1999`
is not a number and `../../x` is not a path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from mudg_core.errors import InputError
from mudg_core.settings import Area, Json, Seed

MAX_BYTES = 4 << 20
MAX_CLASSES = 10_000
MAX_NAME = 200
Lines = dict[tuple[str | int, ...], int]


class Target(Area):
    """Class names, how to say them, and optionally images to evaluate on."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="used in run names and paths")
    description: str = Field("", max_length=1000)
    classes: tuple[str, ...] = Field(min_length=2, max_length=MAX_CLASSES)
    template: str = Field("a photo of a {}.", max_length=MAX_NAME)
    evaluation: str | None = Field(
        None,
        description="demo:TARGET, or a folder DOMAIN/CLASS/*.jpg whose class folders are named as `classes`",
    )
    seeds: tuple[Seed, ...] = Field((0,), min_length=1, max_length=32)
    settings: Json = Field(default_factory=dict, description="settings that hold for this target alone")

    @field_validator("classes", mode="after")
    @classmethod
    def _clean_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name.strip() for name in names)

    @field_validator("template")
    @classmethod
    def _one_slot(cls, template: str) -> str:
        if template.count("{}") != 1 or re.search(r"[{}]", template.replace("{}", "")):
            raise ValueError("the template needs exactly one {} for the class name")
        return template

    @model_validator(mode="after")
    def _distinct_seeds(self) -> Target:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds are repeated")
        return self

    def prompts(self) -> list[str]:
        """The plain prompt of each class."""
        return [self.template.replace("{}", name) for name in self.classes]

    def prompt(self, label: int, descriptor: str | None) -> str:
        """A class's prompt with a descriptor: "a photo of a cat, which has stripes."."""
        plain = self.template.replace("{}", self.classes[label])
        return plain if descriptor is None else f"{plain.removesuffix('.')}, {descriptor}."


def slug(name: str, number: int) -> str:
    """A folder name for a class, safe whatever the class is called; the number keeps two classes apart."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{number:04d}-{words}" if words else f"{number:04d}"


def load_target(path: str | Path) -> Target:
    """The target in a YAML file, or an InputError with the line at fault."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(what=f"the target spec is larger than {MAX_BYTES >> 20} MiB", where=str(path))
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            what=f"the target spec cannot be read: {error.strerror}",
            where=str(path),
            fix="see `mudg target run --help` for an example",
        ) from error
    return parse_target(data, where=str(path))


def parse_target(data: bytes, where: str = "target spec") -> Target:
    """The target in the bytes of a YAML document."""
    text = _decode(data, where)
    tree, lines = _compose(text, where)
    names = tree.get("classes")
    if isinstance(names, list):
        _check_names(names, lines, where)
    try:
        return Target.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        location = tuple(first["loc"])
        field = ".".join(str(part) for part in location) or "spec"
        reason = "no such field" if first["type"] == "extra_forbidden" else first["msg"]
        raise InputError(
            what=f"{field}: {reason}",
            where=f"{where}:{_line(lines, location)}",
            fix=f"fields: {', '.join(Target.model_fields)}",
        ) from error


def _decode(data: bytes, where: str) -> str:
    """UTF-8 text with a BOM removed and CRLF read as line ends."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            what=f"byte 0x{data[error.start]:02x} is not UTF-8",
            where=f"{where}:{number}",
            fix="save the file as UTF-8",
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for number, line in enumerate(text.split("\n"), 1):
        bad = next((char for char in line if (ord(char) < 32 and char != "\t") or ord(char) == 127), None)
        if bad is not None:
            name = "NUL" if bad == "\0" else f"control character 0x{ord(bad):02x}"
            raise InputError(what=f"the line holds a {name}", where=f"{where}:{number}", fix="remove it")
    return text


class _NoAliases(yaml.SafeLoader):
    """Nine lines of nested aliases stand for a billion values, and an alias to itself for an endless one."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not used", mark)
        return super().compose_node(parent, index)


def _compose(text: str, where: str) -> tuple[Json, Lines]:
    try:
        root = yaml.compose(text, Loader=_NoAliases)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(what=f"not YAML: {error.problem}", where=f"{where}:{line}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(what=f"not YAML: {error.reason}", where=f"{where}:{line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(what=f"not YAML: {error}", where=where) from error
    if not isinstance(root, yaml.MappingNode):
        raise InputError(
            what="the target spec is empty or not a mapping",
            where=f"{where}:1",
            fix="start it with `name:` and `classes:`",
        )
    lines: Lines = {}
    tree: Json = _plain(root, (), lines, where)
    return tree, lines


def _plain(node: yaml.Node, location: tuple[str | int, ...], lines: Lines, where: str) -> Any:
    """Node to value, noting the line of each; everything below `classes` stays the text that was written."""
    lines[location] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        values: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(what="a field name is not text", where=f"{where}:{key.start_mark.line + 1}")
            if key.value in values:
                raise InputError(
                    what=f"{key.value!r} is given twice", where=f"{where}:{key.start_mark.line + 1}"
                )
            values[key.value] = _plain(value, (*location, key.value), lines, where)
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*location, i), lines, where) for i, item in enumerate(node.value)]
    if location[:1] == ("classes",):
        return node.value
    constructor = yaml.SafeLoader("")
    try:
        return constructor.construct_object(node)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(what=f"not a value: {error}", where=f"{where}:{lines[location]}") from error


def _check_names(names: list[Any], lines: Lines, where: str) -> None:
    if len(names) > MAX_CLASSES:
        at = _line(lines, ("classes", MAX_CLASSES))
        raise InputError(
            what=f"{len(names)} classes, {MAX_CLASSES} at most", where=f"{where}:{at}", fix="split the target"
        )
    seen: dict[str, int] = {}
    for number, name in enumerate(names):
        line = _line(lines, ("classes", number))
        if problem := _name_problem(name, seen):
            raise InputError(
                what=problem, where=f"{where}:{line}", fix="give each class one distinct, readable name"
            )
        seen[_same(name)] = line


def _name_problem(name: Any, seen: dict[str, int]) -> str:
    if not isinstance(name, str):
        return "a class name is a mapping or a list"
    if not name.strip():
        return "a class name is empty"
    if len(name) > MAX_NAME:
        return f"a class name has {len(name)} characters, {MAX_NAME} at most"
    if not name.isprintable():
        return "a class name holds a character that cannot be shown"
    if (line := seen.get(_same(name))) is not None:
        return f"class {name.strip()!r} is there already, on line {line}"
    return ""


def _same(name: str) -> str:
    """What two names share that differ only by case or space."""
    return " ".join(name.casefold().split())


def _line(lines: Lines, location: tuple[Any, ...]) -> int:
    """Line of the closest thing that has one."""
    while location and location not in lines:
        location = location[:-1]
    return lines.get(location, 1)
