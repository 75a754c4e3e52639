"""What the summary of a run says of its settings."""

from __future__ import annotations

from flows.summary import changed_settings
from mudg_core.settings import Settings


def test_changed_settings_are_those_that_decide_results() -> None:
    where = {"storage": {"url": "file:///elsewhere"}, "compute": {"workers": 3}, "gc": {"versions": 9}}
    changed = Settings().replace(where | {"index": {"cells": 7}})
    assert changed_settings(changed) == [("index.cells", 7)]
    assert changed_settings(Settings()) == []


def test_f98_the_device_is_one_of_them() -> None:
    changed = Settings().replace({"compute": {"device": "cuda", "workers": 3}})
    assert changed_settings(changed) == [("compute.device", "cuda")]
