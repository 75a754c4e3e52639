"""What every stage shares: content keys, adoption, retries. Stages here are tiny; Prefect is not involved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest

import tasks.coarse
import tasks.embed
import tasks.policy
import tasks.train
from mudg_core.errors import (
    OrchestrationError,
    UnwantedError,
)
from mudg_core.settings import DEMO_MODEL, Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.code import CODE
from tasks.executors.in_process import ThreadHost
from tasks.policy import Stage, Work, build_batch, stage
from tasks.run import Host

ROOT = Path(__file__).parents[2]
PARENT = ArtifactRef(stage="embedding-shard", key="a" * 64, digest="b" * 64)
PLAIN = Recipe(stage="model", algorithm=1, settings={"inputs": {}})
calls: list[int] = []


@stage("doubled", settings=("index.cells",))
def double(work: Work, *, number: int) -> Facts:
    calls.append(number)
    (work.scratch / "number.txt").write_text(str(number * 2))
    return Facts({"rows": 1})


@stage("summed")
def add_up(work: Work, *, until: int) -> Facts:
    """Dies the first time that it comes to 3."""
    last = work.checkpoints.latest()
    for number in range(last.step + 1 if last else 1, until + 1):
        calls.append(number)
        if calls == [1, 2, 3]:
            raise ConnectionError("pulled the plug")
        total = number + (int(last.arrays["total"]) if last else 0)
        work.checkpoints.save(number, {"total": np.asarray(total)}, {})
        last = work.checkpoints.latest()
    assert last is not None
    (work.scratch / "total.txt").write_text(str(last.arrays["total"]))
    return Facts({"rows": 1})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    places = {"url": f"file://{tmp_path}", "cache_dir": str(tmp_path / "cache")}
    return load_settings(overrides={"storage": places, "encode": {"model": DEMO_MODEL}}, environ={})


def build(settings: Settings, name: str, *recipes: Recipe, host: Host | None = None) -> list[ArtifactRef]:
    return build_batch(f"{__name__}:{name}", settings, list(recipes), "", CODE, host or ThreadHost())


def run(settings: Settings, *numbers: int) -> list[ArtifactRef]:
    return build(settings, "double", *(double.recipe(settings, {"number": number}) for number in numbers))


def test_a_stage_is_made_once(settings: Settings) -> None:
    calls.clear()
    first, second, again = run(settings, 1, 2, 1)
    assert first == again != second
    assert calls == [1, 2]
    assert ArtifactStore(settings.storage).file(second, "number.txt").read_text() == "4"


def test_f13_a_stage_goes_on_where_it_was_stopped(settings: Settings) -> None:
    calls.clear()
    store = ArtifactStore(settings.storage)
    recipe, other = (add_up.recipe(settings, {"until": until}) for until in (5, 6))
    with pytest.raises(ConnectionError):
        build(settings, "add_up", recipe)
    assert store.checkpoints(other).latest() is None  # each artifact has its own
    (found,) = build(settings, "add_up", recipe)
    assert calls == [1, 2, 3, 3, 4, 5]
    assert store.file(found, "total.txt").read_text() == "15"
    assert store.checkpoints(recipe).latest() is None


@stage("counted")
def count(work: Work, *, until: int) -> Facts:
    for number in range(until):
        calls.append(number)
        work.progress(number / until)
    return Facts({})


@pytest.mark.parametrize("after", [0, 1, 3])
def test_f14_work_that_nobody_wants_any_more_stops(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Before it begins, as it may have stood in line, and whenever it tells how far it is."""
    calls.clear()
    answers = iter([*[False] * after, True])
    host = ThreadHost()
    monkeypatch.setattr(host, "unwanted", lambda: lambda: next(answers))
    recipe = count.recipe(settings, {"until": 10})
    with pytest.raises(UnwantedError, match="told to stop"):
        build(settings, "count", recipe, host=host)
    assert calls == list(range(after))
    assert ArtifactStore(settings.storage).find(recipe) is None


def test_f54_key_depends_on_what_matters_and_on_nothing_else(settings: Settings) -> None:
    def key(chosen: Stage = double, tree: dict[str, object] | None = None, **inputs: object) -> str:
        return chosen.recipe(settings.replace(tree or {}), {"number": 1, **inputs}).key

    other_version = stage("doubled", algorithm=2, settings=("index.cells",))(double.function)
    assert key(tree={"compute": {"workers": 7}}) == key()
    assert key(tree={"index": {"probes": 3}}) == key()
    assert key(tree={"index": {"cells": 3}}) != key()
    assert key(number=2) != key()
    assert key(other_version) != key()
    assert key(parent=PARENT) != key()
    changed = PARENT.model_copy(update={"digest": "c" * 64})
    assert key(parent=changed) != key(parent=PARENT)


