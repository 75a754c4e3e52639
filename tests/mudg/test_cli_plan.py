"""`mudg plan`: what it prints and what it refuses. Nothing here is embedded, trained or downloaded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from flows import build_classifier, build_index
from mudg.cli import output as units
from mudg.cli.app import app
from mudg_core.plan import probe
from mudg_core.plan.hardware import Hardware
from mudg_core.stage_names import stage_name
from tasks import coarse, index
from tasks.policy import Stage

runner = CliRunner()
CPU = ["plan", "--hardware", "cpu-64"]


def as_json(*arguments: str) -> dict[str, Any]:
    shown = runner.invoke(app, [*arguments, "--json"])
    assert shown.exit_code == 0, shown.output
    result: dict[str, Any] = json.loads(shown.stdout.splitlines()[-1])
    return result


def stage(result: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(line for line in result["stages"] if line["stage"] == name)
    return found


def test_the_papers_scale_as_a_table() -> None:
    shown = runner.invoke(app, ["plan", "--paper"]).stdout
    lines = {line.split()[0]: line for line in shown.splitlines() if line}
    assert lines["stage"].split("  ")[-1].strip() == "the paper's"
    for name, told in {
        "pair": ["6.1e17", "compute"],
        "train": ["4.0e16", "403 MB", "1 h"],
        "populate": ["4.4e17", "851 GB", "about 1 d, 850 GB"],
        "search": ["30 s"],
        "label": ["55 s"],
        "select": ["9 min 20 s"],
        "fetch": ["158 s"],
    }.items():
        row = next(line for line in shown.splitlines() if line.startswith(name))
        assert all(text in row for text in told), row
    assert "403 MB of centroids and gets 806 MB of sums" in shown and "404 MB in single" in shown
    assert "q(p) over 20,000,000 images (the training subset)" in shown
    assert "6.7e19 FLOP" in shown  # what our own build would do
    assert 'appendix "Hardware and Computational Cost"' in shown


def test_columns_are_aligned() -> None:
    table = runner.invoke(app, ["plan", "--paper"]).stdout.split("\n\n")[1].splitlines()
    assert len(table) == 20
    starts = [match.start() for match in re.finditer(r"(?<=  )\S", table[0])]
    assert all(len(line) < start or line[start - 2 : start] == "  " for line in table for start in starts)


def test_the_papers_scale_as_json() -> None:
    result = as_json("plan", "--paper")
    assert result["hardware"]["name"] == "a100" and result["workload"]["pair_images"] == 20_000_000
    assert (result["workload"]["queries"], result["workload"]["training_images"]) == (16_000, 96_000)
    assert stage(result, "augment")["flop"] == (4_227_000 + 16_000 + 1_000) * 13_299_683_328  # a pool of 4227
    populate, pair = stage(result, "populate"), stage(result, "pair")
    assert populate["stored"] == 850_640_000_000 + 131_072 * 768 * 4
    assert populate["hours"] == pytest.approx(4.3688e17 / 3.0106e12 / 3600, rel=1e-3)  # on the host
    assert pair["hours"] == pytest.approx(6.144e17 / 11.7e12 / 3600, rel=1e-3) == pair["hours_half"]
    assert (populate["bound"], populate["fits_in_memory"]) == ("compute", True)
    assert (populate["paper"]["seconds"], populate["paper"]["stored_bytes"]) == (86_400, 850e9)
    assert stage(result, "pair")["paper"] is None
    assert result["total"]["hours"] == pytest.approx(sum(line["hours"] for line in result["stages"]))


# Stages whose lines of the plan are not called by their stored names; and stages that make tables and pages,
# of which none grows with the corpus or runs a model on images.
RENAMED = ("queries", "candidates", "labels", "picks", "dataset", "model")
CALLED = {name: stage_name(name) for name in RENAMED} | {"evaluation-prints": "prints"}
CALLED_BACK = {line: name for name, line in CALLED.items()}
SMALL = {"warnings", "map", "recall", "report"}


# Lines of the plan for the stages of an index; lines of two stages, or of a part of one.
INDEX = {"embed": {"embedding-shard"}, "pair": {"neighbors"}, "train": {"centroids"}, "router": {"router"}}
INDEX |= {"populate": {"cells", "index-part"}, "spill": {"router", "index-part"}}


def stages(*modules: ModuleType) -> dict[str, Stage]:
    return {v.name: v for module in modules for v in vars(module).values() if isinstance(v, Stage)}


def test_the_plan_has_on_the_gpu_what_asks_for_one() -> None:
    """Stages without `gpu=True` are given the CPU whatever the settings say."""
    run = stages(build_classifier, build_index, coarse, index)
    lines = {line["stage"]: line["on"] for line in as_json("plan", "--hardware", "a100")["stages"]}
    names = {line: INDEX.get(line, {CALLED_BACK.get(line, line)}) for line in lines}
    assert lines == {
        line: "gpu" if all(run[name].gpu for name in made) else "cpu" for line, made in names.items()
    }
    assert not any(run[name].gpu for line in names if lines[line] == "cpu" for name in names[line])
    assert {line["on"] for line in as_json(*CPU)["stages"]} == {"cpu"}


def test_a_stage_without_gpu_code_gets_no_time_of_the_gpu() -> None:
    shown = runner.invoke(app, ["plan", "--hardware", "a100"]).stdout
    rows = {line.split()[0]: line.split() for line in shown.split("\n\n")[1].splitlines()}
    assert {name for name, row in rows.items() if row[-1] in ("compute", "memory", "storage")} == {
        name for name, row in rows.items() if "cpu" in row or name == "pair"
    }  # these have nothing after `bound`: no time in half precision
    same = {line["stage"]: line["hours"] for line in as_json(*CPU)["stages"]}
    on_a100 = {line["stage"]: line for line in as_json("plan", "--hardware", "a100")["stages"]}
    assert all(line["hours"] == same[name] for name, line in on_a100.items() if line["on"] == "cpu")
    assert "no GPU code" in shown and "host" in shown


def test_a_gpu_of_this_machine_is_not_claimed_to_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "probe", lambda folder: Hardware("this-machine", 70, 70, 15, 16, 1, "a test"))
    shown = runner.invoke(app, ["plan", "--set", "compute.device=cuda"]).stdout
    assert "The GPU of this machine is not measured" in shown


def test_no_stage_of_a_target_is_forgotten() -> None:
    run = set(stages(build_classifier))
    planned = [line["stage"] for line in as_json(*CPU)["stages"]]
    assert {CALLED.get(name, name) for name in run - SMALL} == set(planned[6:])  # after those of the index
    assert run >= SMALL | CALLED.keys() and len(planned) == len(set(planned))


def test_what_is_not_run_is_not_planned() -> None:
    plain = as_json(*CPU, "--evaluation-images", "0", "--set", "gate.enabled=false")
    assert [line["stage"] for line in plain["stages"][-2:]] == ["finetune", "classifier"]
    assert plain["workload"]["evaluation_images"] == 0


def test_other_settings_go_on_top_of_the_papers(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("index: {code: sq8, cells: 1000}\n")
    result = as_json("plan", "--paper", "-s", str(file), "--set", "index.cells=2000", "--rows", "30000000")
    amounts = result["workload"]
    assert (amounts["code"], amounts["cells"], amounts["rows"]) == ("sq8", 2000, 30_000_000)
    assert stage(result, "populate")["stored"] == 30_000_000 * 776 + 2000 * 768 * 4


def test_own_settings_have_no_column_of_the_papers() -> None:
    shown = runner.invoke(app, [*CPU, "--rows", "1000000", "--queries", "800"]).stdout
    assert "1,000,000 rows" in shown and "800 queries of 50 classes" in shown
    assert "the paper's" not in shown and "in half" not in shown
    assert "the whole corpus" in shown and "paper_source" not in as_json(*CPU)


def test_more_devices_are_faster() -> None:
    one, four = (as_json(*CPU, "--paper", "--devices", n) for n in ("1", "4"))
    assert stage(one, "train")["hours"] == pytest.approx(4 * stage(four, "train")["hours"])


def test_images_searched_for_q_of_p() -> None:
    shown = runner.invoke(app, [*CPU, "--pair-images", "500"]).stdout
    assert "q(p) over 500 images (a part of the corpus)" in shown


def test_this_machine_is_measured_where_artifacts_go(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def fake(folder: Path) -> Hardware:
        asked.append(folder)
        return Hardware("this-machine", 70, 70, 15, 16, 1, "a test")

    monkeypatch.setattr(probe, "probe", fake)
    assert as_json("plan", "--set", "storage.url=file://some/place")["hardware"]["source"] == "a test"
    as_json("plan", "--set", "storage.url=s3://bucket/x", "--set", "storage.cache_dir=kept/here")
    assert asked == [Path("some/place"), Path("kept/here")]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["--hardware", "h100"], 2, "InputError"),
        (["--rows", "99"], 2, "SettingsError"),
        (["--rows", "10000000001"], 2, "SettingsError"),
        (["--pair-images", "24001"], 2, "InputError"),
        (["--set", "index.cels=1"], 2, "SettingsError"),
        (["--set", "encode.model=RN50/openai"], 3, "ModelError"),
    ],
)
def test_refusals_have_their_exit_code(arguments: list[str], code: int, error: str) -> None:
    refused = runner.invoke(app, [*CPU, "--json", *arguments])
    assert refused.exit_code == code
    assert json.loads(refused.stdout)["error"] == error


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "-"),
        (12, "12 B"),
        (999.4, "999 B"),
        (999.6, "1 kB"),
        (1234, "1.23 kB"),
        (850_640_000_000, "851 GB"),
        (402_653_184, "403 MB"),
        (403_701_760, "404 MB"),
        (9.999e14, "1 PB"),
        (5e21, "5000 EB"),
    ],
)
def test_sizes(number: float, text: str) -> None:
    assert units.size(number) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0, "-"),
        (1e-9, "< 1 ms"),
        (0.5 / 3600, "500 ms"),
        (30 / 3600, "30 s"),
        (0.5, "30 min"),
        (1.2, "1.2 h"),
        (24, "1 d"),
        (24_000, "1000 d"),
    ],
)
def test_durations(hours: float, text: str) -> None:
    assert units.duration(hours) == text
