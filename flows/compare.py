"""Every way to a classifier that the paper compares, for the same targets, seeds and evaluation images."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

from flows.build_classifier import (
    Started,
    augment_target,
    build_dataset,
    collect,
    start,
    start_holding_out,
)
from flows.build_index import other_version
from flows.compare_rows import SHOTS, Row, chosen_rows
from flows.study_prompts import check_evaluation
from mudg_core.dataset.takedowns import mark_new_takedowns
from mudg_core.evaluate.comparison import METHOD
from mudg_core.evaluate.images import Source
from mudg_core.index.model_names import check_named_model
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.target.descriptor_pool import covers_classes
from mudg_core.target.spec import Target
from tasks.compare import draw_comparison, draw_shots, score_cache, tabulate
from tasks.flow import flow
from tasks.run import Run, StageRecord
from tasks.train import encode_evaluation, evaluate, score_zero_shot, train

NAMED = 5  # targets in the name of a run
UNDER_WAY = 4  # students asked for at a time for each worker: it never waits, and no queue lasts for hours
DEMO_IMAGES = 200  # of each class and style: they are drawn, so that only their evaluation takes time


@dataclass(frozen=True)
class ComparisonBuild:
    """An artifact for each target, and the page over all of them."""

    comparisons: list[ArtifactRef]
    page: ArtifactRef
    records: list[StageRecord]


@dataclass(frozen=True)
class Scored:
    """Scores of one row: an artifact a seed, which arm it is in them, and by which prompts it is judged."""

    scores: list[ArtifactRef]
    arm: str
    way: str


def _run_name(
    settings: Settings, targets: list[Target], rows: list[str], iterations: int | None = None
) -> str:
    """The first targets of those that are compared."""
    more = f" and {len(targets) - NAMED} more" if len(targets) > NAMED else ""
    return f"compare {', '.join(target.name for target in targets[:NAMED])}{more}"


@flow(
    name="compare",
    description="Builds classifiers for targets in all ways of the comparison, and tabulates them.",
    run_name=_run_name,
)
def compare(
    settings: Settings, targets: list[Target], rows: list[str], iterations: int | None = None
) -> ComparisonBuild:
    """targets × rows × seeds → scores → table"""
    records: list[StageRecord] = []
    chosen = chosen_rows(rows)
    made = []
    with mark_new_takedowns(ArtifactStore(settings.storage)):
        for target in targets:
            check_evaluation(target)
            made.append(Contest(settings, target, records, iterations).run(chosen))
    title = f"mudg compare: {', '.join(target.name for target in targets)}"
    page = draw_comparison(Run(settings, records), title=title, comparisons=made)
    return ComparisonBuild(made, page, records)


@dataclass
class Contest:
    """All rows of one target."""

    settings: Settings
    target: Target
    records: list[StageRecord]
    iterations: int | None
    scored: dict[str, Scored] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self.target.name
        self.base = Run(self.settings_of(Row(METHOD, "", "")), self.records, name)
        self.version = current_version(self.base.store)
        check_named_model(self.base.store, self.version, self.base.settings.encode.model)
        self.evaluation = collect(self.base, self.target)
        self.features = encode_evaluation(self.base, evaluation=self.evaluation)

    def run(self, rows: Sequence[Row]) -> ArtifactRef:
        """Prompts first, as they are cheap; then training, many rows at a time; adapters last."""
        kinds: dict[str, Callable[[Sequence[Row]], None]] = {
            "prompts": self.prompts,
            "trained": self.trained,
            "few-shot": self.few_shot,
            "cache": self.adapters,
        }
        for kind, score in kinds.items():
            score([row for row in rows if row.kind == kind])
        return self.table([row for row in rows if row.name in self.scored])

    def prompts(self, rows: Sequence[Row]) -> None:
        """One score for all seeds, except where prompts are drawn by lot."""
        started = []
        for row in rows:
            if missing := self.missing_file(row):
                self.left_out[row.name] = missing
                continue
            pending = []
            for seed in self.target.seeds if row.by_lot else self.target.seeds[:1]:
                run = self.run_of(row, seed)
                queries = augment_target(run, self.target)
                job = score_zero_shot.job(queries=queries, evaluation=self.evaluation, features=self.features)
                pending.append(score_zero_shot.start(run, [job]))
            started.append((row, pending))
        for row, pending in started:
            refs = [ref for one in pending for ref in one.results()]
            self.scored[row.name] = Scored(refs, "zero_shot", "averaged")

    def trained(self, rows: Sequence[Row]) -> None:
        """The data of the next student is built while those before it are trained."""
        waiting: deque[tuple[Row, Run, Started]] = deque()
        for row, seed in product(rows, self.target.seeds):
            run = self.run_of(row, seed)
            started = start(run, self.one_seed(seed), self.version_of(row, run), self.evaluation)
            waiting.append((row, run, started))
            if len(waiting) >= UNDER_WAY * run.settings.compute.workers:
                self.judge(*waiting.popleft())
        while waiting:
            self.judge(*waiting.popleft())

    def judge(self, row: Row, run: Run, started: Started) -> None:
        self.evaluated(row, run, started.data.queries, started.finish().models[0])

    def evaluated(self, row: Row, run: Run, queries: ArtifactRef, model: ArtifactRef) -> None:
        scores = evaluate(run, models=[model], names=["student"], queries=queries, evaluation=self.evaluation)
        self.scored.setdefault(row.name, Scored([], "student", "single")).scores.append(scores)

    def few_shot(self, rows: Sequence[Row]) -> None:
        """Labelled images instead of retrieved ones; all else is as in the method."""
        source = Source.of(self.target, self.base.settings.evaluate)
        for row in rows:
            if not source.has("train"):
                self.left_out[row.name] = "no labelled images are known that are no evaluation images"
                continue
            fingerprint, started = source.fingerprint("train"), []
            for seed in self.target.seeds:
                run = self.run_of(row, seed)
                queries = augment_target(run, self.target)
                drawn = draw_shots(
                    run,
                    classes=source.classes,
                    synonyms=source.synonym_lists(),
                    fingerprint=fingerprint,
                    shots=SHOTS,
                    seed=seed,
                )
                training = train.start(run, [train.job(dataset=drawn, queries=queries, seed=seed)])
                started.append((run, queries, training))
            for run, queries, training in started:
                self.evaluated(row, run, queries, training.results()[0])

    def adapters(self, rows: Sequence[Row]) -> None:
        """All of them come from one look at the method's training sets."""
        if not rows:
            return
        scores = []
        for seed in self.target.seeds:
            run = self.run_of(rows[0], seed)
            data = build_dataset(run, self.one_seed(seed), self.version, self.evaluation)
            held = start_holding_out(run, self.one_seed(seed), self.version, data).results()[0]
            score = score_cache(
                run,
                dataset=data.by_seed[0],
                held_out=held,
                queries=data.queries,
                evaluation=self.evaluation,
                features=self.features,
            )
            scores.append(score)
        for row in rows:
            self.scored[row.name] = Scored(scores, row.name.replace("-", "_"), "single")

    def table(self, rows: Sequence[Row]) -> ArtifactRef:
        lines: list[Json] = []
        scores: list[ArtifactRef] = []
        for row in rows:
            own = self.scored[row.name]
            said = {"name": row.name, "group": row.group, "about": row.about, "paper": row.paper_name}
            place = {"first": len(scores), "count": len(own.scores), "arm": own.arm, "way": own.way}
            lines.append(said | place)
            scores += own.scores
        return tabulate(
            self.base,
            target=self.target.model_dump(mode="json"),
            model=self.base.settings.train.model,
            rows=lines,
            left_out=self.left_out,
            scores=scores,
        )

    def run_of(self, row: Row, seed: int) -> Run:
        """Augmentations are drawn anew for every seed: with one draw for all, the deviation over seeds would
        not tell of its luck."""
        settings = self.settings_of(row)
        settings = settings.replace({"augment": {"seed": settings.augment.seed + seed}})
        return Run(settings, self.records, f"{self.target.name}, {row.name}")

    def one_seed(self, seed: int) -> Target:
        return self.target.model_copy(update={"seeds": (seed,)})

    def settings_of(self, row: Row) -> Settings:
        """The run's, then the target's, then the row's own; a row's profile stands in for the target's."""
        asked = self.target.model_copy(update={"profile": row.profile}) if row.profile else self.target
        settings = self.settings.replace(asked.overrides(self.settings), where=f"target {asked.name}")
        evaluate = {"demo_images_per_class": settings.evaluate.demo_images_per_class or DEMO_IMAGES}
        settings = settings.replace({"evaluate": {"source": self.target.evaluation, **evaluate}})
        if self.iterations:
            settings = settings.replace({"train": {"iterations": self.iterations}})
        return settings.replace(row.changes, where=f"row {row.name}")

    def version_of(self, row: Row, run: Run) -> IndexVersion:
        """The current index, or one of the same images that was built otherwise; it is not promoted."""
        return other_version(run, self.version) if row.own_index else self.version

    def missing_file(self, row: Row) -> str:
        """Why a row of prompts cannot be: the user has not given the file that it needs."""
        own, method = self.base.settings.augment, row.changes["augment"]["method"]
        phrases = own.descriptors and covers_classes(own.descriptors, self.target.classes)
        if method == "per-class" and not phrases:
            return "augment.descriptors names no file of phrases by class"
        if method == "cupl" and not own.prompts:
            return "augment.prompts names no file of prompts by class"
        return ""