def test_artifacts_become_parents_in_order(settings: Settings) -> None:
    other = PARENT.model_copy(update={"digest": "d" * 64})
    recipe = tasks.coarse.draw_samples.recipe(settings, {"embeddings": [PARENT, other]})
    assert recipe.all_parents() == (PARENT, other)
    swapped = tasks.coarse.draw_samples.recipe(settings, {"embeddings": [other, PARENT]})
    assert swapped.key != recipe.key


def test_every_setting_that_a_stage_names_exists(settings: Settings) -> None:
    assert len(_stages()) >= 20
    for found in _stages():
        found.recipe(settings, {})


def _stages() -> list[Stage]:
    modules = [import_module(f"tasks.{module.name}") for module in iter_modules(tasks.__path__)]
    return [value for module in modules for value in vars(module).values() if isinstance(value, Stage)]


WAITS = {"wait", "as_completed"}
CLUSTERS = ("prefect", "dask", "distributed")
NOT_FUTURES = {  # but processes and an event
    "tasks/executors/prefect_server.py",
    "tasks/executors/prefect_dask.py",  # an event
    "tasks/executors/progress.py",
}
GATHERS = {"tasks/executors/dask_worker.py"}  # waits with a time limit, and then takes the results


def waiting(tree: ast.Module) -> Iterator[int]:
    """The lines that wait for something, or take from Prefect or Dask what does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in WAITS:
            yield node.lineno
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(CLUSTERS):
            yield from (node.lineno for name in node.names if name.name in WAITS | {"*"})


def waiting_for_good(tree: ast.Module) -> Iterator[int]:
    """The lines of functions that wait and do not gather after that."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        waits = [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id in WAITS]
        gathers = [c.lineno for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "gather"]
        yield from (line for line in waits if line > max(gathers, default=0))


def test_f05_nobody_waits_without_taking_the_result() -> None:
    """A bare `.wait()` does not raise when a worker was killed, and the flow would end green."""
    for room in ("deployments", "flows", "tasks"):
        for path in ROOT.glob(f"{room}/**/*.py"):
            name, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text())
            lines = waiting_for_good(tree) if name in GATHERS else waiting(tree)
            assert name in NOT_FUTURES or not list(lines), f"{name} waits for futures"


@pytest.mark.parametrize(
    "code",
    [
        "future.wait()",
        "distributed.wait([future])",
        "prefect.futures.as_completed(futures)",
        "from prefect.futures import wait",
        "from prefect.futures import as_completed as done",
        "from prefect.futures import *",
        "from distributed import Client, wait",
        "from dask.distributed import wait",
    ],
)
def test_f05_every_way_to_wait_is_seen(code: str) -> None:
    assert list(waiting(ast.parse(code))) == [1]
    assert not list(waiting(ast.parse("from distributed import Client\nfuture.result()")))


def test_f05_who_waits_must_gather_afterwards() -> None:
    wait, gather = "    wait(futures)\n", "    client.gather(futures)\n"
    assert not list(waiting_for_good(ast.parse("def f():\n" + wait + gather)))
    assert list(waiting_for_good(ast.parse("def f():\n" + gather + wait))) == [3]


def where(work: Work) -> Facts:
    (work.scratch / "device.txt").write_text(work.settings.compute.device)
    return Facts({})


anywhere, on_gpu = stage("anywhere")(where), stage("on-gpu", gpu=True)(where)


@pytest.mark.parametrize(("name", "device"), [("anywhere", "cpu"), ("on_gpu", "cuda")])
def test_a_stage_without_a_slot_leaves_the_gpu_alone(settings: Settings, name: str, device: str) -> None:
    cuda = settings.replace({"compute": {"cluster": "cuda", "device": "cuda"}})
    recipe = globals()[name].recipe(cuda, {})
    (found,) = build(cuda, name, recipe)
    store = ArtifactStore(settings.storage)
    assert store.file(found, "device.txt").read_text() == device


def test_f15_a_worker_does_not_work_for_a_flow_of_another_version(settings: Settings) -> None:
    calls.clear()
    recipe = double.recipe(settings, {"number": 1})
    with pytest.raises(OrchestrationError, match=r"99\.0"):
        build_batch(f"{__name__}:double", settings, [recipe], "", "99.0", ThreadHost())
    assert calls == []


