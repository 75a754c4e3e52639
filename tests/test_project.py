"""The project as a whole: what README, lock and Prefect's file promise is so."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path

import yaml
from prefect import Flow
from prefect.utilities.callables import parameter_schema

from deployments.flows import build_classifier
from deployments.target_runs import EVENT

ROOT = Path(__file__).parents[1]


def test_readme_quotes_the_recorded_figures() -> None:
    """With their intervals, whatever a comment beside them says."""
    readme = re.sub("<!--.*?-->", "", (ROOT / "README.md").read_text())
    rows = json.loads((ROOT / "benchmarks/results/compare.json").read_text())["figures"]["comparisons"][0][
        "rows"
    ]
    accuracies = {row["name"]: row["accuracy"] for row in rows}
    for name in ("zero-shot", "nearest-neighbours", "mudg"):
        mean, low, high = (accuracies[name][part] for part in ("mean", "low", "high"))
        quoted = f"{mean:.1f} ({low:.1f} to {high:.1f})"
        assert quoted in readme, f"{name}: README does not say {quoted}"


def test_lock_names_versions_and_no_place() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert len(lines) > 100
    assert all(re.fullmatch(r"[\w.\-\[\]]+==[\w.!]+( ;.+)?", line) for line in lines)
    pinned = {line.split("==")[0] for line in lines}
    base = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = {re.split(r"[\[<>=;]", line)[0].replace("_", "-").lower() for line in base}
    assert wanted <= {name.lower() for name in pinned}


def test_deployments_name_flows_that_exist() -> None:
    declared = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    names = {"build-index", "build-classifier", "collect-garbage", "watch-inbox"}
    assert {item["name"] for item in declared} == names
    for item in declared:
        module, _, name = item["entrypoint"].rpartition(".")
        deployed = getattr(importlib.import_module(module), name)
        wrapped = getattr(importlib.import_module(f"flows.{name}"), name)
        assert isinstance(deployed, Flow) and deployed.name == wrapped.name == item["name"]
        assert item["description"] and item["tags"] and item["concurrency_limit"]["limit"] >= 1
        assert parameter_schema(deployed).properties["settings"]["default"] is None


def test_the_event_gives_a_run_all_that_it_needs() -> None:
    declared = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    [trigger] = [trigger for item in declared for trigger in item.get("triggers", ())]
    assert trigger["expect"] == [EVENT] and trigger["match"] == {"prefect.resource.id": "mudg.target.*"}
    assert set(trigger["parameters"]) == set(parameter_schema(build_classifier).required or ())


def test_demo_models_are_small_and_say_how_they_were_made() -> None:
    for model in ("index", "student"):
        folder = ROOT / "mudg_core/encode/demo" / model
        assert (folder / "open_clip_model.safetensors").stat().st_size < 12_000_000
        assert json.loads((folder / "recipe.json").read_text())["pairs"] > 10_000
