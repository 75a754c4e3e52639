"""The embed stage as a command of its own: what `mudg index build` does up to there, and then it ends.

python -m benchmarks.embed.command {draw,embed} SETTINGS

SETTINGS is a JSON file with the whole tree. The last line printed is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import mudg.cli  # noqa: F401  (quietens Prefect and Dask, as for users)
from benchmarks.embed import pipeline
from benchmarks.memory import Watched, run_watched
from benchmarks.peer_environment import ROOT
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("settings", type=Path)
    asked = parser.parse_args()
    settings = Settings.model_validate_json(asked.settings.read_bytes())
    with pipeline.session(settings) as ready:
        found = COMMANDS[asked.what](ready)
    sys.stdout.write(json.dumps(found) + "\n")


def draw(ready: Settings) -> dict[str, Any]:
    return {"shards": len(pipeline.draw_all(ready))}


def embed(ready: Settings) -> dict[str, Any]:
    """What the stage took: on the wall with workers up, and inside its own function over all workers."""
    shards = pipeline.known_shards(ready)
    assert shards, "draw first"
    pipeline.warm(ready)
    refs, seconds = pipeline.embed_all(ready, shards)
    return {
        "rows": pipeline.rows_of(ready, refs),
        "shards": len(refs),
        "seconds": seconds,
        "inside": pipeline.seconds_inside(ready, refs),
        "workers": ready.compute.workers,
    }


def started(what: str, settings: Settings, every: float | None = None) -> tuple[dict[str, Any], Watched]:
    """Runs this command in a process of its own: what it has printed, and how it went. Its memory is looked
    at `every` so many seconds."""
    with NamedTemporaryFile("w", suffix=".json") as file:
        file.write(settings.model_dump_json())
        file.flush()
        command = [sys.executable, "-m", "benchmarks.embed.command", what, file.name]
        done = run_watched(command, ROOT, every)
    if done.returncode:
        raise RuntimeError(f"`{what}` failed with exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.out.strip().splitlines()[-1])
    return found, done


def drawn(settings: Settings) -> list[ArtifactRef]:
    """The corpus shards; drawn once, and found by every later run."""
    if pipeline.known_shards(settings) is None:
        started("draw", settings)
    shards = pipeline.known_shards(settings)
    assert shards is not None
    return shards


COMMANDS = {"draw": draw, "embed": embed}

if __name__ == "__main__":
    main()
