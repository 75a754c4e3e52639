"""The doctor sees faults, suggests fixes, and outlives all of them."""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from prefect.exceptions import ObjectNotFound
from typer.testing import CliRunner

from mudg.cli.app import app
from mudg.ops.doctor import checks, examine, prefect_checks
from mudg.ops.doctor.examine import Finding, Installation, fault, ok
from mudg.ops.stack import health
from mudg.ops.stack.running import Stack
from mudg.ops.stack.state import Process, State, write_state
from mudg_core.settings import ComputeSettings, load_settings

PORTS = dict.fromkeys(("prefect", "s3", "s3-filer", "dask", "dask-http"), 9)


def case(tmp_path: Path, stack: Stack | None = None, **areas: Any) -> Installation:
    places = {"url": f"file://{tmp_path}/store", "cache_dir": f"{tmp_path}/cache"}
    tree = {"storage": places | areas.pop("storage", {}), **areas}
    return Installation(load_settings(overrides=tree, environ={}), tmp_path / "stack", stack)


def versions(monkeypatch: pytest.MonkeyPatch, **installed: str | None) -> None:
    real = metadata.version

    def version(name: str) -> str:
        found = installed.get(name.replace("-", "_"), "?")
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return real(name) if found == "?" else found

    monkeypatch.setattr(checks.metadata, "version", version)


def test_this_environment_is_well(tmp_path: Path) -> None:
    for check in (checks.python, checks.packages, checks.breakages):
        assert [one.level for one in check(case(tmp_path))] == ["ok"]


def test_wrong_versions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, numpy="1.26.4", rich=None, fastapi="0.151.0", sqlalchemy="2.1.0", dataclasses="0.6")
    [found] = checks.packages(case(tmp_path))
    assert found.level == "fault" and "numpy 1.26.4" in found.detail and "rich is missing" in found.detail
    broken = checks.breakages(case(tmp_path))
    assert [one.detail.split()[0] for one in broken] == ["fastapi", "sqlalchemy", "dataclasses"]
    assert all(one.level == "fault" and one.fix for one in broken)


def test_two_kinds_of_faiss_or_none_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, faiss_cpu="1.15.1", faiss_gpu_cu12="1.11")
    assert "break each other" in checks.breakages(case(tmp_path))[0].detail
    versions(monkeypatch, faiss_cpu=None, faiss_gpu_cu12=None, faiss_gpu=None, faiss_gpu_cu11=None)
    assert "no faiss" in checks.breakages(case(tmp_path))[0].detail


def test_an_old_python_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1, "final", 0))
    [found] = checks.python(case(tmp_path))
    assert found.level == "fault" and found.detail.startswith("3.9.1")


def test_a_store_that_takes_files_is_well_and_one_that_is_not_there_is_not(tmp_path: Path) -> None:
    assert checks.storage(case(tmp_path))[0].level == "ok"
    (tmp_path / "file").write_text("x")
    [found] = checks.storage(case(tmp_path, storage={"url": f"file://{tmp_path}/file/store"}))
    assert found.level == "fault" and found.fix


def test_a_store_that_does_not_answer_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    nowhere = {"url": "s3://b/p", "endpoint_url": "http://127.0.0.1:9"}
    [found] = checks.storage(case(tmp_path, storage=nowhere))
    assert found.level == "fault" and "127.0.0.1:9" in found.detail + found.fix


def test_a_server_that_does_not_answer_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        prefect_checks, "PREFECT_API_URL", SimpleNamespace(value=lambda: "http://127.0.0.1:9/api")
    )
    [found] = prefect_checks.prefect(case(tmp_path))
    assert found.level == "fault" and "does not answer" in found.detail and "mudg up" in found.fix
    monkeypatch.setattr(prefect_checks, "PREFECT_API_URL", SimpleNamespace(value=lambda: None))
    assert prefect_checks.prefect(case(tmp_path))[0].level == "ok"


