"""`mudg target …` beside `run`: ready specs, and what prompts alone are worth."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mudg.cli.output import settings_from, show, table_of
from mudg_core.errors import InputError, MudgError
from mudg_core.settings import Json
from mudg_core.target.ready import READY, ready_spec, ready_text, ready_values
from mudg_core.target.spec import Target

if TYPE_CHECKING:
    from mudg_core.evaluate.prompts import PromptStudy

COLUMNS = {"neighbors": "n", "augmentations": "m", "per_class": "k1", "iterations": "N"}


def run_ready(as_json: bool) -> None:
    found = [_described(name) for name in READY]
    fields = ("name", "classes", *COLUMNS, "template", "names")
    header = ("target", "classes", *COLUMNS.values(), "template", "class names")
    text = table_of([[item[field] for field in fields] for item in found], header)
    show({"targets": found}, text, as_json)


def _described(name: str) -> Json:
    values = ready_values(name)
    said: Json = {"name": name, "description": values["description"], "classes": READY[name]}
    said |= {field: values[field] for field in (*COLUMNS, "template")}
    return said | {"names": "built in" if "classes" in values else "from --data"}


def run_init(name: str, data: Path | None, out: Path | None, as_json: bool) -> None:
    """Writes a spec that was tried: what it cannot read, it says now and not when it is run."""
    target = ready_spec(name, data)
    evaluation = data if data is not None and _has_images(data, target) else None
    text = ready_text(name, data, evaluation)
    path = out or Path(f"{name}.yaml")
    try:
        with path.open("x", encoding="utf-8") as file:  # never over what somebody has written
            file.write(text)
    except OSError as error:
        raise InputError(
            what=f"the spec cannot be written: {error.strerror}", where=str(path), fix="name another file"
        ) from error
    said = f"{path}: {len(target.classes):,} classes, "
    said += f"evaluated on {evaluation}" if evaluation else "no evaluation images (add `evaluation: FOLDER`)"
    result = {"spec": str(path), "classes": len(target.classes), "evaluation": evaluation and str(evaluation)}
    show(result, f"{said}\nnext: mudg target run {path}", as_json)


def _has_images(data: Path, target: Target) -> bool:
    """Whether the dataset can be evaluated on as it is."""
    from mudg_core.evaluate.images import Source  # Arrow and Pillow: other commands do without

    try:
        source = Source(str(data), list(target.classes), 1, target.synonyms)
        return next(source.listed("test"), None) is not None
    except MudgError:
        return False


def run_prompts(
    target: Target, save: Path | None, as_json: bool, file: Path | None, changes: list[str] | None
) -> None:
    from flows.study_prompts import check_evaluation, study_prompts
    from mudg.cli.runs import watched  # Prefect and Dask take seconds to load
    from mudg.execution import call
    from mudg_core.evaluate.prompts import PromptStudy
    from mudg_core.storage import ArtifactStore
    from tasks.results import counts

    check_evaluation(target)
    with watched(settings_from(file, changes)) as settings:
        built = call(study_prompts, settings, target)
        store = ArtifactStore(settings.storage)
        body = json.loads(store.file(built.study, "prompts.json").read_text())
        plot = store.file(built.study, "prompts.svg")
        if save is not None:
            shutil.copyfile(plot, save)
    result = {"target": target.name, "prompts": str(built.study), **body, **counts(built.records)}
    show(result | {"plot": str(save or plot)}, _text(PromptStudy.from_json(body), save or plot), as_json)


def _text(study: PromptStudy, plot: Path) -> str:
    domains = list(study.methods[0].domains)
    methods: list[tuple[Any, ...]] = [
        (item.method, item.augmentations, f"{item.mean:.1f}", *(f"{item.domains[d]:.1f}" for d in domains))
        for item in study.methods
    ]
    sizes = [size for size, _ in study.curves["adaptive"]]
    curves = [(name, *(f"{value:.1f}" for _, value in points)) for name, points in study.curves.items()]
    said = "none" if study.correlation is None else f"{study.correlation:.2f}"
    said = f"correlation of feature variance and accuracy, {len(study.spots)} descriptors: {said}"
    return "\n\n".join(
        [
            table_of(methods, ("zero-shot accuracy, %", "augmentations", "mean", *domains)),
            table_of(curves, ("by augmentations", *map(str, sizes))),
            f"{said}\nplot: {plot}",
        ]
    )
