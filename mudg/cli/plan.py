"""`mudg plan`: the cost of a run, before it runs."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from mudg.cli.command import Flags, Output, command
from mudg.cli.output import console, count, duration, flop, size, table_of, three_digits
from mudg_core.errors import StorageError

if TYPE_CHECKING:
    from mudg_core.plan.cost import Cost, Estimate
    from mudg_core.plan.hardware import Hardware
    from mudg_core.plan.workload import Workload
    from mudg_core.settings import Json, Settings

app = typer.Typer()
PAPER_SETTINGS = Path(__file__).with_name("paper.yaml")
THIS_MACHINE = "this-machine"


@command(app, "plan")
def run_plan(
    flags: Flags,
    paper: Annotated[
        bool, Option("--paper", help="The paper's scale, beside the times its authors report.")
    ] = False,
    hardware: Annotated[
        str | None,
        Option(
            help="this-machine (its CPUs, measured), a100 (with a cpu-64 as host) or cpu-64.",
            show_default="this-machine, or a100 with --paper",
        ),
    ] = None,
    devices: Annotated[int, Option(min=1, max=10_000, help="Number of such machines or GPUs.")] = 1,
    rows: Annotated[
        int | None, Option(min=1, help="Rows of the corpus.", show_default="those of the corpus")
    ] = None,
    queries: Annotated[
        int | None, Option(min=1, help="Queries of the target.", show_default="of ten classes")
    ] = None,
    pair_images: Annotated[
        int | None, Option(min=1, help="Images searched for q(p).", show_default="all rows")
    ] = None,
    evaluation_images: Annotated[
        int | None,
        Option(
            min=0, help="Evaluation images of the target.", show_default="evaluate.demo_images_per_class each"
        ),
    ] = None,
) -> Output:
    """Show what a run will cost before it runs: FLOP, bytes, memory, storage and time of every stage.

    Nothing is downloaded or stored, and no corpus is read. A time is a lower bound: the slowest of
    arithmetic, memory and storage traffic (`bound` says which). Examples:

        mudg plan                         # these settings, this machine
        mudg plan --rows 5000000 --set index.cells=4096
        mudg plan --paper                 # an index of 851 GB
        mudg plan --paper --hardware cpu-64 --json
    """
    settings = flags.settings(PAPER_SETTINGS if paper else None)
    from mudg_core.plan.cost import estimate
    from mudg_core.plan.hardware import A100
    from mudg_core.plan.index_stages import index_costs
    from mudg_core.plan.target_stages import target_costs

    if not paper:
        settings = _with_model_of_index(settings)
    if most := rows or (None if paper else _added_rows(settings)):
        settings = settings.replace({"corpus": {"rows": most}}, where="--rows")
    work = _workload(settings, paper, queries, pair_images, evaluation_images)
    machine = _machine(hardware or (A100.name if paper else THIS_MACHINE), devices, settings)
    estimates = [estimate(cost, machine) for cost in index_costs(work) + target_costs(work)]
    if machine.name == THIS_MACHINE and settings.compute.device == "cpu":
        estimates[0] = _tried(estimates[0], work, machine)
    return Output(_json(work, machine, estimates, paper), _text(work, machine, estimates, paper))


def _added_rows(settings: Settings) -> int | None:
    """Of the corpus, if one was added; else it is the demo world, whose size is a setting."""
    from mudg_core.corpus.sources import registry
    from mudg_core.storage import ArtifactStore

    if settings.corpus.source == "demo":
        return None
    with suppress(StorageError):  # a plan can be made before there is a store
        store = ArtifactStore(settings.storage)
        if pointer := store.pointer(registry.POINTER):
            return max(100, int(str(store.manifest(pointer.ref).facts["rows"])))
    return None


def _with_model_of_index(settings: Settings) -> Settings:
    from mudg_core.index.model_names import resolved_model
    from mudg_core.storage import ArtifactStore

    with suppress(StorageError):  # as above
        name = resolved_model(ArtifactStore(settings.storage), settings.encode.model)
        return settings.replace({"encode": {"model": name}})
    return settings


def _workload(
    settings: Settings, paper: bool, queries: int | None, pair_images: int | None, tested: int | None
) -> Workload:
    from mudg_core.plan import cost as published
    from mudg_core.plan.workload import workload

    if not paper:
        return workload(settings, queries, pair_images, tested=tested)
    subset = min(settings.corpus.rows, settings.index.training_texts)
    pool = None if settings.augment.descriptors else published.PAPER_POOL
    tested = published.PAPER_TESTED if tested is None else tested
    return workload(settings, queries or published.PAPER_QUERIES, pair_images or subset, pool, tested)


def _machine(name: str, devices: int, settings: Settings) -> Hardware:
    """A profile, or this machine, measured where artifacts are written."""
    from mudg_core.plan import probe
    from mudg_core.plan.hardware import profile

    if name != THIS_MACHINE:
        return replace(profile(name), devices=devices)
    storage = settings.storage
    local = storage.url.startswith("file://")
    folder = Path(storage.url.removeprefix("file://") if local else storage.cache_dir)
    with console.status("measuring this machine …"):
        return replace(probe.probe(folder), devices=devices)


def _tried(embed: Estimate, work: Workload, machine: Hardware) -> Estimate:
    """Embedding, from a trial of one worker; workers beyond the cores bring nothing."""
    from rich.markup import escape

    from mudg_core.plan import probe
    from mudg_core.plan.cost import measured

    side = max(work.encoder.image_size, work.settings.corpus.image_size)
    with console.status(f"trying out {escape(work.settings.encode.model)} …"):
        rate = probe.embed_rate(work.settings.encode.model, side, work.batch)
    busy = min(work.workers, os.cpu_count() or 1, -(-work.rows // work.block))
    return measured(embed, work.rows / (rate * busy * machine.devices))


def _json(work: Workload, machine: Hardware, estimates: list[Estimate], with_paper: bool) -> Json:
    from mudg_core.plan import cost as published
    from mudg_core.plan.cost import total
    from mudg_core.plan.index_stages import exchange, index_sizes

    stages = []
    for item in estimates:
        line = _costs(item.cost) | {"hours": item.hours, "on": item.machine.kind}
        line |= {"hours_half": item.hours_half, "bound": item.bound, "fits_in_memory": item.fits}
        if with_paper:
            figure = published.PAPER_FIGURES.get(item.cost.stage)
            line["paper"] = asdict(figure) if figure else None
        stages.append(line)
    return {
        "hardware": asdict(machine),
        "workload": _amounts(work),
        "stages": stages,
        "total": _costs(total([item.cost for item in estimates])) | _hours(estimates),
        "index_bytes_by_code": index_sizes(work),
        "per_iteration_and_worker": asdict(exchange(work)),
        "notes": _notes(work, machine, estimates),
    } | ({"paper_source": published.PAPER_SOURCE} if with_paper else {})


def _costs(cost: Cost) -> Json:
    return asdict(cost) | {"stored": cost.written}


def _hours(estimates: list[Estimate]) -> dict[str, float]:
    return {name: sum(getattr(item, name) for item in estimates) for name in ("hours", "hours_half")}


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
    from mudg_core.plan import cost as published

    parts = [_heading(work, machine), _table(machine, estimates, with_paper), _index_line(work)]
    parts += _notes(work, machine, estimates)
    if with_paper:
        parts += ["The paper's own times, from " + published.PAPER_SOURCE.removeprefix("the paper, ") + ":"]
        parts[-1] += "".join(
            f"\n  {f.stage:<9} {f.short:<17} {f.what}" for f in published.PAPER_FIGURES.values()
        )
    return "\n\n".join(parts)


def _heading(work: Workload, machine: Hardware) -> str:
    """With the number of images searched for q(p): it decides what q(p) costs, and no setting says it."""
    part = "the training subset" if work.pair_images == work.pairs else "a part of the corpus"
    part = "the whole corpus" if work.pair_images == work.rows else part
    return (
        f"corpus    {count(work.rows)} rows, {work.settings.encode.model} ({work.dim} dimensions)\n"
        f"index     {count(work.cells)} cells, code {work.settings.index.code}, trained on "
        f"{count(work.pairs)} texts; q(p) over {count(work.pair_images)} images ({part})\n"
        f"target    {count(work.queries)} queries of {count(work.classes)} classes, "
        f"student {work.settings.train.model}, {count(work.tested)} evaluation images\n"
        f"hardware  {_rates(machine)}" + (f"\nhost      {_rates(machine.host)}" if machine.host else "")
    )


def _rates(machine: Hardware) -> str:
    rate = three_digits(machine.flop_rate() / 1e12)
    return (
        f"{machine.devices} x {machine.name}: {rate} TFLOP/s, {size(machine.memory_rate)}/s "
        f"memory, {size(machine.storage_rate)}/s storage\n          {machine.source}"
    )


def _table(machine: Hardware, estimates: list[Estimate], with_paper: bool) -> str:
    """Where a stage runs and half precision only for a GPU, the paper's times only at its scale."""
    from mudg_core.plan import cost as published
    from mudg_core.plan.cost import total

    gpu = machine.kind == "gpu"
    header = ["stage", "FLOP", "moved", "read", "written", "memory", "storage", *(["on"] if gpu else [])]
    header += ["time", "bound", *(["in half"] if gpu else []), *(["the paper's"] if with_paper else [])]
    rows = []
    for item in estimates:
        figure = published.PAPER_FIGURES.get(item.cost.stage)
        row = _cells(item.cost, item.fits) + ([item.machine.kind] if gpu else [])
        row += [duration(item.hours), item.bound, *([_half(item)] if gpu else [])]
        rows.append(row + ([figure.short if figure else ""] if with_paper else []))
    sums, hours = _cells(total([item.cost for item in estimates]), True), _hours(estimates)
    sums += [*([""] if gpu else []), duration(hours["hours"]), ""]
    sums += [duration(hours["hours_half"])] if gpu else []
    return table_of([*rows, sums + ([""] if with_paper else [])], header)


