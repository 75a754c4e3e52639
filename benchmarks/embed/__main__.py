"""`make bench-embed`: the embed stage beside bare forward passes and clip-retrieval; memory, plan, overhead.

python -m benchmarks.embed [raw] [vit] [peer] [overhead] [growth] [--tiny]

Without names all parts run (about half an hour on two cores, which nothing else may use). Figures are
kept in benchmarks/results/embed.json, part by part with the commit they were measured at; the last line
printed is one JSON object with all of them. `--tiny` tries everything on a few rows, and keeps nothing.

  raw       rows a second of the stage over those of a bare loop of forward passes (demo:index)
  vit       the same with a ViT-B-32 and images of 256 pixels
  peer      rows a second of ours over those of clip-retrieval
  overhead  share of the workers' time that is not spent inside the stage, at 1,000 rows a shard
  growth    peak memory of few rows and of many, and the time that `mudg plan` says over the time it took
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.embed import peer, raw, scale
from benchmarks.embed.command import drawn
from benchmarks.embed.peer import How, Trials
from benchmarks.embed.pipeline import settings_for
from benchmarks.parts import Figures, Found, kept_as, parser_of, run_parts

HOME = Path(".mudg/bench-embed/.mudg")
DEMO_CORPUS = Path(".mudg/bench-demo/.mudg")  # where the index benchmark has its rows
SMALLEST = 50  # rows of a shard that settings allow
ALL_TRIALS = Trials(shards=2)


@dataclass(frozen=True)
class Sizes:
    """Rows and rounds of each part."""

    rows_per_shard: int = 2_000
    raw: int = 8_000
    rounds: int = 3
    vit: int = 256
    vit_rows_per_shard: int = 64
    vit_rounds: int = 2
    peer_rows: int = 16_000
    peer_trials: Trials = ALL_TRIALS
    peer_rounds: int = 2
    overhead_shards: int = 64
    overhead_rows_per_shard: int = 1_000
    few: int = 20_000
    many: int = 200_000
    large_rows_per_shard: int = 10_000  # as the index benchmark has drawn them


TINY = Sizes(
    rows_per_shard=SMALLEST,
    raw=200,
    rounds=2,
    vit=100,
    vit_rows_per_shard=SMALLEST,
    vit_rounds=1,
    peer_rows=400,
    peer_trials=Trials(2, (How(jobs=2),), (32,)),
    peer_rounds=1,
    overhead_shards=4,
    overhead_rows_per_shard=SMALLEST,
    few=100,
    many=200,
    large_rows_per_shard=SMALLEST,
)


def main() -> None:
    asked = parser_of(__doc__, PARTS).parse_args()
    sizes = TINY if asked.tiny else Sizes()
    run_parts(asked.parts or PARTS, lambda name: PARTS[name](sizes), kept_as("embed", tiny=asked.tiny))


def over_raw(sizes: Sizes) -> Found:
    settings = settings_for(HOME, sizes.raw, sizes.rows_per_shard)
    ratio, detail = raw.measure(settings, drawn(settings), sizes.rounds)
    return {"pipeline_over_raw": ratio}, detail


def over_raw_vit(sizes: Sizes) -> Found:
    model = raw.untrained(HOME.with_name("vit-b-32"), "ViT-B-32")
    areas: dict[str, Figures] = {"encode": {"model": model}, "corpus": {"image_size": 256}}
    settings = settings_for(HOME, sizes.vit, sizes.vit_rows_per_shard, **areas)
    ratio, detail = raw.measure(settings, drawn(settings), sizes.vit_rounds)
    return {"pipeline_over_raw_vit_b_32": ratio}, detail


def over_peer(sizes: Sizes) -> Found:
    whole, tiny = (
        peer.Corpus(settings, drawn(settings))
        for settings in (
            settings_for(HOME, sizes.peer_rows, sizes.rows_per_shard),
            settings_for(HOME, 4 * SMALLEST, SMALLEST),
        )
    )
    ratio, detail = peer.measure(whole, tiny, sizes.peer_trials, sizes.peer_rounds)
    return {"vs_clip_retrieval": ratio}, detail


def overhead(sizes: Sizes) -> Found:
    rows = sizes.overhead_shards * sizes.overhead_rows_per_shard
    share, detail = scale.overhead(settings_for(HOME, rows, sizes.overhead_rows_per_shard))
    return {"tasks_overhead": share}, detail


def growth(sizes: Sizes) -> Found:
    """One shard a task: with more, few rows would keep one worker busy only, and many both."""
    home = DEMO_CORPUS if sizes.many == Sizes().many else HOME
    areas: dict[str, Figures] = {"compute": {"shards_per_task": 1}}
    settings = [
        settings_for(home, rows, sizes.large_rows_per_shard, **areas) for rows in (sizes.few, sizes.many)
    ]
    return scale.growth(*settings)


PARTS: dict[str, Callable[[Sizes], Found]] = {
    "raw": over_raw,
    "vit": over_raw_vit,
    "peer": over_peer,
    "overhead": overhead,
    "growth": growth,
}

if __name__ == "__main__":
    main()
