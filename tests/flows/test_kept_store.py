"""A store of an earlier release is found whole by this one: content keys and stored paths have not changed.

The archive is the store of `mudg demo` with `SETTINGS`, made at commit 67dea95, without its largest files
(weights of students, and images): a run that finds everything reads none of them. If this fails, every
user's store is computed anew: change the algorithm version of one stage instead, and add a new archive.
"""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.demo_runs import mudg
from tests.support.places import Place

ARCHIVE = Path(__file__).with_name("store_of_67dea95.tar.xz")
ARTIFACTS = 50
SETTINGS = {
    "corpus.rows": 160,
    "corpus.rows_per_shard": 80,
    "index.cells": 4,
    "index.iterations": 2,
    "augment.pool": 60,
    "augment.count": 2,
    "dataset.neighbors": 8,
    "dataset.per_class": 2,
    "train.iterations": 2,
    "train.batch_size": 8,
    "evaluate.demo_images_per_class": 1,
}


@pytest.fixture
def kept(local: Place, tmp_path: Path) -> Place:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    flags = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    return replace(local, folder=tmp_path, flags=flags)


def test_a_run_finds_all_that_an_earlier_release_made(kept: Place) -> None:
    before = kept.digests()
    summary = kept.run("demo")
    assert (summary["cached"], summary["computed"]) == (ARTIFACTS, 0)
    assert kept.digests() == before


def test_its_index_is_searched(kept: Place) -> None:
    hits = replace(kept, flags=()).run("search", "a photo of a cat")["hits"]
    assert len(hits) == 10 and sum("cat" in hit["caption"].lower() for hit in hits) > 5


SERVERS = {"prefect", "distributed", "dask"}
HEAVY = {"scipy.sparse", "sklearn", "huggingface_hub.constants", "timm.models", "sympy"}


def test_a_search_loads_only_what_it_needs(kept: Place) -> None:
    done = mudg("search", "a photo of a cat", cwd=kept.folder, PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0 and "open_clip" in loaded
    assert not loaded & (SERVERS | HEAVY)


def test_a_run_that_finds_everything_loads_neither_servers_nor_models(kept: Place) -> None:
    done = mudg("demo", *kept.flags, cwd=kept.folder, PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0 and f"0 computed, {ARTIFACTS} cached" in done.stdout
    assert "flows.demo" in loaded and not loaded & (SERVERS | HEAVY | {"torch", "scipy.special"})


def test_another_setting_is_another_artifact(kept: Place) -> None:
    before = kept.digests()
    kept.run("index", "build", "--set", "corpus.source=demo", "--set", "index.iterations=3")
    assert kept.made_since(before)["centroids"] > 0