def _half(item: Estimate) -> str:
    """Nothing where it cannot be: on a CPU, and where a stage computes in single precision only."""
    from mudg_core.plan.cost import SINGLE_ONLY

    possible = item.machine.kind == "gpu" and item.cost.stage not in SINGLE_ONLY
    return duration(item.hours_half) if possible else ""


def _cells(cost: Cost, fits: bool) -> list[str]:
    bytes_ = [size(number) for number in (cost.moved, cost.read, cost.written, cost.memory, cost.written)]
    bytes_[3] += "" if fits else " !"
    return [cost.stage, flop(cost.flop), *bytes_]


def _index_line(work: Workload) -> str:
    from mudg_core.plan.index_stages import exchange, index_sizes

    sizes = ", ".join(f"{code} {size(bytes_)}" for code, bytes_ in index_sizes(work).items())
    sent = exchange(work)
    return (
        f"The index by fine code: {sizes}.\n"
        f"Each iteration of training sends every worker {size(sent.centroids_out)} of centroids "
        f"and gets {size(sent.sums_back)} of sums back\n"
        f"(float64, in which they are exact; {size(sent.sums_in_single)} in single precision)."
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
        amount = flop(2.0 * work.pairs * work.rows * work.dim)
        notes.append(f"`mudg index build` searches the whole corpus for q(p): {amount} FLOP.")
    over = [item for item in estimates if not item.fits]
    if over:
        rooms = (f"{item.cost.stage} ({size(item.machine.memory_bytes)})" for item in over)
        notes.append(f"! does not fit into memory: {', '.join(rooms)}.")
    return notes
