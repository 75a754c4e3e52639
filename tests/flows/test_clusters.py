"""Clusters by settings alone: a real one on this machine, and that the others are asked for rightly."""

from __future__ import annotations

import logging
import re
import sys
from copy import deepcopy
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import dask
import pytest
import yaml
from distributed import Client

from mudg_core.errors import OrchestrationError, SettingsError
from mudg_core.settings import ComputeSettings, Settings, load_settings
from tasks.executors import clusters
from tasks.executors.clusters import (
    CREATE_MODE,
    KINDS,
    NO_DASHBOARD,
    WorkersOnDemand,
    _configuration,
    is_loopback,
    kind_of,
    options,
    scheduler,
)

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


class FakeMode(Enum):
    """As dask-kubernetes has it: it compares members, so a word of that name would mean nothing to it."""

    CREATE_ONLY = "CREATE_ONLY"


def pretend(where: str, what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`package.module:name` can be imported, and so can the packages that it lies in."""
    path, _, attribute = where.partition(":")
    for depth in range(path.count(".") + 1):
        name = ".".join(path.split(".")[: depth + 1])
        module = sys.modules.get(name) or ModuleType(name)
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
    setattr(module, attribute, what)


def install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(KINDS[name].where, FakeCluster, monkeypatch)
    if name == "kubernetes":
        pretend(CREATE_MODE, FakeMode, monkeypatch)
    monkeypatch.setattr(FakeCluster, "made", [])
    monkeypatch.setattr(FakeCluster, "error", None)


@pytest.fixture(params=["cuda", "kubernetes", "slurm"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kind of cluster whose package is there, as far as an import can tell."""
    name: str = request.param
    install(name, monkeypatch)
    return name


@pytest.fixture
def kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    install("kubernetes", monkeypatch)


def of_kind(kind: str, **more: Any) -> ComputeSettings:
    return ComputeSettings(cluster=kind, device="cuda", workers=3, memory_limit="5GiB", **more)


EXPECTED: dict[str, dict[str, Any]] = {
    "cuda": {
        "n_workers": 3,
        "threads_per_worker": 1,
        "memory_limit": "5GiB",
        "host": "127.0.0.1",
        "security": True,
        "scheduler_kwargs": NO_DASHBOARD,
        "resources": {"GPU": 1},
    },
    "kubernetes": {"n_workers": 3},
    "slurm": {
        "n_workers": 0,
        "cores": 1,
        "processes": 1,
        "memory": "5GiB",
        "security": True,
        "worker_extra_args": ["--resources", "GPU=1"],
        "scheduler_options": NO_DASHBOARD,
    },
}


def test_a_cluster_is_asked_for_with_our_options_and_the_users(kind: str) -> None:
    with scheduler(of_kind(kind, cluster_options={"extra": 7})) as address:
        [made] = FakeCluster.made
        assert (address, made.closed) == ("tls://10.1.2.3:8786", False)
        mode = {"create_mode": FakeMode.CREATE_ONLY} if kind == "kubernetes" else {}
        assert made.given == EXPECTED[kind] | mode | {"extra": 7}
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


@pytest.mark.parametrize("theirs", [None, "keys of their own"])
@pytest.mark.parametrize("kind", ["local", "slurm"])
def test_f76_clusters_make_their_own_keys_unless_the_user_says_otherwise(kind: str, theirs: object) -> None:
    assert options(ComputeSettings(cluster=kind))["security"] is True
    assert options(ComputeSettings(cluster=kind, cluster_options={"security": theirs}))["security"] == theirs


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


SPEC = Path(__file__).parents[2] / "infra/kubernetes/dask-cluster.yaml"


def asked_for(spec: Any) -> dict[str, Any]:
    """What the class of Kubernetes' clusters is given for a run with this spec."""
    with scheduler(ComputeSettings(cluster="kubernetes", cluster_options={"custom_cluster_spec": spec})):
        given: dict[str, Any] = FakeCluster.made[-1].given
    return given


@pytest.mark.parametrize("form", ["path", "mapping"])
@pytest.mark.usefixtures("kubernetes")
def test_two_runs_on_kubernetes_never_share_a_cluster(form: str) -> None:
    """A run deletes the cluster of its name when it ends, whoever else is connected to it."""
    written = yaml.safe_load(SPEC.read_text())
    before = deepcopy(written)
    asked = [asked_for(str(SPEC) if form == "path" else written) for _ in range(2)]
    specs = [one["custom_cluster_spec"] for one in asked]
    names = [spec["metadata"]["name"] for spec in specs]
    assert names[0] != names[1] and all(re.fullmatch("mudg-[0-9a-f]{8}", name) for name in names)
    assert {one["create_mode"] for one in asked} == {FakeMode.CREATE_ONLY}
    assert written == before
    for spec, name in zip(specs, names, strict=True):
        assert spec["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == name
        spec["metadata"]["name"] = before["metadata"]["name"]
        spec["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] = "mudg"
        assert spec == before


@pytest.mark.usefixtures("kubernetes")
def test_a_cluster_is_renamed_wherever_its_spec_names_it() -> None:
    affinity = {"matchExpressions": [{"key": "dask.org/cluster-name", "operator": "In", "values": ["a"]}]}
    address = "tcp://a-scheduler.a.svc.cluster.local:8786"
    spec = {
        "metadata": {"name": "a", "namespace": "a", "labels": {"dask.org/cluster-name": "a", "team": "a"}},
        "spec": {"worker": {"affinity": affinity, "env": [{"name": "X", "value": address}]}},
    }
    made = asked_for(spec)["custom_cluster_spec"]
    name = made["metadata"]["name"]
    assert name != "a"
    assert made["metadata"] == {
        "name": name,
        "namespace": "a",
        "labels": {"dask.org/cluster-name": name, "team": "a"},
    }
    worker = made["spec"]["worker"]
    assert worker["affinity"]["matchExpressions"][0]["values"] == [name]
    assert worker["env"][0]["value"] == f"tcp://{name}-scheduler.a.svc.cluster.local:8786"


@pytest.mark.usefixtures("kubernetes")
def test_a_long_name_leaves_room_for_what_the_operator_adds() -> None:
    made = asked_for({"metadata": {"name": "n" * 53}, "spec": {}})
    name = made["custom_cluster_spec"]["metadata"]["name"]
    assert len(name) == 53 and name != "n" * 53


@pytest.mark.usefixtures("kubernetes")
def test_a_name_without_a_spec_is_made_unique_too() -> None:
    compute = ComputeSettings(cluster="kubernetes", cluster_options={"name": "team"})
    for _ in range(2):
        with scheduler(compute):
            pass
    first, second = (made.given["name"] for made in FakeCluster.made)
    assert first != second and first.startswith("team-") and second.startswith("team-")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("missing.yaml", "cannot be read"),
        ("broken.yaml", "cannot be read"),
        ("other.yaml", "has no metadata.name"),
        ({"metadata": []}, "has no metadata.name"),
    ],
)
@pytest.mark.usefixtures("kubernetes")
def test_a_spec_that_is_none_is_a_settings_error(spec: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")
    (tmp_path / "other.yaml").write_text("- 1")
    given = str(tmp_path / spec) if isinstance(spec, str) else spec
    with pytest.raises(SettingsError, match=message) as caught:
        asked_for(given)
    assert "custom_cluster_spec" in str(caught.value.where) and FakeCluster.made == []


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
    """`security: null` is for whoever keeps the machine to themselves."""
    compute = ComputeSettings(workers=1, cluster_options={} if security else {"security": None})
    with (
        dask.config.set({"distributed.comm.require-encryption": False}),  # other tests' cluster wants it
        scheduler(compute) as address,
        Client(address, timeout=SECONDS) as client,
    ):
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
    with (
        caplog.at_level(logging.WARNING, "tasks.executors.clusters"),
        scheduler(ComputeSettings(dask_address=address)),
    ):
        pass
    assert ("without TLS" in caplog.text) == warned


def test_this_machine_has_many_names() -> None:
    assert is_loopback("http://localhost:4200/api") and not is_loopback("tls://10.1.2.3:1")


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
