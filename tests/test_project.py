"""The project as a whole: what README, lock and Prefect's file promise is so."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path

import yaml
from prefect import Flow

ROOT = Path(__file__).parents[1]


def test_readme_quotes_the_recorded_figures() -> None:
    readme = (ROOT / "README.md").read_text()
    figures = json.loads((ROOT / "benchmarks/results/demo-full.json").read_text())["figures"]["cold"]
    for arm in ("zero_shot", "nearest_neighbours", "mudg"):
        quoted = f"{figures[arm]['mean']:.1f} ± {figures[arm]['std']:.1f}"
        assert quoted in readme, f"{arm}: README does not say {quoted}"


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
    assert {item["name"] for item in declared} == {"build-index", "build-classifier"}
    for item in declared:
        path, name = item["entrypoint"].split(":")
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        assert isinstance(getattr(module, name), Flow)
        assert getattr(module, name).name == item["name"]


def test_demo_models_are_small_and_say_how_they_were_made() -> None:
    for model in ("index", "student"):
        folder = ROOT / "mudg_core/encode/demo" / model
        assert (folder / "open_clip_model.safetensors").stat().st_size < 12_000_000
        assert json.loads((folder / "recipe.json").read_text())["pairs"] > 10_000
