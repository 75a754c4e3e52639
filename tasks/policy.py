"""How every stage is cached, named and placed: said once, here. (Retries: mudg_core/retries.py.)

A stage is a function from artifacts to the files of a new artifact. `@stage` wraps it so that calling it with
a run gives that artifact's reference; mypy checks the inputs of every call against the function's signature.
Who computes is the run's executor: this process, or Prefect on Dask (tasks/executors/). The store alone says
what is made already: Prefect's own cache would be a second opinion, and one that can be half written when a
run is killed.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec

from mudg_core.encode.weights import weights_digest
from mudg_core.errors import UnwantedError
from mudg_core.settings import PRECISION, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Checkpoints, Facts, Recipe
from tasks.code import check_code
from tasks.run import Batch, Host, Progress, Run, silent
from tasks.stage_progress import BOARD, StageProgress, reporting

if TYPE_CHECKING:
    from mudg_core.encode.models import Clip

P = ParamSpec("P")
Inputs = Mapping[str, Any]

# Inputs that tell artifacts of one stage apart for people, and the words before them.
TOLD = {"variant": "", "seed": "seed ", "first_row": "from row "}


def _this_process() -> Host:
    from tasks.executors.in_process import ThreadHost

    return ThreadHost()


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
    # To be told once what the work consists of: 200 "steps", 10,000 "images". People see their rate.
    count: Callable[[int, str], None] = lambda steps, unit: None
    host: Host = field(default_factory=_this_process)

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
class Job(Generic[P]):
    """The inputs of one artifact, for a stage that takes `P`."""

    inputs: Inputs


@dataclass(frozen=True)
class Pending:
    """Artifacts of one stage, batch by batch: either there already, or being made."""

    run: Run
    progress: StageProgress
    per_task: int
    batches: list[Batch | list[ArtifactRef]]

    def results(self) -> list[ArtifactRef]:
        refs: list[ArtifactRef] = []
        with self.run.watch(self.progress), self._bar() as bar:
            bar(0.0)
            for batch in self.batches:
                refs += batch if isinstance(batch, list) else batch.result()
                bar(len(refs) / self.progress.artifacts)
                self.run.use(refs[-self.per_task :])
        return refs

    def _bar(self) -> AbstractContextManager[Progress]:
        """Over all tasks of the stage. A task shows its own, so one alone needs no other."""
        if sum(not isinstance(batch, list) for batch in self.batches) < 2:
            return nullcontext(silent)
        name = f"{self.progress.stage} {self.run.part}".strip()
        about = (
            f"{name}: {self.progress.artifacts:,} artifacts, {self.progress.cached:,} of them there before"
        )
        return self.run.executor.progress_bar(name, about)


@dataclass(frozen=True)
class Stage(Generic[P]):
    """A stage of the pipeline; call it with a run and its inputs to get the artifact's reference."""

    name: str
    algorithm: int
    settings: tuple[str, ...]
    weights: tuple[str, ...]
    gpu: bool
    function: Callable[Concatenate[Work, P], Facts]

    def __call__(self, run: Run, *args: P.args, **inputs: P.kwargs) -> ArtifactRef:
        return self.map(run, [self.job(*args, **inputs)])[0]

    def job(self, *args: P.args, **inputs: P.kwargs) -> Job[P]:
        """Inputs for `map` and `start`. One that has its default is as if it was not given: stages gain
        inputs over time, and what was made without them keeps its key."""
        return Job(
            {name: value for name, value in inputs.items() if value != self._defaults.get(name, _ABSENT)}
        )

    def job_like(self, recorded: Inputs) -> Job[P]:
        """From the inputs that a manifest names: to make an artifact again with some of them changed."""
        return Job(recorded)

    def map(self, run: Run, jobs: Iterable[Job[P]], per_task: int = 1) -> list[ArtifactRef]:
        """One artifact for each job, `per_task` of them in one task, in order."""
        return self.start(run, jobs, per_task).results()

    def start(self, run: Run, jobs: Iterable[Job[P]], per_task: int = 1) -> Pending:
        """The same without waiting, so that independent work can be started before."""
        recipes = [self.recipe(run.settings, job.inputs) for job in jobs]
        run.use(parent for recipe in recipes for parent in recipe.all_parents())
        found = [run.store.find(recipe) for recipe in recipes]
        run.use(ref for ref in found if ref is not None)
        parts = [slice(first, first + per_task) for first in range(0, len(recipes), per_task)]
        missing = [part for part in parts if any(ref is None for ref in found[part])]
        progress = BOARD.start(
            self.name,
            run.part,
            len(found),
            sum(ref is not None for ref in found),
            {str(recipes[part.start]): len(recipes[part]) for part in missing},
        )
        batches: list[Batch | list[ArtifactRef]] = []
        turn = 0
        for number, part in enumerate(parts, 1):
            count = f"{number} of {len(parts)}" if len(parts) > 1 else ""
            name = self.run_name(run.part, recipes[part], count)
            known = [ref for ref in found[part] if ref is not None]
            if len(known) == len(recipes[part]):
                run.executor.record_cached(self, name, known)
                batches.append(known)
            else:
                turn += 1
                batches.append(run.executor.begin(run, self, name, recipes[part], turn))
        return Pending(run, progress, per_task, batches)

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
        function: Callable[..., Facts] = self.function  # of a recipe that a stage with these inputs has made
        return function(work, **parents, **values)

    @property
    def where(self) -> str:
        """By which another process finds this stage."""
        function: Any = self.function
        return f"{function.__module__}:{function.__name__}"

    @cached_property
    def _defaults(self) -> Inputs:
        parameters = inspect.signature(self.function).parameters.values()
        return {one.name: one.default for one in parameters if one.default is not one.empty}

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

    def resources(self, settings: Settings) -> dict[str, int]:
        """What a Dask worker must have."""
        return {"GPU": 1} if self.gpu and settings.compute.device.startswith("cuda") else {}


