"""`datasets` and `webdataset` take our exports as they are: images as images, labels with their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peer_environment import ONE_THREAD, environment, run
from mudg_core.corpus.decode import decode
from mudg_core.dataset.export import Source, export
from mudg_core.dataset.export.formats import write_huggingface
from mudg_core.target.spec import slug
from tests.interop.conftest import PEERS
from tests.support.training_sets import CAPTIONS, CLASSES, IMAGES, labels, make_dataset, picture, store_at

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]  # its environment is made on the way

SECONDS = 300.0
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


@pytest.fixture(scope="module")
def python() -> Path:
    return environment(Path(__file__).parent / "peers" / "huggingface.txt", PEERS)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    store = store_at(tmp_path)
    return Source.open(store, make_dataset(store), ["animals"])


def read(python: Path, kind: str, folder: Path, scratch: Path) -> Any:
    out = scratch / "read.json"
    command = [python, "-m", "tests.interop.programs.read_export", kind, folder, out]
    run("datasets", command, SECONDS, {**ONE_THREAD, **OFFLINE, "HF_HOME": str(scratch / "hf")})
    return json.loads(out.read_text())


def colour(number: int) -> list[int]:
    """As the pictures have it: JPEG and WebP change colours a little, and all readers the same way."""
    found = decode(picture(number)).getpixel((0, 0))
    assert isinstance(found, tuple)
    return [int(part) for part in found]


@pytest.mark.parametrize("kind", ["folder", "parquet"])
def test_datasets_gives_images_labels_and_provenance(
    python: Path, source: Source, kind: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(source, out, "huggingface")
    told = read(python, kind, out, tmp_path)
    assert told["types"]["image"] == "Image" and told["types"]["label"] == "ClassLabel"
    assert told["names"] == list(CLASSES) and len(told["lines"]) == IMAGES
    for number, line in enumerate(told["lines"]):
        assert line["class"] == CLASSES[labels()[number]] and line["pixel"] == colour(number)
        assert line["row"] == 40 + number and line["caption"] == CAPTIONS[(40 + number) % 5]


def test_datasets_reads_many_files_in_order(python: Path, source: Source, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    write_huggingface(source, out, max_bytes=1)
    told = read(python, "parquet", out, tmp_path)
    assert [line["row"] for line in told["lines"]] == list(range(40, 40 + IMAGES))


def test_datasets_reads_an_imagefolder(python: Path, source: Source, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(source, out, "imagefolder")
    told = read(python, "imagefolder", out, tmp_path)
    assert told["names"] == [slug(name, label) for label, name in enumerate(CLASSES[:-1])]
    wanted = [[slug(CLASSES[label], label), colour(number)] for number, label in enumerate(labels())]
    assert sorted([line["class"], line["pixel"]] for line in told["lines"]) == sorted(wanted)


def test_webdataset_pairs_images_and_labels(python: Path, source: Source, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(source, out, "webdataset")
    wanted = [{"pixel": colour(n), "label": label, "row": 40 + n} for n, label in enumerate(labels())]
    assert read(python, "webdataset", out, tmp_path)["lines"] == wanted
    assert read(python, "webdataset", source.tar.parent, tmp_path)["lines"] == wanted  # the artifact itself
