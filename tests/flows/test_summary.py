"""What a run tells its user at the end, in Prefect's UI and in the terminal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from deployments.summaries import changed_settings
from deployments.tables import warnings_table
from mudg.cli.target import target_text
from mudg_core.dataset.warning import warn_of_descriptors
from mudg_core.settings import Settings
from tests.support.training_sets import make, store_at

QUERIES = {
    "descriptors": ["which is red"],
    "scored": [{"loss": 0}, {"loss": 0}],
    "clusters": [["cat"], ["dog"]],
}


def test_changed_settings_are_those_that_decide_results() -> None:
    where = {"storage": {"url": "file:///elsewhere"}, "compute": {"workers": 3}, "gc": {"versions": 9}}
    changed = Settings().replace(where | {"index": {"cells": 7}})
    assert changed_settings(changed) == [("index.cells", 7)]
    assert changed_settings(Settings()) == []


def test_f98_the_device_is_one_of_them() -> None:
    changed = Settings().replace({"compute": {"device": "cuda", "workers": 3}})
    assert changed_settings(changed) == [("compute.device", "cuda")]


def test_a_warning_of_descriptors_reaches_prefect_and_the_terminal(tmp_path: Path) -> None:
    (warning,) = warn_of_descriptors(QUERIES)
    store = store_at(tmp_path)
    ref = make(store, "warnings", {}, {"warnings.json": [asdict(warning)]})
    (table,) = warnings_table(store, "pets", ref, "")
    assert warning.message in json.dumps(table.data)
    result = {
        "warnings": [asdict(warning)],
        "datasets": [],
        "folder": "f",
        "verdicts": [],
        "baseline_seconds": 0.0,
    }
    assert target_text("pets", result).startswith(f"warning: {warning.message}\n")
