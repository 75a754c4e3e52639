"""YAML that users write by hand, with the line of everything in it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import yaml

from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.yaml_text import GuardedLoader
from mudg_core.yaml_text import compose as compose_nodes

Location = tuple[str | int, ...]
Lines = dict[Location, int]


def compose(text: str, where: str, as_text: Collection[str]) -> tuple[Json, Lines]:
    """The document as plain values; everything below the fields `as_text` stays the text that was written."""
    try:
        root = compose_nodes(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(what=f"not YAML: {error.problem}", where=f"{where}:{line}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(what=f"not YAML: {error.reason}", where=f"{where}:{line}") from error
    except yaml.YAMLError as error:
        raise InputError(what=f"not YAML: {error}", where=where) from error
    if not isinstance(root, yaml.MappingNode):
        raise InputError(
            what="the target spec is empty or not a mapping",
            where=f"{where}:1",
            fix="start it with `name:` and `classes:`",
        )
    lines: Lines = {}
    tree: Json = _plain(root, (), lines, where, as_text)
    return tree, lines


def line_of(lines: Lines, location: tuple[Any, ...]) -> int:
    """Line of the closest thing that has one."""
    while location and location not in lines:
        location = location[:-1]
    return lines.get(location, 1)


def _plain(node: yaml.Node, location: Location, lines: Lines, where: str, as_text: Collection[str]) -> Any:
    """Node to value, noting the line of each."""
    lines[location] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        values: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(what="a field name is not text", where=f"{where}:{key.start_mark.line + 1}")
            if key.value in values:
                raise InputError(
                    what=f"{key.value[:80]!r} is given twice", where=f"{where}:{key.start_mark.line + 1}"
                )
            values[key.value] = _plain(value, (*location, key.value), lines, where, as_text)
            lines[(*location, key.value)] = key.start_mark.line + 1
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*location, i), lines, where, as_text) for i, item in enumerate(node.value)]
    if location and location[0] in as_text:
        return node.value
    constructor = GuardedLoader("")
    try:
        return constructor.construct_object(node)
    except Exception as error:  # PyYAML lets through whatever Python says to a tag that does not fit
        raise InputError(
            what=f"not a value: {error or type(error).__name__}", where=f"{where}:{lines[location]}"
        ) from error
