"""What a run needs around it: a Prefect API and a Dask cluster, each started if there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import dask
from distributed import LocalCluster, Scheduler, SchedulerPlugin
from prefect import Flow
from prefect_dask import DaskTaskRunner  # type: ignore[attr-defined]

from flows.server import prefect_api
from mudg_core.encode.weights import absolute
from mudg_core.settings import ComputeSettings, Settings
from mudg_core.storage import ArtifactStore

R = TypeVar("R")

# Dask has workers give back every freed 64 KiB at once. Tensors are freed and wanted again in every step, and
# fetching their pages from the kernel anew took a third of the time of training and embedding.
DASK = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 256 << 20,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    # Dask holds a few references of ours and no arrays, so pausing a worker frees nothing: it would wait for
    # good. A worker over its limit is ended instead, and the error says so.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.scheduler.no-workers-timeout": "300s",  # workers that cannot start are an error, not a wait
}
# Its port is opened all the same. Any free one: on a fixed one, two runs on one machine would meet.
NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


@contextmanager
def session(settings: Settings) -> Iterator[Settings]:
    """The settings with absolute paths and a scheduler address that is valid inside the block."""
    settings = _absolute(settings)
    ArtifactStore(settings.storage).check()
    home = Path(settings.storage.cache_dir).with_name("prefect")
    with prefect_api(home), _scheduler(settings.compute) as address:
        yield settings.replace({"compute": {"dask_address": address}})


def call(flow: Flow[..., R], settings: Settings, *arguments: Any) -> R:
    """Runs a flow with its tasks on the scheduler that the settings name."""
    runner = dask_runner(settings.compute.dask_address)
    result: R = flow.with_options(task_runner=runner)(settings, *arguments)
    return result


def dask_runner(address: str | None = None) -> Any:
    """Untyped on purpose: prefect-dask's runner does not fit Prefect's own annotation of one."""
    return DaskTaskRunner(address=address)


class WorkersOnDemand(SchedulerPlugin):
    """Starts a cluster's workers when the first task arrives: a run that finds everything made needs none."""

    def __init__(self, cluster: LocalCluster, workers: int) -> None:
        self.cluster, self.workers = cluster, workers

    def update_graph(self, scheduler: Scheduler, **_: Any) -> None:
        self.cluster.scale(self.workers)  # type: ignore[no-untyped-call]


@contextmanager
def _scheduler(compute: ComputeSettings) -> Iterator[str]:
    if compute.dask_address:
        yield compute.dask_address
        return
    with (
        dask.config.set(DASK),
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=0,
            threads_per_worker=1,
            memory_limit=compute.memory_limit,
            host="127.0.0.1",
            scheduler_kwargs=NO_DASHBOARD,
        ) as cluster,
    ):
        cluster.scheduler.add_plugin(WorkersOnDemand(cluster, compute.workers))
        yield str(cluster.scheduler_address)


def _absolute(settings: Settings) -> Settings:
    """Dask workers have working directories of their own."""
    storage = settings.storage
    url = storage.url
    if url.startswith("file://"):
        url = f"file://{Path(url.removeprefix('file://')).expanduser().absolute()}"
    cache = Path(storage.cache_dir).expanduser().absolute()
    models = {area: {"model": absolute(getattr(settings, area).model)} for area in ("encode", "train")}
    return settings.replace({"storage": {"url": url, "cache_dir": str(cache)}, **models}, where="storage")
