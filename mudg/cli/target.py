"""`mudg target …` on this machine: run a spec, ready specs, and a study of prompts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mudg.cli.command import Flags, Output, command, group
from mudg.cli.demo import accuracy_text
from mudg.cli.output import say, table_of
from mudg_core.errors import InputError, MudgError

if TYPE_CHECKING:
    from mudg_core.evaluate.prompts import PromptStudy
    from mudg_core.settings import Json
    from mudg_core.target.spec import Target

app = group("Build a classifier for a target: a list of classes.")
COLUMNS = {"neighbors": "n", "augmentations": "m", "per_class": "k1", "iterations": "N"}
Spec = Annotated[Path, Argument(help="Target spec (YAML).")]


class Baseline(StrEnum):
    """What a classifier is compared with, beside zero-shot."""

    nearest_neighbours = "nearest-neighbours"
    none = "none"


@command(app, "run")
def target_run(
    spec: Spec,
    flags: Flags,
    out: Annotated[Path | None, Option(help="Copy the model there: a new or empty folder.")] = None,
    baseline: Annotated[
        Baseline | None,
        Option(
            help="Baseline trained and evaluated beside it; none halves the run time.",
            show_default="evaluate.baseline",
        ),
    ] = None,
) -> Output:
    """Build a classifier for the classes in SPEC, from the current index.

    A spec needs a name and class names; the rest is optional:

        name: footwear
        classes: [shoe, boot]        # or classes_from: a list or a dataset folder
        synonyms: {boot: [wellington]}
        template: a photo of a {}.
        evaluation: path/to/folder   # a dataset: DOMAIN/CLASS/*.jpg, split_zhou_*.json, ImageNet …
        seeds: [0, 1, 2]
        per_class: 32                # also neighbors, augmentations, iterations
        settings: {train: {diversity: 0.3}}

    `mudg target ready` lists specs of known tasks. Example: `mudg target run footwear.yaml --out ./footwear`
    """
    from mudg_core.target.spec import load_target

    target = load_target(spec)
    warn_of_lookalikes(target.classes)
    settings = flags.settings(more=[f"evaluate.baseline={baseline.value}"] if baseline else ())
    if out is not None:
        from mudg_core.dataset.export import check_place

        check_place(out)
    from flows.build_classifier import build_classifier
    from mudg.cli.progress import watched
    from mudg.execution import call
    from mudg_core.evaluate.gate import VERDICT
    from mudg_core.storage import ArtifactStore
    from mudg_core.train.classifiers import copy_out
    from tasks.results import accuracies, counts, publish

    with watched(settings) as ready:
        built = call(build_classifier, ready, target)
        store = ArtifactStore(ready.storage)
        path = publish(store, built.report, target.name, ready)
        models = [str(store.folder(ref)) for ref in built.mudg.models]
        classifier = store.folder(built.classifier)
        if out is not None:
            copy_out(store, built.classifier, out)
            classifier = out.expanduser().resolve()
        facts: Any = store.manifest(built.report).facts
        result = accuracies(store, [built]) | counts(built.records) | {"seeds": len(built.scores)}
        result |= {"baseline_seconds": round(sum(one.seconds for one in built.baseline_records), 1)}
        result |= {"models": models, "datasets": [str(ref) for ref in built.mudg.data.by_seed]}
        result |= {"classifier": str(built.classifier), "folder": str(classifier)}
        result |= {"verdicts": [json.loads(store.file(ref, VERDICT).read_text()) for ref in built.verdicts]}
        result |= {"notes": facts["notes"], "warnings": facts["warnings"][target.name], "report": str(path)}
    return Output(result, accuracy_text(result) + target_text(target.name, result))


@command(app, "ready")
def target_ready() -> Output:
    """List specs of known tasks: the paper's twenty, with its hyperparameters and templates.

    n images are retrieved for each query, m augmentations are kept, k1 images for each class, N iterations.

    Example: `mudg target ready`
    """
    from mudg_core.target.ready import READY, ready_values

    targets = []
    for name, classes in READY.items():
        values = ready_values(name)
        body = {"name": name, "description": values["description"], "classes": classes}
        body |= {field: values[field] for field in (*COLUMNS, "template")}
        targets.append(body | {"names": "built in" if "classes" in values else "from --data"})
    fields = ("name", "classes", *COLUMNS, "template", "names")
    header = ("target", "classes", *COLUMNS.values(), "template", "class names")
    return Output({"targets": targets}, table_of([[t[field] for field in fields] for t in targets], header))


@command(app, "init")
def target_init(
    name: Annotated[str, Argument(help="One of `mudg target ready`.")],
    out: Annotated[Path | None, Argument(help="The file to write.", show_default="NAME.yaml")] = None,
    data: Annotated[
        Path | None, Option(help="Your copy of the dataset: a folder, a list or a split file.")
    ] = None,
) -> Output:
    """Write a spec of a known task for `mudg target run`.

    Class names of the large tasks are read from your copy of the dataset, which is also evaluated on if its
    images are there. Example: `mudg target init pacs --data datasets/PACS`
    """
    from mudg_core.target.ready import ready_spec, ready_text

    target = ready_spec(name, data)
    evaluation = data if data is not None and _has_images(data, target) else None
    path = out or Path(f"{name}.yaml")
    try:
        with path.open("x", encoding="utf-8") as file:  # never over a file that is there
            file.write(ready_text(name, data, evaluation))
    except OSError as error:
        raise InputError(
            what=f"the spec cannot be written: {error.strerror}", where=str(path), fix="name another file"
        ) from error
    text = f"{path}: {len(target.classes):,} classes, "
    text += f"evaluated on {evaluation}" if evaluation else "no evaluation images (add `evaluation: FOLDER`)"
    result = {"spec": str(path), "classes": len(target.classes), "evaluation": evaluation and str(evaluation)}
    return Output(result, f"{text}\nnext: mudg target run {path}")


@command(app, "prompts")
def target_prompts(
    spec: Spec,
    flags: Flags,
    save: Annotated[Path | None, Option(help="Also draw the study (SVG).")] = None,
) -> Output:
    """Compare prompts for the classes in SPEC, by zero-shot accuracy on its evaluation images.

    Every `augment.method`, ensembles of 1, 2, 4 … augmentations, and single descriptors: whether those that
    keep label features apart classify better. Needs no index. Files: `--set augment.descriptors=FILE.json`
    adds the method per-class, `--set augment.prompts=FILE.json` adds cupl.

    Example: `mudg target prompts footwear.yaml --save prompts.svg`
    """
    from mudg_core.target.spec import load_target

    target, settings = load_target(spec), flags.settings()
    from flows.study_prompts import check_evaluation, study_prompts
    from mudg.cli.progress import watched
    from mudg.execution import call
    from mudg_core.evaluate.prompts import PromptStudy
    from mudg_core.storage import ArtifactStore
    from tasks.results import counts

    check_evaluation(target)
    with watched(settings) as ready:
        built = call(study_prompts, ready, target)
        store = ArtifactStore(ready.storage)
        body = json.loads(store.file(built.study, "prompts.json").read_text())
        plot = store.file(built.study, "prompts.svg")
        if save is not None:
            plot = Path(shutil.copyfile(plot, save))
    result = {"target": target.name, "prompts": str(built.study), **body, **counts(built.records)}
    return Output(result | {"plot": str(plot)}, _study_text(PromptStudy.from_json(body), plot))


def warn_of_lookalikes(classes: Sequence[str]) -> None:
    """Before anything runs: two names that look the same are rarely two classes."""
    from mudg_core.target.class_names import lookalikes

    for first, second in lookalikes(classes)[:10]:
        say(f"warning: classes {first!a} and {second!a} look the same: are they two?", "yellow")


def target_text(name: str, result: Json) -> str:
    """What a person reads beside accuracy: warnings first."""
    lines = [f"warning: {warning['message']}" for warning in result["warnings"]]
    lines += [f"training set: {ref}" for ref in result["datasets"]]
    lines += [f"model: {result['folder']}", f"try it: mudg predict {name} IMAGES"]
    lines += [f"gate, without labels: {' '.join(verdict['reasons'])}" for verdict in result["verdicts"]]
    if result["baseline_seconds"] >= 1:
        lines.append(
            f"the nearest-neighbour baseline worked for {result['baseline_seconds']:.0f} s, beside the rest: "
            "--baseline none leaves it out"
        )
    return "".join(f"{line}\n" for line in lines)


def _has_images(data: Path, target: Target) -> bool:
    """Whether the dataset can be evaluated on as it is."""
    from mudg_core.evaluate.images import Source

    try:
        source = Source(str(data), list(target.classes), 1, target.synonyms)
        return next(source.listed("test"), None) is not None
    except MudgError:
        return False


def _study_text(study: PromptStudy, plot: Path) -> str:
    domains = list(study.methods[0].domains)
    methods: list[tuple[Any, ...]] = [
        (item.method, item.augmentations, f"{item.mean:.1f}", *(f"{item.domains[d]:.1f}" for d in domains))
        for item in study.methods
    ]
    sizes = [size for size, _ in study.curves["adaptive"]]
    curves = [(name, *(f"{value:.1f}" for _, value in points)) for name, points in study.curves.items()]
    value = "none" if study.correlation is None else f"{study.correlation:.2f}"
    correlation = f"correlation of feature variance and accuracy, {len(study.spots)} descriptors: {value}"
    return "\n\n".join(
        [
            table_of(methods, ("zero-shot accuracy, %", "augmentations", "mean", *domains)),
            table_of(curves, ("by augmentations", *map(str, sizes))),
            f"{correlation}\nplot: {plot}",
        ]
    )
