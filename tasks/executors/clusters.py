"""The Dask cluster that a run computes on, by settings alone.

`compute.dask_address` names one that is there already. Without it, `compute.cluster` says what is started for
the time of the run: workers on this machine, one for each of its GPUs, pods of Kubernetes, or jobs of SLURM.
All four are the same to the flows, which see nothing but the scheduler's address.
"""

from __future__ import annotations

import logging
import re
import secrets
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from multiprocessing import resource_tracker
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from urllib.parse import urlsplit

import dask
import yaml
from distributed import Scheduler, SchedulerPlugin

from mudg_core.errors import OrchestrationError, SettingsError
from mudg_core.settings import ComputeSettings
from mudg_core.yaml_text import ClusterLoader
from mudg_core.yaml_text import load as load_yaml

log = logging.getLogger(__name__)

# Dask has workers give back every freed 64 KiB at once. Tensors are freed and wanted again in every step, and
# fetching their pages from the kernel anew took a third of the time of training and embedding.
# Workers that somebody else starts get the same from infra/docker/dask.yaml.
DASK = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 256 << 20,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    # Dask holds a few references of ours and no arrays, so pausing a worker frees nothing: it would wait for
    # good. A worker over its limit is ended instead, and the error says so.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.scheduler.no-workers-timeout": "300s",  # workers that cannot start are an error, not a wait
    # By HTTP, which has neither password nor TLS, Dask would show tasks and logs to any page or user.
    "distributed.scheduler.http.routes": ["distributed.http.health"],
    "distributed.worker.http.routes": ["distributed.http.health"],
}
# Its port is opened all the same. Any free one: on a fixed one, two runs on one machine would meet.
NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
ENCRYPTED = ("tls", "wss", "inproc")
CREATE_MODE = "dask_kubernetes.operator.kubecluster.kubecluster:CreateMode"
CLUSTER_LABEL = "dask.org/cluster-name"
NAME_LENGTH = 53 - len("-01234567")  # the operator allows 53, as it appends `-scheduler` to them


@dataclass(frozen=True)
class Kind:
    """A class of clusters. `on_demand`: its scheduler runs in this process and can start workers late."""

    where: str
    package: str
    on_demand: bool = False


KINDS = {
    "local": Kind("distributed:LocalCluster", "distributed", on_demand=True),
    "cuda": Kind("dask_cuda:LocalCUDACluster", "dask-cuda"),
    "kubernetes": Kind("dask_kubernetes.operator:KubeCluster", "dask-kubernetes"),
    "slurm": Kind("dask_jobqueue:SLURMCluster", "dask-jobqueue", on_demand=True),
}


def kind_of(compute: ComputeSettings) -> str:
    """On this machine's GPUs there is a worker for each of them, so that no two tasks can ever share one."""
    if compute.cluster != "local" or compute.device == "cpu":
        return compute.cluster
    if compute.device != "cuda":
        raise SettingsError(
            what=f"compute.device is {compute.device}, and a cluster has a worker for each GPU",
            where="compute.device",
            fix="say cuda, and CUDA_VISIBLE_DEVICES in the environment for some of them alone",
        )
    return "cuda"


def gpus() -> int:
    """Of this machine."""
    import torch

    return torch.cuda.device_count()


@contextmanager
def scheduler(compute: ComputeSettings) -> Iterator[str]:
    """The address of the cluster to use; one that was started here ends with the block."""
    if compute.dask_address:
        warn_if_open(compute.dask_address)
        yield compute.dask_address
        return
    with dask.config.set(_configuration(compute)), _deaf_to_ctrl_c(compute) as cluster:
        if KINDS[kind_of(compute)].on_demand:
            cluster.scheduler.add_plugin(WorkersOnDemand(cluster, compute.workers))
        else:
            cluster.scale(_workers(compute))  # one of Kubernetes that has a spec heeds no `n_workers`
        address = str(cluster.scheduler_address)
        warn_if_open(address)
        with dask.config.set(_credentials(address, getattr(cluster, "security", None))):
            yield address


class WorkersOnDemand(SchedulerPlugin):
    """Starts a cluster's workers when the first task arrives: a run that finds everything made needs none."""

    def __init__(self, cluster: Any, workers: int) -> None:
        self.cluster, self.workers = cluster, workers

    def update_graph(self, scheduler: Scheduler, **_: Any) -> None:
        self.cluster.scale(self.workers)


def _workers(compute: ComputeSettings) -> int:
    """Not more of them than GPUs, or two would share one."""
    if kind_of(compute) != "cuda":
        return compute.workers
    return min(compute.workers, gpus() or compute.workers)


