"""The one way in for YAML. It costs no more than its text is long: nine lines of nested aliases stand for a
billion values, an alias to itself for an endless one, and a long `1:1:1…` for a number that takes hours."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 64
MAX_NODES = 10_000  # of settings; more than any file of them has
MAX_SCALAR = 20_000  # characters


class GuardedLoader(yaml.SafeLoader):
    """Refuses aliases, deep nesting, too many values and long values."""

    max_nodes, max_aliases = MAX_NODES, 0

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.depth = self.nodes = self.aliases = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > self.max_aliases:
                raise self._refused("aliases are not used")
            return super().compose_node(parent, index)
        self.depth, self.nodes = self.depth + 1, self.nodes + 1
        if self.depth > MAX_DEPTH:
            raise self._refused(f"nested more than {MAX_DEPTH} deep")
        if self.nodes > self.max_nodes:
            raise self._refused(f"more than {self.max_nodes:,} values")
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode) and len(node.value) > MAX_SCALAR:
            raise _error(f"a value of {len(node.value)} characters, {MAX_SCALAR} at most", node.start_mark)
        self.depth -= 1
        return node

    def _refused(self, problem: str) -> yaml.MarkedYAMLError:
        return _error(problem, self.peek_event().start_mark)  # type: ignore[no-untyped-call]


def _no_such(loader: GuardedLoader, node: yaml.Node) -> Any:
    raise _error(f"{node.tag.rpartition(':')[2]} values are not used", node.start_mark)


for _kind in ("binary", "set", "omap", "pairs"):  # which no JSON can hold: bytes would pass for no text
    GuardedLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _no_such)


class LargeLoader(GuardedLoader):
    """For target specs: ten thousand classes, each with synonyms."""

    max_nodes = 400_000


class ClusterLoader(GuardedLoader):
    """For the operator's own spec of a cluster, which may say once what holds for several pods: so few
    aliases cannot multiply to much."""

    max_aliases = 20


def _error(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, problem, mark)


def load(text: str, loader: type[GuardedLoader] = GuardedLoader) -> Any:
    """The values of a document; yaml.YAMLError for whatever is wrong with it."""
    try:
        return yaml.load(text, Loader=loader)  # a SafeLoader
    except (ValueError, RecursionError, OverflowError) as error:
        raise yaml.YAMLError(f"not a value: {error}") from error
