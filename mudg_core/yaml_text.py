"""The one way in for YAML. A user's costs no more than its text is long: nine lines of nested aliases stand
for a billion values, an alias to itself for an endless one, and a long `1:1:1…` for a number that takes
hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

MAX_DEPTH = 64
MAX_NODES = 10_000  # of settings; more than any file of them has
MAX_SCALAR = 20_000  # characters
MAX_NUMBER = 200


class GuardedLoader(yaml.SafeLoader):
    """Refuses aliases, deep nesting, too many values and long values. `large`: fields of the document which
    may have more values than all others together."""

    max_nodes, max_aliases = MAX_NODES, 0
    large: Mapping[str, int] = MappingProxyType({})

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.depth = self.aliases = 0
        self.place, self.nodes = "", Counter[str]()

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > self.max_aliases:
                raise self._refused("aliases are not used")
            return super().compose_node(parent, index)
        self._count(index)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._refused(f"nested more than {MAX_DEPTH} deep")
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode) and len(node.value) > MAX_SCALAR:
            raise _error(f"a value of {len(node.value)} characters, {MAX_SCALAR} at most", node.start_mark)
        self.depth -= 1
        return node

    def _count(self, index: Any) -> None:
        """Of the fields of the document itself, `index` is the name."""
        if self.depth == 1:
            name = index.value if isinstance(index, yaml.ScalarNode) else ""
            self.place = name if name in self.large else ""
        self.nodes[self.place] += 1
        if self.nodes[self.place] > (most := self.large.get(self.place, self.max_nodes)):
            raise self._refused(f"more than {most:,} values{f' of {self.place}' if self.place else ''}")

    def _refused(self, problem: str) -> yaml.MarkedYAMLError:
        return _error(problem, self.peek_event().start_mark)  # type: ignore[no-untyped-call]


def _no_such(loader: GuardedLoader, node: yaml.Node) -> Any:
    raise _error(f"{node.tag.rpartition(':')[2]} values are not used", node.start_mark)


for _kind in ("binary", "set", "omap", "pairs"):  # which no JSON can hold: bytes would pass for no text
    GuardedLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _no_such)


def _number(loader: GuardedLoader, node: yaml.ScalarNode) -> int | float:
    """Python makes a number of any length out of `0xfff…` and `1:1:1…`, and then refuses to print it."""
    if len(node.value) > MAX_NUMBER:
        raise _error(f"a number of {len(node.value)} characters, {MAX_NUMBER} at most", node.start_mark)
    is_float = node.tag.endswith(":float")
    return loader.construct_yaml_float(node) if is_float else loader.construct_yaml_int(node)


for _kind in ("int", "float"):
    GuardedLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)


class LargeLoader(GuardedLoader):
    """For target specs: ten thousand classes, each with synonyms, and nothing else that is large."""

    large = MappingProxyType({"classes": 20_000, "synonyms": 350_000})


class ClusterLoader(GuardedLoader):
    """For the operator's own spec of a cluster, which may say once what holds for several pods: so few
    aliases cannot multiply to much."""

    max_aliases = 20


def _error(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, problem, mark)


def compose(text: str) -> yaml.Node | None:
    """The nodes of a target spec; yaml.YAMLError for whatever is wrong with it."""
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=LargeLoader)
    except (ValueError, RecursionError, OverflowError) as error:
        raise _not_a_value(error) from error
    return node


def load(text: str, loader: type[GuardedLoader] = GuardedLoader) -> Any:
    """The values of a document; yaml.YAMLError for whatever is wrong with it."""
    try:
        return yaml.load(text, Loader=loader)  # a SafeLoader
    except (ValueError, RecursionError, OverflowError) as error:
        raise _not_a_value(error) from error


def load_packaged(file: Path) -> Any:
    """The values of a file that comes with mudg: trusted, so read by libyaml if it is there, seven times as
    fast."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _not_a_value(error: Exception) -> yaml.YAMLError:
    return yaml.YAMLError(f"not a value: {str(error)[:200]}")
