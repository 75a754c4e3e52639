"""Stages that are wired wrongly. Never run: each `type: ignore` is an error that mypy has to find."""

from __future__ import annotations

from flows.build_classifier import build_classifier
from mudg.execution import call
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef
from tasks.gate import gate
from tasks.run import Run
from tasks.train import train


def wrong(run: Run, ref: ArtifactRef, settings: Settings) -> None:
    train(run, dataset=ref, queries=ref, seed="0")  # type: ignore[arg-type]
    train(run, dataset=ref, queries=ref)  # type: ignore[call-arg]
    train(run, dataset=ref, queries=ref, seed=0, sead=1)  # type: ignore[call-arg]
    train(run, dataset=[ref], queries=ref, seed=0)  # type: ignore[arg-type]
    train.map(run, [gate.job(model=ref, queries=ref, held_out=ref)])  # type: ignore[list-item]
    train.start(run, [{"dataset": ref, "queries": ref, "seed": 0}])  # type: ignore[list-item]
    call(build_classifier, settings, "a target's name")  # type: ignore[arg-type]


def right(run: Run, ref: ArtifactRef) -> list[ArtifactRef]:
    return train.map(run, [train.job(dataset=ref, queries=ref, seed=0, without=[1])])
