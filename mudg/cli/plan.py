"""`mudg plan`: what a run will cost, as a table and as JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.markup import escape

from mudg.cli import units
from mudg.cli.output import console, settings_from, show, table_of
from mudg_core.corpus.sources import registry
from mudg_core.errors import StorageError
from mudg_core.plan import cost as published
from mudg_core.plan.cost import SINGLE_ONLY, Cost, Estimate, estimate, measured, total
from mudg_core.plan.hardware import A100, THIS_MACHINE, Hardware, profile
from mudg_core.plan.index_stages import exchange, index_costs, index_sizes
from mudg_core.plan.probe import embed_rate, probe
from mudg_core.plan.target_stages import target_costs
from mudg_core.plan.workload import Workload, workload
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore

PAPER_SETTINGS = Path(__file__).with_name("paper.yaml")


@dataclass(frozen=True)
class Asked:
    """The command's own flags."""

    paper: bool
    hardware: str | None
    devices: int
    rows: int | None
    queries: int | None
    pair_images: int | None
    evaluation_images: int | None


def run_plan(asked: Asked, as_json: bool, file: Path | None, changes: Sequence[str] | None) -> None:
    settings = settings_from(file, changes, PAPER_SETTINGS if asked.paper else None)
    if rows := asked.rows or (None if asked.paper else _added_rows(settings)):
        settings = settings.replace({"corpus": {"rows": rows}}, where="--rows")
    work = _workload(settings, asked)
    machine = _machine(asked, settings)
    estimates = [estimate(cost, machine) for cost in index_costs(work) + target_costs(work)]
    if machine.name == THIS_MACHINE and settings.compute.device == "cpu":
        estimates[0] = _tried(estimates[0], work, machine)
    show(_json(work, machine, estimates, asked.paper), _text(work, machine, estimates, asked.paper), as_json)


def _added_rows(settings: Settings) -> int | None:
    """Of the corpus, if one was added; else it is the demo world, whose size is a setting."""
    if settings.corpus.source == "demo":
        return None
    with suppress(StorageError):  # a plan can be made before there is a store
        store = ArtifactStore(settings.storage)
        if pointer := store.pointer(registry.POINTER):
            return max(100, int(str(store.manifest(pointer.ref).facts["rows"])))
    return None


def _workload(settings: Settings, asked: Asked) -> Workload:
    if not asked.paper:
        return workload(settings, asked.queries, asked.pair_images, tested=asked.evaluation_images)
    subset = min(settings.corpus.rows, settings.index.training_texts)
    pool = None if settings.augment.descriptors else published.PAPER_POOL
    tested = published.PAPER_TESTED if asked.evaluation_images is None else asked.evaluation_images
    queries, pair_images = asked.queries or published.PAPER_QUERIES, asked.pair_images or subset
    return workload(settings, queries, pair_images, pool, tested)


def _machine(asked: Asked, settings: Settings) -> Hardware:
    name = asked.hardware or (A100.name if asked.paper else THIS_MACHINE)
    if name != THIS_MACHINE:
        return replace(profile(name), devices=asked.devices)
    with console.status("measuring this machine …"):
        return replace(probe(_folder(settings)), devices=asked.devices)


