"""Sources whose headers lie, or whose few bytes unpack to gigabytes: refused or read within limits."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.sources import links, registry, shard, tables
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.errors import DataError
from mudg_core.storage import ArtifactStore
from tests.core.corpus.sources import making


def npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def told(shape: str, kind: str = "'<f2'", fortran: bool = False) -> str:
    return f"{{'descr': {kind}, 'fortran_order': {fortran}, 'shape': {shape}}}"


LIES = {
    "10^12 rows": (npy(told("(1000000000000, 16)")), "the header claims 1000000000000 rows"),
    "one row too many": (npy(told("(4, 16)"), bytes(96)), "the header claims 4 rows"),
    "one row too few": (npy(told("(2, 16)"), bytes(96)), "the header claims 2 rows"),
    "10^12 rows of nothing": (npy(told("(1000000000000, 0)")), "not float16 or float32 rows"),
    "negative": (npy(told("(-3, 16)"), bytes(96)), "not float16 or float32 rows"),
    "negative twice": (npy(told("(-3, -16)"), bytes(96)), "not float16 or float32 rows"),
    "nested": (npy("(" * 3000 + ")" * 3000), "cannot be read as .npy"),
    "nested lists": (npy("{'descr': " + "[" * 1500 + "]" * 1500 + "}"), "cannot be read as .npy"),
    "long": (npy(told("(3, 16)") + " " * 5000, bytes(96)), "cannot be read as .npy"),
    "object": (npy(told("(3, 16)", "'|O'"), bytes(96)), "features are object"),
    "double": (npy(told("(3, 16)", "'<f8'"), bytes(384)), "features are float64"),
    "other order": (npy(told("(3, 16)", fortran=True), bytes(96)), "Fortran order"),
    "one dimension": (npy(told("(48,)"), bytes(96)), "not float16 or float32 rows"),
    "three dimensions": (npy(told("(3, 4, 4)"), bytes(96)), "not float16 or float32 rows"),
    "no shape": (npy(told("()"), bytes(2)), "not float16 or float32 rows"),
    "shape of texts": (npy(told("('3', '16')"), bytes(96)), "cannot be read as .npy"),
    "version 9": (b"\x93NUMPY\x09\x00" + bytes(90), "cannot be read as .npy"),
    "empty": (b"", "cannot be read as .npy"),
    "no array": (b"x" * 100, "cannot be read as .npy"),
}


@pytest.mark.parametrize("side", ["img_emb", "text_emb"])
@pytest.mark.parametrize(("data", "words"), LIES.values(), ids=LIES.keys())
def test_f83_an_npy_whose_header_lies_is_refused_when_it_is_added(
    data: bytes, words: str, side: str, store: ArtifactStore, tmp_path: Path
) -> None:
    folder = making.embeddings(tmp_path / "source", {0: 3})
    (folder / side / f"{side}_0.npy").write_bytes(data)
    with pytest.raises(DataError) as refused:
        registry.inspect(str(folder), store, 100)
    assert words in str(refused.value) and f"{side}_0.npy" in str(refused.value)
    assert not registry.refs(store)


def test_f83_rows_of_images_texts_and_metadata_are_compared_when_they_are_added(
    store: ArtifactStore, tmp_path: Path
) -> None:
    folder = making.embeddings(tmp_path / "source", {0: 3, 1: 4})
    metadata = folder / "metadata"
    (metadata / "metadata_0.parquet").write_bytes((metadata / "metadata_1.parquet").read_bytes())
    with pytest.raises(DataError, match="4 rows of metadata, 3 of images"):
        registry.inspect(str(folder), store, 100)
    folder = making.embeddings(tmp_path / "other", {0: 3})
    np.save(folder / "text_emb" / "text_emb_0.npy", np.zeros((3, 8), np.float16))
    with pytest.raises(DataError, match=r"\(3, 8\) texts beside \(3, 16\) images"):
        registry.inspect(str(folder), store, 100)


def bomb(path: Path, rows: int, text: int) -> Path:
    """One long text, stored once, for all rows."""
    values = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * text])
    table = pa.table({"url": values, "caption": values})
    pq.write_table(table, path, compression="zstd", store_schema=False)  # as others write it
    return path


BOMBED = """
import resource, sys
from pathlib import Path
from mudg_core.corpus.sources import links, registry
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.corpus.sources.shard import SourceShard
from mudg_core.settings import StorageSettings
files = SourceFiles(sys.argv[1], StorageSettings(url="file://" + sys.argv[2]))
(parts,) = links.parts(files, files.entries(), 10_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
shard = SourceShard(kind="links", url=files.url, first_row=0, files=tuple(parts))
try:
    table = links.read(files, shard)
    outcome = f"{table.num_rows} rows, {table['url'].null_count} without address"
except Exception as error:
    outcome = f"{type(error).__name__}: {error}"
sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before} {outcome}")
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (1 << 20, "4096 rows, 4096 without address"),
        (60_000, "DataError: 1024 rows unpack to more than 32 MB"),
    ],
    ids=["long texts", "texts that are just short enough"],
)
def test_f87_a_row_group_that_unpacks_to_gigabytes_takes_no_memory(
    text: int, words: str, tmp_path: Path
) -> None:
    """A long text costs its rows, and many that are just short enough cost the file."""
    path = bomb(tmp_path / "bomb.parquet", 4096, text)
    assert path.stat().st_size < 20_000
    command = [sys.executable, "-c", BOMBED, str(path), str(tmp_path / "store")]
    grown, _, outcome = subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition(
        " "
    )
    assert words in outcome
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(grown) * unit < 300 << 20


def test_f87_declared_sizes_are_looked_at_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_CHUNK_BYTES", 1 << 19)
    path = bomb(tmp_path / "bomb.parquet", 10, 1 << 20)
    table = tables.open_table(path, path.stat().st_size, "here")
    monkeypatch.setattr(tables, "_plain", lambda *_: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"row group 0: \d+ bytes of column url unpack to 10\d+"):
        list(tables.batches(table, ["url"], "here"))


def test_f87_more_rows_than_its_bytes_can_hold_are_refused(store: ArtifactStore, tmp_path: Path) -> None:
    flags = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000_000, pa.int32()), ["x"])
    pq.write_table(pa.table({"url": flags, "caption": flags}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="bytes claim to hold 2000000 rows"):
        registry.inspect(str(tmp_path / "x.parquet"), store, 100)


def test_f87_a_shard_of_links_is_limited_as_a_whole(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "MAX_SHARD_BYTES", 1000)
    folder = making.links(tmp_path / "source")
    (ref,) = registry.add(store, registry.inspect(str(folder), store, 100), 100).new
    with pytest.raises(DataError, match="unpack to more than 0 MB"):
        links.read(SourceFiles(str(folder), store.settings), shard.load(store, ref))


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.binary(4)])
def test_f87_columns_of_lists_and_of_wide_values_are_refused(kind: pa.DataType) -> None:
    stored = io.BytesIO()
    pq.write_table(pa.table({"url": pa.array([None], kind), "caption": ["y"]}), stored)
    table = tables.open_table(pa.BufferReader(stored.getvalue()), stored.tell(), "here")
    with pytest.raises(DataError, match=r"column url holds (list|fixed_size)"):
        list(tables.batches(table, ["url", "caption"], "here"))
