"""A store that cannot be written, or that is taken away in the middle of a run."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mudg.cli.app import app
from tests.core.corpus.sources import making
from tests.support.built import Built
from tests.support.demo_runs import FLAGS, MUDG, environment
from tests.support.places import Place, runner

WRITES = [
    ["demo"],
    ["corpus", "add", "images"],
    ["index", "build"],
    ["target", "run", "spec.yaml"],
    ["target", "run", "spec.yaml", "--out", "made"],
    ["up"],
    ["takedown", "--row", "0"],
]
READS = [["search", "a photo of a cat"], ["corpus", "status"], ["index", "list"], ["gc"], ["doctor"]]
EMBEDDED = "artifacts/embedding-shard/*/manifest.json"


@pytest.fixture
def frozen(tmp_path: Path, first: Built) -> Iterator[Path]:
    """A folder with an index, and a file system below it that takes no more writes."""
    with _mounted(tmp_path / "disk") as disk:
        place = first.place.copy(disk)
        making.images(disk / "images", 4)
        (disk / "spec.yaml").write_text("name: pets\nclasses: [cat, dog]\n")
        with _read_only(disk):
            yield place.folder


@contextmanager
def _mounted(folder: Path) -> Iterator[Path]:
    """A disk of its own for root, whom no permission stops; a folder for others."""
    folder.mkdir()
    if os.geteuid() != 0:
        yield folder
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    if os.geteuid() == 0:
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        yield
        return
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    try:
        yield
    finally:
        for path in folders:
            path.chmod(0o700)


@pytest.mark.timeout(600)
def test_f95_on_a_read_only_file_system_commands_say_so(frozen: Path) -> None:
    """No traceback from any of them, and each that writes names the disk."""
    told = {}
    for arguments in [*WRITES, *READS]:
        with chdir(frozen):
            done = runner.invoke(app, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, done.exception)
        told[" ".join(arguments)] = (done.exit_code, done.output)
    for arguments in WRITES:
        code, said = told[" ".join(arguments)]
        assert code != 0 and ("Read-only file system" in said or "Permission denied" in said), (
            arguments,
            said,
        )
        assert "to do:" in said
    assert told["search a photo of a cat"][0] == told["corpus status"][0] == told["index list"][0] == 0
    assert told["doctor"][0] == 1 and "writable" in told["doctor"][1]


@pytest.mark.timeout(600)
def test_f92_a_store_that_vanishes_is_an_error_and_never_another_corpus(local: Place, tmp_path: Path) -> None:
    source = making.tars(tmp_path / "tars", 4, 60)
    flags = [*FLAGS, "--set", "corpus.source=added", "--set", "corpus.rows_per_shard=60"]
    place = replace(local, folder=tmp_path, flags=[*flags, "--set", "compute.shards_per_task=1"])
    place.run("corpus", "add", str(source))
    command = [MUDG, *place._all(("index", "build")), "--json"]
    store, away = tmp_path / ".mudg", tmp_path / "unmounted"
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 120
        while not any(store.glob(EMBEDDED)):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        store.rename(away)
        said = process.communicate(timeout=300)[0].decode()
    assert process.returncode in (3, 4), said
    assert '"error"' in said
    assert not any(store.glob("artifacts/corpus-shard/*")), "nothing was drawn in its place"
    assert not (store / "pointers").exists()
    with suppress(FileNotFoundError):
        shutil.rmtree(store)
    away.rename(store)
    assert place.run("index", "build")["rows"] > 200, "the same corpus, and all of it"
