"""Stages as Prefect tasks on the workers of a Dask cluster.

One Prefect task makes a batch of artifacts: Prefect costs a fifth of a second a task, so what is small comes
many at a time, and what a stage spreads out goes to Dask directly. What the store has is recorded in Prefect
as Cached without troubling a worker, so a lost Prefect database costs nothing and a run with nothing to do
starts no worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dask import annotate  # type: ignore[attr-defined]
from distributed import Future
from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger
from prefect.states import Completed

from mudg_core.retries import STAGE_TASKS
from mudg_core.settings import Settings
from mudg_core.stage_names import stage_name
from mudg_core.storage import ArtifactRef, Recipe
from tasks.code import CODE
from tasks.executors import spread, stopping
from tasks.executors.dask_reports import listen, send
from tasks.executors.pending import SUBMITTING, TaskBatch, scheduler_named
from tasks.executors.progress import progress_bar
from tasks.policy import Stage, build_batch
from tasks.run import Host, Progress, Run
from tasks.stage_progress import Report

if TYPE_CHECKING:
    from mudg_core.index.kmeans import PairShard, Pool

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class PrefectOnDask:
    """The executor of runs inside a Prefect flow whose task runner is a Dask cluster."""

    def begin(
        self, run: Run, stage: Stage[...], name: str, recipes: list[Recipe], turn: int
    ) -> TaskBatch | list[ArtifactRef]:
        chosen = _named(execute, stage, name, stage.tags(run.settings))
        compute = run.settings.compute
        with _placement(stage, run.settings, turn), scheduler_named(name, compute, *SUBMITTING):
            future = chosen.submit(stage.where, run.settings, recipes, run.part, CODE)
        on_cluster: object = getattr(future, "wrapped_future", None)
        if isinstance(on_cluster, Future):
            listen(on_cluster.client)

        def again() -> TaskBatch | list[ArtifactRef]:
            found = [run.store.find(recipe) for recipe in recipes]
            known = [ref for ref in found if ref is not None]
            if len(known) < len(recipes):
                return self.begin(run, stage, name, recipes, turn)
            self.record_cached(stage, name, known)
            return known

        return TaskBatch(name, future, again, compute, len(recipes))

    def record_cached(self, stage: Stage[...], name: str, refs: Sequence[ArtifactRef]) -> None:
        _named(record_cached, stage, name, ())([str(ref) for ref in refs])

    def progress_bar(self, name: str, about: str) -> AbstractContextManager[Progress]:
        return progress_bar(name, about)


class WorkerHost(Host):
    """What a stage finds on a Dask worker."""

    def spread(self, function: Callable[[T], R], items: Sequence[T], seconds: float) -> list[R]:
        return spread.spread(function, items, seconds)

    def pair_pool(
        self, load: Callable[[slice], PairShard], split: Callable[[int], list[slice]], seconds: float
    ) -> AbstractContextManager[Pool]:
        return spread.pair_pool(load, split, seconds)

    def stopping(self) -> AbstractContextManager[Callable[[], bool]]:
        return stopping.stopping()

    def unwanted(self) -> Callable[[], bool]:
        return stopping.unwanted()

    def progress_bar(self, name: str, about: str) -> AbstractContextManager[Progress]:
        return progress_bar(name, about)

    def report(self, report: Report) -> None:
        send(report)

    def logger(self) -> logging.Logger | logging.LoggerAdapter[Any]:
        """Prefect's, where it runs the stage: its lines are seen beside the run."""
        try:
            return get_run_logger()
        except MissingContextError:
            return logging.getLogger(__name__)


async def _is_retryable(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    try:
        await state.aresult(raise_on_failure=True)
    except Exception as error:
        return STAGE_TASKS.retryable(error)
    return False


@task(
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=STAGE_TASKS.retries,
    retry_delay_seconds=list(replace(STAGE_TASKS, jitter=0.0).delays()),
    retry_jitter_factor=STAGE_TASKS.jitter,
    retry_condition_fn=_is_retryable,
    log_prints=False,
)
def execute(
    where: str, settings: Settings, recipes: list[Recipe], part: str = "", code: str = CODE
) -> list[dict[str, str]]:
    """The only Prefect task that computes."""
    return [ref.model_dump() for ref in build_batch(where, settings, recipes, part, code, WorkerHost())]


@task(cache_policy=NO_CACHE, persist_result=False, log_prints=False)
def record_cached(artifacts: list[str]) -> State[None]:
    """Tells Prefect of a batch that the store has; called in the flow's own process, as there is no work."""
    return Completed(name="Cached", message="found in the store")


def _named(chosen: Task[P, R], stage: Stage[...], name: str, tags: Iterable[str]) -> Task[P, R]:
    """As people see it in Prefect's UI, which fills in braces."""
    shown = name.replace("{", "{{").replace("}", "}}")
    return chosen.with_options(name=stage_name(stage.name), task_run_name=shown, tags=tags)


def _placement(stage: Stage[...], settings: Settings, turn: int) -> AbstractContextManager[Any]:
    """Runs take turns on a cluster that they share: the second task of a stage lets the first of any other
    pass, and so on, so a target need not wait for the thousand tasks of an index build. What a task itself
    gives to the cluster comes before them all."""
    resources = stage.resources(settings)
    return annotate(priority=-turn, **({"resources": resources} if resources else {}))