def test_runs_are_named_after_what_they_are_of(settings: Settings) -> None:
    trained = [tasks.train.train.recipe(settings, {"seed": seed, "dataset": PARENT}) for seed in (0, 1)]
    name = tasks.train.train.run_name
    assert name("animals", trained[:1], "") == f"model animals, seed 0 {trained[0].key[:8]}"
    assert name("animals", trained[1:], "2 of 2") == f"model animals, seed 1, 2 of 2 {trained[1].key[:8]}"
    assert name("", trained, "1 of 4") == f"model 1 of 4 {trained[0].key[:8]}"
    assert name("", [PLAIN], "") == f"model {PLAIN.key[:8]}"


def test_the_only_tag_is_the_one_that_limits_gpus(settings: Settings) -> None:
    assert tasks.train.train.tags(settings) == ["gpu"]
    assert tasks.coarse.assign_cells.tags(settings) == []
    alone = settings.replace({"compute": {"gpu_slots": False}})
    assert tasks.train.train.tags(alone) == []


def test_where_things_lie_and_who_computes_decides_no_key(settings: Settings) -> None:
    """Links to the store are a setting of `storage`. The kind of device is in keys by another name."""
    named = {path.split(".")[0] for found in _stages() for path in (*found.settings, *found.weights)}
    assert not named & {"storage", "gc", "compute"}


def on(settings: Settings, device: str, **train: Any) -> Settings:
    return settings.replace({"compute": {"device": device}, "train": train})


def test_f98_a_gpu_has_keys_of_its_own(settings: Settings) -> None:
    """In every stage that may run on one, and in no other; which of several GPUs it is says nothing."""
    on_gpus = {found.name for found in _stages() if found.gpu}
    assert {"embedding-shard", "queries", "neighbors", "dataset", "model", "scores", "gate"} <= on_gpus
    for found in _stages():
        cpu, first, second = (found.recipe(on(settings, device), {}) for device in ("cpu", "cuda", "cuda:1"))
        assert "precision" not in cpu.settings  # what a CPU has made before keeps its key
        assert (first.key != cpu.key) == found.gpu, found.name
        assert first.key == second.key


def _mentioned(function: ast.FunctionDef) -> set[str]:
    """`.device`, `.clip` and so on, and the names of functions that it calls or passes on."""
    nodes = list(ast.walk(function))
    attributes = {f".{node.attr}" for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}


def test_f98_stages_that_compute_on_the_device_are_gpu_stages() -> None:
    """Whoever loads a model or reads `compute.device`, also by way of a helper, has the precision in its key
    and waits for a worker with a GPU."""
    trees = [ast.parse(path.read_text()) for path in sorted((ROOT / "tasks").glob("*.py"))]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    mentioned = {function.name: _mentioned(function) for function in functions}
    on_device = {".device", ".clip", ".encoder"}
    while reached := {name for name, names in mentioned.items() if names & on_device} - on_device:
        on_device |= reached
    gpu_stages = {found.function.__name__ for found in _stages() if found.gpu}
    assert gpu_stages == on_device & {found.function.__name__ for found in _stages()}


def test_f98_keys_name_the_precision(settings: Settings) -> None:
    gpu = on(settings, "cuda")
    precisions = [
        (tasks.embed.embed, gpu, "cuda mixed-fp16"),
        (tasks.coarse.find_neighbors, gpu, "cuda fp32"),
        (tasks.train.train, gpu, "cuda bf16"),
        (tasks.train.train, on(settings, "cuda", precision="fp32"), "cuda fp32"),
        (tasks.train.train, on(settings, "cuda", precision="fp16"), "cuda fp16"),
    ]
    for found, asked, expected in precisions:
        assert found.recipe(asked, {}).settings["precision"] == expected
    names = ("auto", "fp32", "bf16", "fp16")
    asked_of = [on(settings, device, precision=name) for device in ("cpu", "cuda") for name in names]
    assert len({tasks.train.train.recipe(one, {}).key for one in asked_of}) == 8


def test_f98_cpu_and_gpu_of_one_fleet_make_two_artifacts(settings: Settings) -> None:
    """The device is the flow's and goes with the task, so a worker never decides it."""
    store, refs = ArtifactStore(settings.storage), []
    for device in ("cpu", "cuda"):
        asked = on(settings, device)
        refs += build(asked, "on_gpu", on_gpu.recipe(asked, {}))
        assert store.file(refs[-1], "device.txt").read_text() == device
    assert refs[0].key == Recipe(stage="on-gpu", algorithm=1, settings={"inputs": {}}).key
    assert store.manifest(refs[1]).recipe.settings == {"inputs": {}, "precision": "cuda fp32"}


def test_recipes_survive_the_trip_to_a_worker(settings: Settings) -> None:
    recipe = double.recipe(settings, {"number": 1, "parents": [PARENT]})
    assert Recipe.model_validate_json(recipe.model_dump_json()).key == recipe.key
