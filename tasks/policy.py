"""How every stage is cached, retried, timed out, named and placed: said once, here.

A stage is a function from artifacts to the files of a new artifact. `@stage` wraps it so that calling it runs
one Prefect task. The store alone says what is made already: Prefect's own cache would be a second opinion,
and one that can be half written when a run is killed. What the store has is recorded in Prefect as Cached
without troubling a worker, so a lost Prefect database costs nothing and a run with nothing to do starts none.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dask import annotate  # type: ignore[attr-defined]
from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.states import Completed

from mudg_core.encode.weights import weights_digest
from mudg_core.errors import MudgError, UnwantedError
from mudg_core.settings import PRECISION, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Checkpoints, Facts, Recipe
from tasks.executors.progress import Progress, progress_bar, silent
from tasks.code import CODE, check_code
from tasks.pending import SUBMITTING, Batch, Pending, scheduler_named
from tasks.run import Run
from tasks.executors.stopping import unwanted

if TYPE_CHECKING:
    from mudg_core.encode.models import Clip

P = ParamSpec("P")
R = TypeVar("R")
Inputs = Mapping[str, Any]

# Inputs that tell artifacts of one stage apart for people, and the words before them.
TOLD = {"variant": "", "seed": "seed ", "first_row": "from row "}


@dataclass(frozen=True)
class Work:
    """What a stage's function is given besides its inputs."""

    store: ArtifactStore
    settings: Settings
    scratch: Path
    checkpoints: Checkpoints
    encoders: dict[str, Clip] = field(default_factory=dict)
    # To be told the share of the work that is done, as often as one likes. `progress` raises UnwantedError
    # once nobody wants the work any more; `show` never raises, for whoever has something to save first.
    progress: Progress = silent
    show: Progress = silent

    def clip(self, name: str) -> Clip:
        """A model, on the device that the settings name. Torch is loaded here and not with the stages,
        because a flow that finds everything made imports them too."""
        from mudg_core.encode.models import load_clip

        return load_clip(name, self.settings.compute.device)

    def encoder(self, name: str) -> Clip:
        """The same for a stage that leaves the model as it is: loaded once for all artifacts of a task."""
        if name not in self.encoders:
            self.encoders[name] = self.clip(name)
        return self.encoders[name]


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
        run.use(parent for recipe in recipes for parent in recipe.all_parents())
        found = [run.store.find(recipe) for recipe in recipes]
        run.use(ref for ref in found if ref is not None)
        parts = [slice(first, first + per_task) for first in range(0, len(recipes), per_task)]
        batches, turn = [], 0
        for number, part in enumerate(parts, 1):
            count = f"{number} of {len(parts)}" if len(parts) > 1 else ""
            name = self.run_name(run.part, recipes[part], count)
            turn += None in found[part]
            batches.append(self._begin(run, name, recipes[part], found[part], turn))
        cached = sum(ref is not None for ref in found)
        return Pending(run, self.name, len(found), cached, per_task, batches)

    def recipe(self, settings: Settings, inputs: Inputs) -> Recipe:
        """Artifacts among the inputs are parents; everything else is a setting of this one artifact."""
        parents = {name: value for name, value in inputs.items() if _is_artifact(value)}
        values = {name: value for name, value in inputs.items() if name not in parents}
        chosen = {path: _setting(settings, path) for path in self.settings} | self.precision(settings)
        return Recipe(
            stage=self.name,
            algorithm=self.algorithm,
            settings={"inputs": values, **chosen},
            parents=parents,
            weights={path: weights_digest(_setting(settings, path)) for path in self.weights},
        )

    def precision(self, settings: Settings) -> dict[str, str]:
        """What a GPU computes in, which is part of the key because its bits are not a CPU's. Nothing for a
        CPU, whose float32 is the rule; another precision in training there is a setting that keys have."""
        if not self.gpu or not settings.compute.device.startswith("cuda"):
            return {}
        if "train.precision" in self.settings:
            return {PRECISION: f"cuda {settings.train.precision_on(settings.compute.device)}"}
        return {PRECISION: "cuda mixed-fp16" if self.weights else "cuda fp32"}

    def make(self, recipe: Recipe, work: Work) -> Facts:
        values = recipe.settings["inputs"]
        assert isinstance(values, dict)
        parents = {role: list(v) if isinstance(v, tuple) else v for role, v in recipe.parents.items()}
        return self.function(work, **parents, **values)

    def _begin(
        self, run: Run, name: str, recipes: list[Recipe], found: list[ArtifactRef | None], turn: int
    ) -> Batch:
        known = [ref for ref in found if ref is not None]
        if len(known) == len(recipes):
            self._named(recall, name, ())([str(ref) for ref in known])
            return Batch(name, known)
        where = f"{self.function.__module__}:{self.function.__name__}"
        chosen = self._named(execute, name, self.tags(run.settings))
        with self._placement(run.settings, turn), scheduler_named(name, run.settings.compute, *SUBMITTING):
            future = chosen.submit(where, run.settings, recipes, run.part, CODE)

        def again() -> Batch:
            return self._begin(run, name, recipes, [run.store.find(recipe) for recipe in recipes], turn)

        return Batch(name, future, again)

    def _named(self, chosen: Task[P, R], name: str, tags: Iterable[str]) -> Task[P, R]:
        """As people see it in Prefect's UI, which fills in braces."""
        said = name.replace("{", "{{").replace("}", "}}")
        return chosen.with_options(name=self.name, task_run_name=said, tags=tags)

    def run_name(self, part: str, recipes: Sequence[Recipe], count: str) -> str:
        """`model animals, seed 0 3fa9c2d1`: the stage, what it is of as far as a word says that, and the
        beginning of its key."""
        inputs: Any = recipes[0].settings["inputs"]
        own = [f"{words}{inputs[name]}" for name, words in TOLD.items() if name in inputs]
        what = ", ".join(item for item in (part, *(own if len(recipes) == 1 else ()), count) if item)
        return f"{self.name} {what} {recipes[0].key[:8]}" if what else f"{self.name} {recipes[0].key[:8]}"

    def tags(self, settings: Settings) -> list[str]:
        """Prefect can limit how many tasks of a tag run at a time, which we do for `gpu`. There is no other:
        a task that has any asks the server for a slot. One that is cached has none, or it would wait."""
        return ["gpu"] if self.gpu and settings.compute.gpu_slots else []

    def _placement(self, settings: Settings, turn: int) -> AbstractContextManager[Any]:
        """Runs take turns on a cluster that they share: the second task of a stage lets the first of any
        other pass, and so on, so a target need not wait for the thousand tasks of an index build. What a task
        itself gives to the cluster comes before them all."""
        resources = {"GPU": 1} if self.gpu and settings.compute.device.startswith("cuda") else {}
        return annotate(priority=-turn, **({"resources": resources} if resources else {}))


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
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[2, 10],
    retry_jitter_factor=0.5,
    retry_condition_fn=_can_help,
    log_prints=False,
)
def execute(
    where: str, settings: Settings, recipes: list[Recipe], part: str = "", code: str = CODE
) -> list[dict[str, str]]:
    """Builds (or adopts) the artifacts of a batch of recipes: the only Prefect task that computes. `part` and
    `code` are the flow's: which part of it this is, and the version that it runs."""
    check_code(code)
    chosen: Stage = pkgutil.resolve_name(where)
    if not chosen.gpu:  # it holds no slot, and whoever does has the GPU for itself
        compute = settings.compute.model_copy(update={"device": "cpu"})
        settings = settings.model_copy(update={"compute": compute})
    store = ArtifactStore(settings.storage)
    encoders: dict[str, Clip] = {}

    def build(number: int, recipe: Recipe) -> ArtifactRef:
        def show(share: float) -> None:
            bar((number + share) / len(recipes))

        def progress(share: float) -> None:
            show(share)
            if is_unwanted():
                what = f"{name} was told to stop, as its flow was cancelled or has died"
                raise UnwantedError(what=what, fix="run it again: what is made stays")

        def make(scratch: Path) -> Facts:
            checkpoints = store.checkpoints(recipe)
            return chosen.make(recipe, Work(store, settings, scratch, checkpoints, encoders, progress, show))

        progress(0.0)  # it may have stood in line for a worker, or a GPU, when the flow ended
        return store.build(recipe, make)

    name, is_unwanted = f"{chosen.name} {part}".strip(), unwanted()
    with progress_bar(name, f"{name}: {recipes[0]}") as bar:
        return [build(*numbered).model_dump() for numbered in enumerate(recipes)]


@task(cache_policy=NO_CACHE, persist_result=False, log_prints=False)
def recall(artifacts: list[str]) -> State[None]:
    """Tells Prefect of a batch that the store has; called in the flow's own process, as there is no work."""
    return Completed(name="Cached", message="found in the store")


def _is_artifact(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(isinstance(item, ArtifactRef) for item in value)
    return isinstance(value, ArtifactRef)


def _setting(settings: Settings, path: str) -> Any:
    value: Any = settings
    for part in path.split("."):
        value = getattr(value, part)
    return value
