"""How every stage is cached, retried, timed out, named and placed: said once, here.

A stage is a function from artifacts to the files of a new artifact. `@stage` wraps it so that calling it runs
one Prefect task. Prefect's cache key is the artifact's content key, so the UI shows Cached exactly where
the store would have found the artifact anyway, and a lost Prefect database costs nothing.
"""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask import annotate  # type: ignore[attr-defined]
from prefect import Task, task
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture

from mudg_core.encode.weights import weights_digest
from mudg_core.errors import MudgError, OrchestrationError
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.run import Run

if TYPE_CHECKING:
    from mudg_core.encode.models import Clip

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """What a stage's function is given besides its inputs."""

    store: ArtifactStore
    settings: Settings
    scratch: Path

    def clip(self, name: str) -> Clip:
        """A model, on the device that the settings name. Torch is loaded here and not with the stages,
        because a flow that finds everything made imports them too."""
        from mudg_core.encode.models import load_clip

        return load_clip(name, self.settings.compute.device)


@dataclass(frozen=True)
class Pending:
    """Artifacts of one stage that are being made."""

    run: Run
    stage: str
    found: list[ArtifactRef | None]
    futures: list[PrefectFuture[list[dict[str, str]]]]

    def results(self) -> list[ArtifactRef]:
        """Always by `.result()`: a bare `.wait()` hides that a worker was killed.

        What the store had is taken from the store: Prefect may remember an artifact that was since rebuilt.
        """
        made: list[ArtifactRef] = []
        cached = sum(ref is not None for ref in self.found)
        with self.run.watch(self.stage, len(self.found), cached) as done:
            for future in self.futures:
                batch = _result(future, self.stage, self.run.settings.compute.task_timeout_seconds)
                made.extend(ArtifactRef.model_validate(ref) for ref in batch)
                done(len(made))
        return [found or ref for found, ref in zip(self.found, made, strict=True)]


@dataclass(frozen=True)
class Stage:
    """A stage of the pipeline; call it with a run and its inputs to get the artifact's reference."""

    name: str
    algorithm: int
    settings: tuple[str, ...]
    weights: tuple[str, ...]
    gpu: bool
    function: Callable[..., Facts]

    def __call__(self, run: Run, **inputs: Any) -> ArtifactRef:
        return self.map(run, [inputs])[0]

    def map(self, run: Run, many: Iterable[Inputs], per_task: int = 1) -> list[ArtifactRef]:
        """One artifact for each set of inputs, `per_task` of them in one Prefect task, in order."""
        return self.start(run, many, per_task).results()

    def start(self, run: Run, many: Iterable[Inputs], per_task: int = 1) -> Pending:
        """The same without waiting, so that independent work can be started before."""
        recipes = [self.recipe(run.settings, inputs) for inputs in many]
        found = [run.store.find(recipe) for recipe in recipes]
        batches = [slice(first, first + per_task) for first in range(0, len(recipes), per_task)]
        futures = [self._submit(run, recipes[part], fresh=not all(found[part])) for part in batches]
        return Pending(run, self.name, found, futures)

    def recipe(self, settings: Settings, inputs: Inputs) -> Recipe:
        """Artifacts among the inputs are parents; everything else is a setting of this one artifact."""
        parents = {name: value for name, value in inputs.items() if _is_artifact(value)}
        values = {name: value for name, value in inputs.items() if name not in parents}
        return Recipe(
            stage=self.name,
            algorithm=self.algorithm,
            settings={"inputs": values, **{path: _setting(settings, path) for path in self.settings}},
            parents=parents,
            weights={path: weights_digest(_setting(settings, path)) for path in self.weights},
        )

    def make(self, recipe: Recipe, work: Work) -> Facts:
        values = recipe.settings["inputs"]
        assert isinstance(values, dict)
        parents = {role: list(v) if isinstance(v, tuple) else v for role, v in recipe.parents.items()}
        return self.function(work, **parents, **values)

    def _submit(self, run: Run, recipes: list[Recipe], *, fresh: bool) -> PrefectFuture[list[dict[str, str]]]:
        """`fresh` skips Prefect's own cache when the store has lost an artifact that Prefect remembers."""
        configured = execute.with_options(
            name=self.name,
            task_run_name=f"{self.name} {recipes[0].key[:8]}",
            tags=["gpu"] if self.gpu else [],
            refresh_cache=fresh,
        )
        where = f"{self.function.__module__}:{self.function.__name__}"
        with self._placement(run.settings):
            return configured.submit(where, run.settings, recipes)

    def _placement(self, settings: Settings) -> AbstractContextManager[Any]:
        if self.gpu and settings.compute.device.startswith("cuda"):
            return annotate(resources={"GPU": 1})
        return nullcontext()


def stage(
    name: str,
    *,
    algorithm: int = 1,
    settings: tuple[str, ...] = (),
    weights: tuple[str, ...] = (),
    gpu: bool = False,
) -> Callable[[Callable[..., Facts]], Stage]:
    """Declares a stage. `settings` and `weights` are the settings paths that decide its result.

    Raise `algorithm` whenever the code behind a stage changes what it makes.
    """
    return lambda function: Stage(name, algorithm, settings, weights, gpu, function)


def _result(future: PrefectFuture[list[dict[str, str]]], name: str, seconds: float) -> list[dict[str, str]]:
    """Waits here and not in the task: Prefect cannot interrupt a task in a Dask worker's thread."""
    try:
        return future.result(timeout=seconds)
    except TimeoutError as error:
        raise OrchestrationError(
            what=f"stage {name} was not done after {seconds:.0f} s",
            fix="see that a worker is free (and has the GPU resource), or raise compute.task_timeout_seconds",
        ) from error


def _content_key(_: TaskRunContext, parameters: dict[str, Any]) -> str:
    keys = "\n".join(recipe.key for recipe in parameters["recipes"])
    return f"mudg-{hashlib.sha256(keys.encode()).hexdigest()}"


async def _can_help(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Our own errors say whether trying again can help; unknown ones (a lost connection) get their chance."""
    try:
        await state.aresult(raise_on_failure=True)
    except MudgError as error:
        return error.retryable
    except (AssertionError, KeyError, TypeError, ValueError):
        return False
    except Exception:
        return True
    return False


@task(
    cache_key_fn=_content_key,
    cache_expiration=timedelta(days=3650),
    persist_result=True,
    result_serializer="json",
    retries=2,
    retry_delay_seconds=[2, 10],
    retry_jitter_factor=0.5,
    retry_condition_fn=_can_help,
    log_prints=False,
)
def execute(where: str, settings: Settings, recipes: list[Recipe]) -> list[dict[str, str]]:
    """Builds (or adopts) the artifacts of a batch of recipes. The only Prefect task there is."""
    chosen: Stage = pkgutil.resolve_name(where)
    store = ArtifactStore(settings.storage)

    def build(recipe: Recipe) -> ArtifactRef:
        return store.build(recipe, lambda scratch: chosen.make(recipe, Work(store, settings, scratch)))

    return [build(recipe).model_dump() for recipe in recipes]


def _is_artifact(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(isinstance(item, ArtifactRef) for item in value)
    return isinstance(value, ArtifactRef)


def _setting(settings: Settings, path: str) -> Any:
    value: Any = settings
    for part in path.split("."):
        value = getattr(value, part)
    return value
