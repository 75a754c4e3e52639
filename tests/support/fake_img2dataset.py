"""Stands in for img2dataset where its seconds of imports would add nothing: same arguments, same files.

    http://fake.example/ok/red            a picture
    http://fake.example/fail/MESSAGE      an error, quoted
    http://fake.example/passing/NAME      a time-out, and a picture the next time
    http://fake.example/lost              nothing at all, as when its own code fails
    http://fake.example/hang              nothing, and if others are there the call never ends

It writes rows in another order every time, as threads would, and notes every call beside itself.
"""

from __future__ import annotations

import ast
import io
import json
import os
import random
import sys
import tarfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def install(folder: Path) -> str:
    """A command that runs this file, with its notes in `folder`."""
    command = folder / "img2dataset"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "{folder}" "$@"\n')
    command.chmod(0o755)
    return str(command)


def calls(folder: Path) -> list[dict[str, Any]]:
    """Options, environment and urls of every call so far."""
    notes = folder / "calls"
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def main(folder: Path, arguments: list[str]) -> None:
    options = {}
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        options[name] = ast.literal_eval(value)
    links = pq.read_table(options["url_list"]).to_pylist()
    note = {"options": options, "environment": dict(os.environ), "urls": [row["url"] for row in links]}
    with (folder / "calls").open("a") as notes:
        notes.write(json.dumps(note) + "\n")
    out = Path(options["output_folder"])
    out.mkdir()
    hangs = any(row["url"].endswith("/hang") for row in links)
    _write(out, [_outcome(folder, number, row["url"]) for number, row in enumerate(links)], hangs)


def _outcome(folder: Path, number: int, url: str) -> tuple[dict[str, Any], bytes | None] | None:
    _, _, _, what, *rest = url.split("/")
    image, problem = None, None
    seen = folder / f"seen-{rest[0] if rest else ''}"
    if what in ("lost", "hang"):
        return None
    if what == "fail":
        problem = unquote(rest[0])
    elif what == "passing" and not seen.exists():
        seen.touch()
        problem = "HTTP Error 504: mudg could not: timed out"
    else:
        stored = io.BytesIO()
        Image.new("RGB", (8, 8), rest[0] if what == "ok" else "red").save(stored, "JPEG")
        image = stored.getvalue()
    sizes = dict.fromkeys(("width", "height", "original_width", "original_height"), 8 if image else None)
    facts = {"key": f"{number:09d}", "url": url, "status": "failed_to_download" if problem else "success"}
    return facts | sizes | {"error_message": problem, "exif": "{}" if image else None}, image


def _write(out: Path, outcomes: list[tuple[dict[str, Any], bytes | None] | None], hangs: bool) -> None:
    rows = [outcome for outcome in outcomes if outcome is not None]
    random.SystemRandom().shuffle(rows)
    with tarfile.open(out / "00000.tar", "w") as tar:
        for facts, image in rows:
            if image is not None:
                member = tarfile.TarInfo(f"{facts['key']}.jpg")
                member.size = len(image)
                tar.addfile(member, io.BytesIO(image))
    if hangs and rows:
        time.sleep(600)
    sizes = [(name, pa.int32()) for name in ("width", "height", "original_width", "original_height")]
    texts = [(name, pa.string()) for name in ("key", "url", "status", "error_message", "exif")]
    schema = pa.schema(texts + sizes)
    pq.write_table(pa.Table.from_pylist([facts for facts, _ in rows], schema), out / "00000.parquet")
    (out / "00000_stats.json").write_text("{}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
