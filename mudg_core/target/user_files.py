"""Files that users write by hand (text, lists, JSON, YAML): read as they are meant, or refused with the line
at fault."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml

from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.yaml_text import GuardedLoader
from mudg_core.yaml_text import compose as compose_nodes

MAX_LINE = 2000
Location = tuple[str | int, ...]
Lines = dict[Location, int]


def read_text(path: str | Path, kind: str, max_bytes: int, fix: str = "") -> str:
    """The whole file, which errors call `kind`; its size is checked before it is read."""
    path = Path(path)
    try:
        if path.stat().st_size > max_bytes:
            raise InputError(what=f"the {kind} is larger than {max_bytes >> 20} MiB", where=str(path))
        data = path.read_bytes()
    except OSError as error:
        what = f"the {kind} cannot be read: {error.strerror}"
        raise InputError(what=what, where=str(path), fix=fix) from error
    return decode_text(data, where=str(path))


def decode_text(data: bytes, where: str) -> str:
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


def numbered_lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """(line, place) of a plain list, blank lines left out."""
    for number, line in enumerate(text.split("\n"), 1):
        place = f"{where}:{number}"
        if len(line) > MAX_LINE:
            what = f"the line has {len(line)} characters, {MAX_LINE} at most"
            raise InputError(what=what, where=place, fix="split it")
        if line.strip():
            yield line.strip(), place


def parse_json(text: str, where: str, fix: str = "") -> Any:
    """JSON in which no key is given twice: of two lists for one class, one would be lost unseen."""
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise InputError(what=f"not JSON: {error.msg}", where=f"{where}:{error.lineno}", fix=fix) from error
    except (ValueError, RecursionError) as error:
        raise InputError(what=f"not JSON: {error}", where=where, fix=fix) from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in pairs:
        if key in tree:
            raise ValueError(f"{key[:80]!r} is given twice")
        tree[key] = value
    return tree


def parse_yaml(text: str, where: str, as_text: Collection[str]) -> tuple[Json, Lines]:
    """The document as plain values and the line of each; what is below the fields `as_text` stays the text
    that was written."""
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
        what = "the target spec is empty or not a mapping"
        raise InputError(what=what, where=f"{where}:1", fix="start it with `name:` and `classes:`")
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
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(what="a field name is not text", where=f"{where}:{line}")
            if key.value in values:
                raise InputError(what=f"{key.value[:80]!r} is given twice", where=f"{where}:{line}")
            values[key.value] = _plain(value, (*location, key.value), lines, where, as_text)
            lines[(*location, key.value)] = line
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*location, i), lines, where, as_text) for i, item in enumerate(node.value)]
    if location and location[0] in as_text:
        return node.value
    try:
        return GuardedLoader("").construct_object(node)
    except Exception as error:  # PyYAML lets through whatever Python says to a tag that does not fit
        what = f"not a value: {error or type(error).__name__}"
        raise InputError(what=what, where=f"{where}:{lines[location]}") from error