_ABSENT = object()


def stage(
    name: str,
    *,
    algorithm: int = 1,
    settings: tuple[str, ...] = (),
    weights: tuple[str, ...] = (),
    gpu: bool = False,
) -> Callable[[Callable[Concatenate[Work, P], Facts]], Stage[P]]:
    """Declares a stage. `settings` and `weights` are the settings paths that decide its result.

    Raise `algorithm` whenever the code behind a stage changes what it makes.
    """
    return lambda function: Stage(name, algorithm, settings, weights, gpu, function)


def build_batch(
    where: str, settings: Settings, recipes: list[Recipe], part: str, code: str, host: Host
) -> list[ArtifactRef]:
    """Builds (or adopts) the artifacts of a batch of recipes, in whichever process. `part` and `code` are the
    flow's: which part of it this is, and the version that it runs."""
    check_code(code)
    chosen: Stage[...] = pkgutil.resolve_name(where)
    if not chosen.gpu:  # it holds no slot, and whoever does has the GPU for itself
        compute = settings.compute.model_copy(update={"device": "cpu"})
        settings = settings.model_copy(update={"compute": compute})
    store = ArtifactStore(settings.storage)
    encoders: dict[str, Clip] = {}

    def build(number: int, recipe: Recipe) -> ArtifactRef:
        def show(share: float) -> None:
            report.progress((number + share) / len(recipes))

        def progress(share: float) -> None:
            show(share)
            if is_unwanted():
                what = f"{name} was told to stop, as its flow was cancelled or has died"
                raise UnwantedError(what=what, fix="run it again: what is made stays")

        def make(scratch: Path) -> Facts:
            checkpoints = store.checkpoints(recipe)
            work = Work(store, settings, scratch, checkpoints, encoders, progress, show, report.count, host)
            return chosen.make(recipe, work)

        progress(0.0)  # it may have stood in line for a worker, or a GPU, when the flow ended
        return store.build(recipe, make)

    name, is_unwanted = f"{chosen.name} {part}".strip(), host.unwanted()
    with reporting(str(recipes[0]), host.report) as report:
        return [build(*numbered) for numbered in enumerate(recipes)]


def _is_artifact(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(isinstance(item, ArtifactRef) for item in value)
    return isinstance(value, ArtifactRef)


def _setting(settings: Settings, path: str) -> Any:
    value: Any = settings
    for part in path.split("."):
        value = getattr(value, part)
    return value
