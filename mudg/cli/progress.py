"""Stages as lines in the terminal: a spinner while one runs, a tick and its time when it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from rich.console import Console
from rich.markup import escape

from mudg.cli.output import console as on_terminal
from mudg.execution import session, uses_prefect
from mudg_core.settings import Settings
from tasks.run import WATCHER, Done

TITLES = {
    "corpus-shard": "draw the demo corpus",
    "downloaded-shard": "download images",
    "embedding-shard": "embed images and captions",
    "screened-shard": "leave out copies and captions that do not fit",
    "samples": "draw captions to learn from and to measure with",
    "neighbors": "find each caption's nearest images",
    "neighbors-guided": "find the other captions' nearest images through the index of the first",
    "pairs": "pair captions with images",
    "centroids": "k-means, plain and paired",
    "cells": "assign images to cells",
    "router": "fit the router",
    "choice": "choose the variant that reads least",
    "code": "train the fine code",
    "index-part": "populate the index",
    "index": "assemble the version",
    "recall": "measure recall",
    "queries": "choose descriptors",
    "candidates": "search the index",
    "labels": "pseudo-label",
    "picks": "select",
    "dataset": "fetch, filter, refill",
    "model": "finetune the student",
    "held-out": "hold out labelled images",
    "gate": "estimate without labels whether it is better",
    "classifier": "write the model's folder",
    "evaluation": "collect evaluation images",
    "evaluation-prints": "fingerprint evaluation images",
    "evaluation-features": "encode evaluation images",
    "zero-shot": "evaluate the student before finetuning",
    "scores": "evaluate per domain",
    "cache-scores": "evaluate adapters without training",
    "shots": "draw labelled images",
    "comparison": "put the rows together",
    "comparison-page": "draw the comparison",
    "map": "draw the map of the images",
    "leaks": "look for evaluation images among the candidates",
    "warnings": "look for what may be wrong",
    "report": "write the report",
}


class Terminal:
    """A watcher that writes to standard error, so that standard output stays for results."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextmanager
    def __call__(self, stage: str, part: str, artifacts: int, cached: int) -> Iterator[Done]:
        title, started = TITLES.get(stage, stage) + (f" ({escape(part)})" if part else ""), time.monotonic()
        total = f" 0/{artifacts}" if artifacts > 1 else ""
        with self.console.status(f"{title}{total} …") as status:
            yield lambda done: status.update(
                f"{title} {done}/{artifacts} …" if artifacts > 1 else f"{title} …"
            )
        seconds = time.monotonic() - started
        many = f" × {artifacts}" if artifacts > 1 else ""
        how = "cached" if cached == artifacts else f"{seconds:.1f} s"
        if 0 < cached < artifacts:
            how += f", {cached} cached"
        self.console.print(f"[green]✓[/] {title}{many} [dim]{how}[/]", highlight=False)


@contextmanager
def watched(settings: Settings) -> Iterator[Settings]:
    """A session whose stages are shown in the terminal."""
    starting = on_terminal.status("starting Prefect and Dask …") if uses_prefect(settings) else nullcontext()
    with ExitStack() as stack:
        with starting:
            ready = stack.enter_context(session(settings))
        token = WATCHER.set(Terminal(on_terminal))
        stack.callback(WATCHER.reset, token)
        yield ready