class Server:
    """What the doctor asks a Prefect server for."""

    def __init__(
        self, deployments: tuple[str, ...] = (), workers: str = "ONLINE", limit: int | None = 1
    ) -> None:
        self.deployments, self.workers, self.limit = deployments, workers, limit

    def read_work_pool(self, name: str) -> Any:
        if not self.workers:
            raise ObjectNotFound(http_exc=ValueError("404"))
        return SimpleNamespace(is_paused=False, type="process")

    def read_workers_for_work_pool(self, name: str) -> Any:
        return [SimpleNamespace(name="w", status=self.workers)]

    def read_deployments(self) -> Any:
        return [SimpleNamespace(name=name) for name in self.deployments]

    def read_global_concurrency_limit_by_name(self, name: str) -> Any:
        if self.limit is None:
            raise ObjectNotFound(http_exc=ValueError("404"))
        return SimpleNamespace(limit=self.limit, active=True)


def test_a_server_without_what_runs_need_is_told(tmp_path: Path) -> None:
    some = SimpleNamespace()
    inside, outside = case(tmp_path, some), case(tmp_path)  # type: ignore[arg-type]
    poor: Any = Server(("build-index",), "OFFLINE", None)
    found = list(prefect_checks._registered(poor, inside))
    assert [(one.name, one.level) for one in found] == [
        ("work pool", "fault"),
        ("deployments", "fault"),
        ("gpu limit", "fault"),
    ]
    assert "no worker" in found[0].detail and "build-classifier" in found[1].detail
    assert {one.level for one in prefect_checks._registered(poor, outside)} == {"warning"}
    assert "no work pool" in prefect_checks._pool(Server(workers=""))[0]  # type: ignore[arg-type]
    assert prefect_checks._version("3.8.8", "3.8.8", "u").level == "ok"
    assert prefect_checks._version("3.9.0", "3.8.8", "u").level == "warning"


def test_a_scheduler_that_does_not_answer_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: str, seconds: float) -> Any:
        raise OSError(f"nobody at {address}")

    monkeypatch.setattr(health, "dask_client", refuse)
    [found] = checks.dask(case(tmp_path, compute={"dask_address": "tcp://127.0.0.1:9"}))
    assert found.level == "fault" and "tcp://127.0.0.1:9" in found.detail
    assert checks.dask(case(tmp_path))[0].level == "ok"
    [on_gpus] = checks.dask(case(tmp_path, compute={"device": "cuda"}))
    assert on_gpus.level == "ok" and "(cuda)" in on_gpus.detail
    [on_one] = checks.dask(case(tmp_path, compute={"device": "cuda:1"}))
    assert on_one.level == "fault" and "CUDA_VISIBLE_DEVICES" in on_one.fix


def test_workers_are_counted_and_asked_for_their_gpus() -> None:
    plain, gpu = {"resources": {}}, {"resources": {"GPU": 1.0}}
    levels = [
        checks.check_workers(found, ComputeSettings(workers=2, device=device)).level
        for found, device in (
            ({}, "cpu"),
            ({"a": plain}, "cpu"),
            ({"a": plain, "b": plain}, "cpu"),
            ({"a": plain, "b": plain}, "cuda"),
            ({"a": gpu, "b": gpu}, "cuda"),
        )
    ]
    assert levels == ["fault", "warning", "ok", "fault", "ok"]


def test_workers_of_another_version_are_named() -> None:
    ours, theirs = ({"packages": {"distributed": version}} for version in ("2026.8.0", "2026.7.1"))
    same = checks.check_versions({"client": ours, "scheduler": ours, "workers": {"tcp://w": ours}})
    assert same.level == "ok" and "2026.8.0" in same.detail
    other = checks.check_versions({"client": ours, "scheduler": ours, "workers": {"tcp://w": theirs}})
    assert other.level == "fault" and "2026.7.1 (tcp://w)" in other.detail


