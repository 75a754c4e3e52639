"""Our embed stage beside `clip-retrieval inference`, on the same shards, model and cores.

Both are whole commands, each less its own start-up: a run over a few tiny shards is taken off, rows and
seconds. Ours has Prefect, Dask and the store in it. clip-retrieval writes its metadata too, and may choose
how it runs: trials on a part of the shards find the best of WAYS, then of BATCHES, by the time of its own
loop.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.embed import pipeline
from benchmarks.embed.command import started
from benchmarks.embed.peers import CLIP_MODEL
from benchmarks.peer_environment import THREADS, environment, run
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef

REQUIREMENTS = Path(__file__).with_name("peers") / "clip_retrieval.txt"
PROGRAM = "benchmarks.embed.peers.run_clip_retrieval"
SECONDS = 3600.0
# Libraries that it imports would ask for news, report home or look for models.
ALONE = {
    "NO_ALBUMENTATIONS_UPDATE": "1",
    "WANDB_MODE": "disabled",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(frozen=True)
class How:
    """How clip-retrieval runs: commands side by side, decoding processes of each, threads, rows a batch."""

    jobs: int = 1
    workers: int = 0
    threads: int = 1
    batch: int = 256


WAYS = (
    *(How(workers=workers, threads=threads) for workers in (0, 1, 2) for threads in (1, 2)),
    How(jobs=2),
    How(jobs=2, workers=1),
)
BATCHES = (32, 64, 1024)


@dataclass(frozen=True)
class Trials:
    """What is tried to find how clip-retrieval runs best, on so many shards."""

    shards: int
    ways: tuple[How, ...] = WAYS
    batches: tuple[int, ...] = BATCHES


@dataclass(frozen=True)
class Corpus:
    """Shards with the settings whose store has them."""

    settings: Settings
    shards: Sequence[ArtifactRef]


@dataclass(frozen=True)
class Command:
    rows: int
    seconds: float


def measure(corpus: Corpus, tiny: Corpus, trials: Trials, rounds: int) -> tuple[float | None, dict[str, Any]]:
    python = environment(REQUIREMENTS)
    loops = tried(python, Corpus(corpus.settings, corpus.shards[: trials.shards]), trials)
    best = quickest(loops)
    taken = []
    for _ in range(rounds):
        theirs = [inference(python, one, best)[0] for one in (corpus, tiny)]
        taken.append([ours(corpus), ours(tiny), *theirs])
    rates = [(rate(*turn[:2]), rate(*turn[2:])) for turn in taken]
    ratios = [own / theirs for own, theirs in rates if own and theirs]
    detail = {
        "trials": [asdict(how) | {"loop_seconds": seconds} for how, seconds in loops.items()],
        "chosen": asdict(best),
        "commands": [[asdict(command) for command in turn] for turn in taken],
        "columns": ["ours", "ours, tiny", "clip-retrieval", "clip-retrieval, tiny"],
        "rows_per_second": rates,
        "ratios": ratios,
    }
    return (statistics.median(ratios) if ratios else None), detail


def tried(python: Path, corpus: Corpus, trials: Trials) -> dict[How, float]:
    """Seconds of its loop, by how it ran: all ways at one size of batch, and the best of them at others."""
    loops = {how: inference(python, corpus, how)[1] for how in trials.ways}
    best = quickest(loops)
    return loops | {
        how: inference(python, corpus, how)[1]
        for how in (replace(best, batch=size) for size in trials.batches)
    }


def quickest(loops: dict[How, float]) -> How:
    return min(loops, key=lambda how: loops[how])


def rate(whole: Command, tiny: Command) -> float | None:
    """Rows a second without start-up; nothing if there are too few rows to tell."""
    rows, seconds = whole.rows - tiny.rows, whole.seconds - tiny.seconds
    return rows / seconds if rows > 0 and seconds > 0 else None


def ours(corpus: Corpus) -> Command:
    with pipeline.fresh_store(corpus.settings) as fresh:
        found, done = started("embed", fresh)
    return Command(found["rows"], done.seconds)


def inference(python: Path, corpus: Corpus, how: How) -> tuple[Command, float]:
    """The command's rows and wall time, and the seconds of its own loop."""
    with TemporaryDirectory(prefix="mudg-bench-") as folder, ThreadPoolExecutor(how.jobs) as pool:
        tars = [pipeline.tar_of(corpus.settings, shard) for shard in corpus.shards]
        patterns = [link(tars[job :: how.jobs], Path(folder) / str(job)) for job in range(how.jobs)]
        outs = [Path(folder) / f"out-{job}" for job in range(how.jobs)]
        command = partial(clip_retrieval, python, pipeline.model_folder(corpus.settings), how=how)
        begin = time.monotonic()
        list(pool.map(command, patterns, outs))
        seconds = time.monotonic() - begin
        return Command(sum(map(_rows, outs)), seconds), max(map(_loop_seconds, outs))


def clip_retrieval(
    python: Path, model: Path, tars: str, out: Path, how: How, more: Mapping[str, Any] | None = None
) -> None:
    """The real command, on a pattern of tars, with an open_clip model in a folder."""
    flags = {
        "input_dataset": tars,
        "output_folder": out,
        "input_format": "webdataset",
        "enable_metadata": True,
        "clip_model": CLIP_MODEL,
        "num_prepro_workers": how.workers,
        "batch_size": how.batch,
    }
    words = [f"--{name}={value}" for name, value in (flags | dict(more or {})).items()]
    extra = ALONE | dict.fromkeys(THREADS, str(how.threads))
    run("clip-retrieval", [python, "-m", PROGRAM, model, "inference", *words], SECONDS, extra)


def link(tars: Iterable[Path], folder: Path) -> str:
    """Tars under numbers in a row; returns the pattern that names them."""
    folder.mkdir()
    last = 0
    for last, tar in enumerate(tars):
        (folder / f"{last:05d}.tar").symlink_to(tar)
    return f"{folder}/{{00000..{last:05d}}}.tar"


def _rows(out: Path) -> int:
    return sum(len(np.load(file, mmap_mode="r")) for file in out.glob("img_emb/*.npy"))


def _loop_seconds(out: Path) -> float:
    """Its own account: reading, inference and writing of all batches, and nothing before the first."""
    return sum(float(json.loads(file.read_text())["total_duration"]) for file in out.glob("stats/*.json"))