def options(compute: ComputeSettings) -> dict[str, Any]:
    """What the cluster's class is called with: one task at a time in each worker, as torch has threads of its
    own, a GPU that tasks can ask for, and TLS where the class makes its own keys; then whatever the settings
    say. One of Kubernetes also gets a name of its own (`_with_own_name`)."""
    workers, memory = _workers(compute), compute.memory_limit
    here = {"threads_per_worker": 1, "memory_limit": memory, "host": "127.0.0.1"}
    own_keys = {"security": True}  # whoever reaches a scheduler runs code, and others reach 127.0.0.1, too
    here |= {"scheduler_kwargs": NO_DASHBOARD, **own_keys}
    gpu = {"worker_extra_args": ["--resources", "GPU=1"]} if compute.device.startswith("cuda") else {}
    ours: dict[str, dict[str, Any]] = {
        "local": {"n_workers": 0, **here},
        "cuda": {"n_workers": workers, **here, "resources": {"GPU": 1}},
        "kubernetes": {"n_workers": workers},
        "slurm": {"n_workers": 0, "cores": 1, "processes": 1, "memory": memory, **own_keys, **gpu},
    }
    ours["slurm"]["scheduler_options"] = NO_DASHBOARD
    return ours[kind_of(compute)] | compute.cluster_options


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine can reach `tcp://host:port`, or any other form of address."""
    host = urlsplit(address if "://" in address else f"tcp://{address}").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_if_open(address: str) -> None:
    """Whoever reaches a scheduler can run code on its workers, and without TLS anybody may be it."""
    if is_loopback(address) or address.startswith(tuple(f"{scheme}://" for scheme in ENCRYPTED)):
        return
    log.warning(
        "the Dask scheduler %s can be reached over the network without TLS: whoever reaches it can run code "
        "on the workers. Keep it in a closed network, or use tls:// (infra/README.md, TLS).",
        address,
    )


def _configuration(compute: ComputeSettings) -> dict[str, Any]:
    """Jobs may wait in SLURM's queue as long as a task may take. Elsewhere a nanny starts a worker again that
    died, on a busy machine in more than the 15 s after which Dask would give up both, for good."""
    if compute.cluster == "slurm":
        return DASK | {"distributed.scheduler.no-workers-timeout": f"{compute.task_timeout_seconds}s"}
    return DASK | {"distributed.deploy.lost-worker-timeout": "300s"}


def _deaf_to_ctrl_c(compute: ComputeSettings) -> AbstractContextManager[Any]:
    """A cluster whose processes do not hear Ctrl-C, which a terminal sends to all that it runs: this process
    ends them in order. They have it blocked from Dask's thread, which starts them, and so has all that they
    start. Python's resource tracker comes first, as whoever starts it hears the signal again."""
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        return _start(compute)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(compute: ComputeSettings) -> AbstractContextManager[Any]:
    name = kind_of(compute)
    kind = KINDS[name]
    make = _class(kind, name)
    given = options(compute)
    if name == "kubernetes":
        given = {"create_mode": resolve_name(CREATE_MODE).CREATE_ONLY} | _with_own_name(given)
    try:
        started: AbstractContextManager[Any] = make(**given)
    except (TypeError, ValueError) as error:
        raise SettingsError(
            what=f"{make.__name__} refuses its options: {error}",
            where="compute.cluster_options",
            fix=f"see the documentation of {kind.package}, and compute.workers",
        ) from error
    except Exception as error:  # of whatever kind its library raises
        raise OrchestrationError(
            what=f"the cluster ({name}) did not start: {error}",
            where="compute.cluster",
            fix="see that its machinery is there, or start one yourself and set compute.dask_address",
        ) from error
    return started


def _class(kind: Kind, name: str) -> Any:
    try:
        return resolve_name(kind.where)
    except ImportError as error:
        raise SettingsError(
            what=f"the cluster is of the kind {name}, and {kind.package} cannot be imported: {error}",
            where="compute.cluster, compute.device",
            fix=f"install it beside mudg (`pip install {kind.package}`), or set compute.dask_address",
        ) from error


def _with_own_name(given: dict[str, Any]) -> dict[str, Any]:
    """A cluster of Kubernetes is known by its name and deleted with the run. Under a name that others use, a
    run would join theirs, scale it, and delete it when it ends."""
    suffix = f"-{secrets.token_hex(4)}"
    if "custom_cluster_spec" in given:
        spec = _cluster_spec(given["custom_cluster_spec"])
        old = spec["metadata"]["name"]
        new = old[:NAME_LENGTH] + suffix
        spec = _renamed(spec, old, new)
        return given | {"custom_cluster_spec": spec | {"metadata": spec["metadata"] | {"name": new}}}
    if "name" in given:
        return given | {"name": given["name"][:NAME_LENGTH] + suffix}
    return given  # dask-kubernetes makes one up


def _cluster_spec(given: str | dict[str, Any]) -> dict[str, Any]:
    where = "compute.cluster_options.custom_cluster_spec"
    try:
        spec = load_yaml(Path(given).read_text(), ClusterLoader) if isinstance(given, str) else given
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(
            what=f"the cluster's spec {given} cannot be read: {error}",
            where=where,
            fix="name a YAML file that is on this machine; infra/kubernetes/dask-cluster.yaml is one",
        ) from error
    try:
        named = isinstance(spec["metadata"]["name"], str)
    except (TypeError, KeyError):
        named = False
    if not named:
        raise SettingsError(
            what="the cluster's spec has no metadata.name",
            where=where,
            fix="give a DaskCluster, such as infra/kubernetes/dask-cluster.yaml",
        )
    found: dict[str, Any] = spec
    return found


def _renamed(tree: Any, old: str, new: str, key: str = "") -> Any:
    """The spec with another name wherever it means its cluster: in labels, selectors of labels, and the
    address of its scheduler. The same word elsewhere may be a namespace or an image."""
    if isinstance(tree, dict):
        label = tree.get("key", "")  # {key: …, operator: In, values: […]}
        return {
            name: _renamed(value, old, new, label if name == "values" else name)
            for name, value in tree.items()
        }
    if isinstance(tree, list):
        return [_renamed(value, old, new, key) for value in tree]
    if not isinstance(tree, str):
        return tree
    if key == CLUSTER_LABEL and tree == old:
        return new
    return re.sub(rf"(?<![\w-]){re.escape(old)}-scheduler(?![\w-])", f"{new}-scheduler", tree)


def _credentials(address: str, security: Any) -> dict[str, Any]:
    """A cluster that made its own keys (`security: true`) gives them to a client that has the cluster. Ours
    knows an address only, so it finds them in Dask's configuration."""
    if not address.startswith("tls://") or security is None or not security.tls_client_cert:
        return {}
    return {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": security.tls_ca_file,
        "distributed.comm.tls.client.cert": security.tls_client_cert,
        "distributed.comm.tls.client.key": security.tls_client_key,
    }