def test_devices_that_are_not_there_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    on_gpu = case(tmp_path, compute={"device": "cuda:1"})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert checks.gpu(case(tmp_path))[0].level == "ok" and checks.gpu(on_gpu)[0].level == "fault"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert checks.gpu(case(tmp_path))[0].level == "warning"
    assert "there are 1" in checks.gpu(on_gpu)[0].detail
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"device {number}")
    [found] = checks.gpu(on_gpu)
    assert found.level == "ok" and found.detail.startswith("2 × device 1")


def test_no_faiss_is_promised_to_search_on_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No search has GPU code, whichever faiss is installed."""
    import faiss
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "a card")
    findings = []
    for count in (0, 1):
        monkeypatch.setattr(faiss, "get_num_gpus", lambda count=count: count, raising=False)
        findings.append(checks.gpu(case(tmp_path, compute={"device": "cuda"})))
    assert findings[0] == findings[1] and "searches run on the CPU" in findings[0][0].detail


def test_a_full_disk_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = []
    for free in (1e9, 5e9, 50e9):
        monkeypatch.setattr(checks.shutil, "disk_usage", lambda path, free=free: SimpleNamespace(free=free))
        levels.append([one.level for one in checks.disk(case(tmp_path))])
    assert levels == [["fault"] * 2, ["warning"] * 2, ["ok"] * 2]
    assert len(checks.disk(case(tmp_path, storage={"url": "s3://b/p"}))) == 1


def test_a_missing_download_command_is_a_warning(tmp_path: Path) -> None:
    [found] = checks.img2dataset(case(tmp_path, download={"command": "no-such-command"}))
    assert found.level == "warning" and found.fix


def test_dead_parts_of_a_stack_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "stack"
    folder.mkdir()
    assert checks.stack(case(tmp_path))[0].level == "ok"
    alive = Process(name="s3", pid=os.getpid(), started=psutil.Process().create_time(), command=())
    state = State(id="x", ports=PORTS, workers=1, processes=(alive,))
    write_state(folder, state)
    [found] = checks.stack(case(tmp_path, Stack(folder, state)))
    assert found.level == "fault" and "dask-workers" in found.detail and "s3," not in found.detail
    assert "dask-workers.log" in found.fix
    [gone] = checks.stack(case(tmp_path))
    assert gone.level == "warning" and "s3" in gone.detail


def test_no_check_takes_the_doctor_down(tmp_path: Path) -> None:
    stuck = threading.Event()

    def hangs(installation: Installation) -> list[Finding]:
        stuck.wait()
        return []

    def fails(installation: Installation) -> list[Finding]:
        raise ZeroDivisionError("by zero")

    checks = {
        "hangs": hangs,
        "fails": fails,
        "imports": "no.such.module:check",
        "well": lambda case: [ok("well", "")],
    }
    try:
        found = examine.examine(case(tmp_path), checks=checks, seconds=0.5)
    finally:
        stuck.set()
    assert [(one.name, one.level) for one in found] == [
        ("hangs", "fault"),
        ("fails", "fault"),
        ("imports", "fault"),
        ("well", "ok"),
    ]
    assert "no answer within" in found[0].detail and "by zero" in found[1].detail


def test_the_command_says_it_and_ends_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [ok("a", "fine"), fault("b", "broken", "repair it")]
    monkeypatch.setattr(examine, "examine", lambda installation, progress: findings)
    done = CliRunner().invoke(app, ["doctor", "--folder", str(tmp_path)])
    assert done.exit_code == 1 and "b: repair it" in done.stdout
    told = json.loads(CliRunner().invoke(app, ["doctor", "--folder", str(tmp_path), "--json"]).stdout)
    assert told["faults"] == 1 and told["checks"][1]["fix"] == "repair it"
    monkeypatch.setattr(examine, "examine", lambda installation, progress: findings[:1])
    well = CliRunner().invoke(app, ["doctor", "--folder", str(tmp_path)])
    assert well.exit_code == 0 and "all is well" in well.stdout


def test_every_check_is_there() -> None:
    from pkgutil import resolve_name

    assert all(callable(resolve_name(check)) for check in examine.CHECKS.values() if isinstance(check, str))