def _tried(embed: Estimate, work: Workload, machine: Hardware) -> Estimate:
    """Embedding, from a trial of one worker; workers beyond the cores bring nothing."""
    side = max(work.encoder.image_size, work.settings.corpus.image_size)
    with console.status(f"trying out {escape(work.settings.encode.model)} …"):
        rate = embed_rate(work.settings.encode.model, side, work.batch)
    busy = min(work.workers, os.cpu_count() or 1, -(-work.rows // work.block))
    return measured(embed, work.rows / (rate * busy * machine.devices))


def _folder(settings: Settings) -> Path:
    """Where artifacts are written: the store, or what is kept here of a remote one."""
    storage = settings.storage
    local = storage.url.startswith("file://")
    return Path(storage.url.removeprefix("file://") if local else storage.cache_dir)


def _json(work: Workload, machine: Hardware, estimates: list[Estimate], with_paper: bool) -> Json:
    return {
        "hardware": asdict(machine),
        "workload": _amounts(work),
        "stages": [_line(item, with_paper) for item in estimates],
        "total": _costs(total([item.cost for item in estimates])) | _hours(estimates),
        "index_bytes_by_code": index_sizes(work),
        "per_iteration_and_worker": asdict(exchange(work)),
        "notes": _notes(work, machine, estimates),
    } | ({"paper_source": published.PAPER_SOURCE} if with_paper else {})


def _line(item: Estimate, with_paper: bool) -> Json:
    line = _costs(item.cost) | {
        "hours": item.hours,
        "on": item.machine.kind,
        "hours_half": item.hours_half,
        "bound": item.bound,
        "fits_in_memory": item.fits,
    }
    figure = published.PAPER_FIGURES.get(item.cost.stage)
    return line | {"paper": asdict(figure) if figure else None} if with_paper else line


def _costs(cost: Cost) -> Json:
    return asdict(cost) | {"stored": cost.written}


def _hours(estimates: list[Estimate]) -> Json:
    return {
        "hours": sum(item.hours for item in estimates),
        "hours_half": sum(item.hours_half for item in estimates),
    }


def _amounts(work: Workload) -> Json:
    return {
        "rows": work.rows,
        "dim": work.dim,
        "model": work.settings.encode.model,
        "student": work.settings.train.model,
        "training_texts": work.pairs,
        "pair_images": work.pair_images,
        "cells": work.cells,
        "code": work.settings.index.code,
        "queries": work.queries,
        "classes": work.classes,
        "training_images": work.picks,
        "evaluation_images": work.tested,
    }


def _text(work: Workload, machine: Hardware, estimates: list[Estimate], with_paper: bool) -> str:
    parts = [_heading(work, machine), _table(machine, estimates, with_paper), _index_line(work)]
    parts += _notes(work, machine, estimates)
    if with_paper:
        parts += ["The paper's own times, from " + published.PAPER_SOURCE.removeprefix("the paper, ") + ":"]
        figures = published.PAPER_FIGURES.values()
        parts[-1] += "".join(f"\n  {one.stage:<9} {one.short:<17} {one.what}" for one in figures)
    return "\n\n".join(parts)


def _heading(work: Workload, machine: Hardware) -> str:
    return (
        f"corpus    {units.count(work.rows)} rows, {work.settings.encode.model} ({work.dim} dimensions)\n"
        f"index     {units.count(work.cells)} cells, code {work.settings.index.code}, trained on "
        f"{units.count(work.pairs)} texts; q(p) over {_searched(work)}\n"
        f"target    {units.count(work.queries)} queries of {units.count(work.classes)} classes, "
        f"student {work.settings.train.model}, {units.count(work.tested)} evaluation images\n"
        f"hardware  {_rates(machine)}" + (f"\nhost      {_rates(machine.host)}" if machine.host else "")
    )


def _rates(machine: Hardware) -> str:
    rate = units.three_digits(machine.flop_rate() / 1e12)
    return (
        f"{machine.devices} x {machine.name}: {rate} TFLOP/s, {units.size(machine.memory_rate)}/s "
        f"memory, {units.size(machine.storage_rate)}/s storage\n          {machine.source}"
    )


def _searched(work: Workload) -> str:
    """Which images: the number that decides what q(p) costs, and that no setting says."""
    part = "the training subset" if work.pair_images == work.pairs else "a part of the corpus"
    name = "the whole corpus" if work.pair_images == work.rows else part
    return f"{units.count(work.pair_images)} images ({name})"


def _table(machine: Hardware, estimates: list[Estimate], with_paper: bool) -> str:
    """Where a stage runs and half precision only for a GPU, the paper's times only where its scale was asked
    for."""
    gpu = machine.kind == "gpu"
    header = ["stage", "FLOP", "moved", "read", "written", "memory", "storage", *(["on"] if gpu else [])]
    header += ["time", "bound", *(["in half"] if gpu else []), *(["the paper's"] if with_paper else [])]
    rows = []
    for item in estimates:
        figure = published.PAPER_FIGURES.get(item.cost.stage)
        row = _cells(item.cost, item.fits) + ([item.machine.kind] if gpu else [])
        row += [units.duration(item.hours), item.bound, *([_half(item)] if gpu else [])]
        rows.append(row + ([figure.short if figure else ""] if with_paper else []))
    sums, hours = _cells(total([item.cost for item in estimates]), True), _hours(estimates)
    sums += [*([""] if gpu else []), units.duration(hours["hours"]), ""]
    sums += [units.duration(hours["hours_half"])] if gpu else []
    return table_of([*rows, sums + ([""] if with_paper else [])], header)


def _half(item: Estimate) -> str:
    """Nothing where it cannot be: on a CPU, and where a stage computes in single precision only."""
    possible = item.machine.kind == "gpu" and item.cost.stage not in SINGLE_ONLY
    return units.duration(item.hours_half) if possible else ""


def _cells(cost: Cost, fits: bool) -> list[str]:
    memory = units.size(cost.memory) + ("" if fits else " !")
    return [
        cost.stage,
        units.flop(cost.flop),
        units.size(cost.moved),
        units.size(cost.read),
        units.size(cost.written),
        memory,
        units.size(cost.written),
    ]


def _index_line(work: Workload) -> str:
    sizes = ", ".join(f"{code} {units.size(bytes_)}" for code, bytes_ in index_sizes(work).items())
    sent = exchange(work)
    return (
        f"The index by fine code: {sizes}.\n"
        f"Each iteration of training sends every worker {units.size(sent.centroids_out)} of centroids "
        f"and gets {units.size(sent.sums_back)} of sums back\n"
        f"(float64, in which they are exact; {units.size(sent.sums_in_single)} in single precision)."
    )


def _notes(work: Workload, machine: Hardware, estimates: list[Estimate]) -> list[str]:
    notes = [
        "Times are lower bounds (the slowest of arithmetic, memory and storage), in single precision and "
        "without downloads.\nA `measured` one is from a short trial. Memory is what the data needs, "
        "over all workers. finetune and\nwhat follows are of one model, roughly."
    ]
    if machine.kind == "gpu":
        notes.append("cpu: the stage has no GPU code, and runs on the host, of which there is one.")
    elif machine.name == THIS_MACHINE and work.settings.compute.device != "cpu":
        notes.append("The GPU of this machine is not measured: times are those of its CPUs.")
    if work.pair_images < work.rows:
        flop = units.flop(2.0 * work.pairs * work.rows * work.dim)
        notes.append(f"`mudg index build` searches the whole corpus for q(p): {flop} FLOP.")
    over = [item for item in estimates if not item.fits]
    if over:
        rooms = (f"{item.cost.stage} ({units.size(item.machine.memory_bytes)})" for item in over)
        notes.append(f"! does not fit into memory: {', '.join(rooms)}.")
    return notes
