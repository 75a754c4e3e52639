"""Clusters by settings alone: a real one on this machine, and that the others are asked for rightly."""

from __future__ import annotations

import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import dask
import pytest
from distributed import Client

from flows import clusters, session
from flows.clusters import (
    KINDS,
    NO_DASHBOARD,
    WorkersOnDemand,
    _configuration,
    is_loopback,
    kind_of,
    options,
    scheduler,
)
from mudg_core.errors import OrchestrationError, SettingsError
from mudg_core.settings import ComputeSettings, Settings, load_settings

SECONDS = 60.0


class FakeCluster:
    """Stands in for a class of a package that is not installed here."""

    made: ClassVar[list[FakeCluster]] = []
    error: ClassVar[Exception | None] = None

    def __init__(self, **given: Any) -> None:
        if self.error:
            raise self.error
        self.given, self.plugins, self.scaled, self.closed = given, [], [], False
        self.scheduler = SimpleNamespace(add_plugin=self.plugins.append)
        self.scheduler_address = "tls://10.1.2.3:8786"
        self.made.append(self)

    def scale(self, workers: int) -> None:
        self.scaled.append(workers)

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True


@pytest.fixture(params=["cuda", "kubernetes", "slurm"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kind of cluster whose package is there, as far as an import can tell."""
    name: str = request.param
    where, _, attribute = KINDS[name].where.partition(":")
    for depth in range(where.count(".") + 1):
        module = ModuleType(".".join(where.split(".")[: depth + 1]))
        module.__path__ = []
        monkeypatch.setitem(sys.modules, module.__name__, module)
    setattr(module, attribute, FakeCluster)
    monkeypatch.setattr(FakeCluster, "made", [])
    monkeypatch.setattr(FakeCluster, "error", None)
    return name


def of_kind(kind: str, **more: Any) -> ComputeSettings:
    return ComputeSettings(cluster=kind, device="cuda", workers=3, memory_limit="5GiB", **more)


EXPECTED: dict[str, dict[str, Any]] = {
    "cuda": {
        "n_workers": 3,
        "threads_per_worker": 1,
        "memory_limit": "5GiB",
        "host": "127.0.0.1",
        "scheduler_kwargs": NO_DASHBOARD,
        "resources": {"GPU": 1},
    },
    "kubernetes": {"n_workers": 3},
    "slurm": {
        "n_workers": 0,
        "cores": 1,
        "processes": 1,
        "memory": "5GiB",
        "worker_extra_args": ["--resources", "GPU=1"],
        "scheduler_options": NO_DASHBOARD,
    },
}


def test_a_cluster_is_asked_for_with_our_options_and_the_users(kind: str) -> None:
    with scheduler(of_kind(kind, cluster_options={"extra": 7})) as address:
        [made] = FakeCluster.made
        assert (address, made.closed) == ("tls://10.1.2.3:8786", False)
        assert made.given == EXPECTED[kind] | {"extra": 7}
    assert made.closed


def test_a_gpu_on_this_machine_has_one_worker(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many were asked for: two would share it."""
    monkeypatch.setattr(clusters, "gpus", lambda: 1)
    with scheduler(of_kind(kind)):
        [made] = FakeCluster.made
        assert made.given["n_workers"] == {"cuda": 1, "kubernetes": 3, "slurm": 0}[kind]


def test_gpus_of_this_machine_need_no_other_setting_than_the_device() -> None:
    local = ComputeSettings(device="cuda", workers=3)
    assert kind_of(local) == "cuda" and options(local)["resources"] == {"GPU": 1}
    assert kind_of(ComputeSettings(workers=3)) == "local"
    with pytest.raises(SettingsError, match="a worker for each GPU") as raised:
        kind_of(ComputeSettings(device="cuda:1"))
    assert "CUDA_VISIBLE_DEVICES" in raised.value.fix


def test_the_users_options_win(kind: str) -> None:
    name = next(iter(EXPECTED[kind].keys() - {"n_workers"}), "image")
    assert options(of_kind(kind, cluster_options={name: "mine"}))[name] == "mine"


def test_workers_start_when_there_is_work_where_that_is_possible(kind: str) -> None:
    with scheduler(of_kind(kind)):
        [made] = FakeCluster.made
        if kind != "slurm":
            assert (made.scaled, made.plugins) == ([3], [])
            return
        assert made.scaled == []
        [plugin] = made.plugins
        assert isinstance(plugin, WorkersOnDemand)
        plugin.update_graph(made.scheduler)
        assert made.scaled == [3]


def test_workers_without_a_gpu_do_not_offer_one() -> None:
    assert "worker_extra_args" not in options(ComputeSettings(cluster="slurm"))


@pytest.mark.parametrize("error", [TypeError("no option 'extra'"), ValueError("too many workers")])
def test_refused_options_are_a_settings_error(kind: str, error: Exception) -> None:
    FakeCluster.error = error
    with (
        pytest.raises(SettingsError, match="FakeCluster refuses its options") as caught,
        scheduler(of_kind(kind)),
    ):
        pass
    assert str(error) in caught.value.what and KINDS[kind].package in caught.value.fix


def test_a_cluster_that_does_not_start_is_named(kind: str) -> None:
    FakeCluster.error = ConnectionError("no sbatch")
    message = rf"\({kind}\) did not start: no sbatch"
    with pytest.raises(OrchestrationError, match=message) as caught, scheduler(of_kind(kind)):
        pass
    assert "compute.dask_address" in caught.value.fix


@pytest.mark.parametrize("kind", ["cuda", "kubernetes", "slurm"])
def test_a_missing_package_is_named_with_its_cure(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, KINDS[kind].where.partition(":")[0].partition(".")[0], None)
    message = f"{KINDS[kind].package} cannot be imported"
    with pytest.raises(SettingsError, match=message) as caught, scheduler(of_kind(kind)):
        pass
    assert f"pip install {KINDS[kind].package}" in caught.value.fix


def test_a_jobs_wait_in_the_queue_is_no_error() -> None:
    name = "distributed.scheduler.no-workers-timeout"
    with dask.config.set(_configuration(ComputeSettings(cluster="slurm", task_timeout_seconds=7200))):
        assert dask.config.get(name) == "7200.0s"
    with dask.config.set(_configuration(ComputeSettings())):
        assert dask.config.get(name) == "300s"
        assert dask.config.get("distributed.deploy.lost-worker-timeout") == "300s"


@pytest.mark.parametrize("security", [False, True], ids=["plain", "tls"])
def test_a_real_cluster_starts_workers_for_work_and_lets_a_client_in(security: bool) -> None:
    compute = ComputeSettings(workers=1, cluster_options={"security": True} if security else {})
    with scheduler(compute) as address, Client(address, timeout=SECONDS) as client:
        assert address.startswith("tls://127.0.0.1:" if security else "tcp://127.0.0.1:")
        assert client.nthreads() == {}
        assert client.submit(sum, [1, 2]).result(timeout=SECONDS) == 3
        assert list(client.nthreads().values()) == [1]


def test_an_address_wins_and_nothing_is_started(kind: str) -> None:
    with scheduler(of_kind(kind, dask_address="tcp://127.0.0.1:9")) as address:
        assert address == "tcp://127.0.0.1:9"
    assert FakeCluster.made == []


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://10.1.2.3:8786", True),
        ("10.1.2.3:8786", True),
        ("tcp://scheduler:8786", True),
        ("tcp://[fd00::1]:8786", True),
        ("ucx://10.1.2.3:8786", True),
        ("tcp://localhost.example.org:8786", True),
        ("tls://10.1.2.3:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("127.8.9.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("localhost:8786", False),
        ("inproc://10.1.2.3/7/1", False),
    ],
)
def test_f76_dask_on_the_network_without_tls_is_warned_of(
    address: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "flows.clusters"), scheduler(ComputeSettings(dask_address=address)):
        pass
    assert ("without TLS" in caplog.text) == warned


def test_workers_elsewhere_cannot_reach_a_private_prefect_server(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "flows.session"):
        session.warn_if_unreachable("http://127.0.0.1:4200/api", "tls://127.0.0.1:1")
        session.warn_if_unreachable("http://prefect:4200/api", "tls://10.1.2.3:1")
        assert caplog.text == ""
        session.warn_if_unreachable("http://127.0.0.1:4200/api", "tls://10.1.2.3:1")
    assert "PREFECT_API_URL" in caplog.text
    assert is_loopback("http://localhost:4200/api")


def test_settings_of_clusters_come_from_the_environment() -> None:
    given = {
        "MUDG_COMPUTE__CLUSTER": "slurm",
        "MUDG_COMPUTE__CLUSTER_OPTIONS": "{queue: gpu, walltime: '02:00:00'}",
        "MUDG_COMPUTE__CLUSTER_OPTIONS__ACCOUNT": "vision",
    }
    compute = load_settings(environ=given).compute
    assert compute.cluster_options == {"queue": "gpu", "walltime": "02:00:00", "account": "vision"}
    assert Settings.model_validate_json(load_settings(environ=given).model_dump_json()).compute == compute


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cluster": "cuda"}, "goes with device: cuda"),
        ({"cluster": "pbs"}, r"compute\.cluster"),
        ({"cluster_options": {"n_workers": 3}}, "use compute.workers"),
        ({"cluster_options": {"asynchronous": True}}, "asynchronous"),
    ],
)
def test_f59_contradictions_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(overrides={"compute": given}, environ={})
