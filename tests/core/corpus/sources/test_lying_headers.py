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

from mudg_core.corpus.sources import links, pages, registry, shard, tables
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
    "thousands of digits": (npy(told(f"(0x{'f' * 3900}, 16)"), bytes(96)), "not float16 or float32 rows"),
    "negative digits": (npy(told(f"(-0x{'f' * 3900}, 16)"), bytes(96)), "not float16 or float32 rows"),
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
    monkeypatch.setattr(tables, "_unpacked", lambda *_: pytest.fail("it was read"))
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


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.struct([("x", pa.string())])])
def test_f87_nested_columns_are_refused_when_a_list_is_added(
    kind: pa.DataType, store: ArtifactStore, tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"url": pa.array([None], kind), "caption": ["y"]}), path)
    with pytest.raises(DataError, match=r"column url holds (list|struct)"):
        registry.inspect(str(path), store, 100)


def varint(number: int, length: int = 0) -> bytes:
    """A signed number of Thrift, as long as asked for."""
    number, digits = number * 2, bytearray()
    while number or not digits or len(digits) < length:
        digits.append(number & 127 | 128)
        number >>= 7
    digits[-1] &= 127
    return bytes(digits)


@pytest.mark.parametrize("dictionary", [True, False])
def test_f87_a_footer_that_claims_less_is_not_believed(
    dictionary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_CHUNK_BYTES", 1 << 19)
    path = tmp_path / "bomb.parquet"
    texts = {"url": ["x" * (1 << 20)], "caption": ["y"]}
    pq.write_table(pa.table(texts), path, compression="zstd", use_dictionary=dictionary)
    real = pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size
    assert real > 1 << 20
    path.write_bytes(path.read_bytes().replace(varint(real), varint(1000, len(varint(real)))))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == 1000
    table = tables.open_table(path, path.stat().st_size, "here")
    monkeypatch.setattr(tables, "_unpacked", lambda *_: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"row group 0: \d+ bytes of column url unpack to 10\d+"):
        list(tables.batches(table, ["url"], "here"))
    monkeypatch.setattr(tables, "MAX_PAGE_BYTES", 1 << 19)
    with pytest.raises(DataError, match="a page of column url unpacks to"):
        list(tables.batches(table, ["url"], "here"))


UNREAD = ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")


def encoded(path: Path, encoding: str, version: str = "1.0") -> Path:
    """As some writers do it; Arrow reads such columns only with all memory that they ask for."""
    texts = [f"https://x.example/{row}" for row in range(20_000)]
    options = {"column_encoding": {"url": encoding}, "data_page_version": version, "compression": "none"}
    pq.write_table(pa.table({"url": texts, "caption": texts}), path, use_dictionary=["caption"], **options)
    return path


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", UNREAD)
def test_f83_an_encoding_that_is_not_read_is_refused_when_it_is_added(
    encoding: str, version: str, store: ArtifactStore, tmp_path: Path
) -> None:
    path = encoded(tmp_path / "x.parquet", encoding, version)
    with pytest.raises(DataError, match=f"column url is encoded as {encoding}"):
        registry.inspect(str(path), store, 100)
    folder = making.embeddings(tmp_path / "source", {0: 20_000})
    (folder / "metadata" / "metadata_0.parquet").write_bytes(path.read_bytes())
    with pytest.raises(DataError, match=f"column url is encoded as {encoding}"):
        registry.inspect(str(folder), store, 100)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", UNREAD)
def test_f87_an_encoding_that_the_footer_hides_is_refused_before_it_is_read(
    encoding: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page claims two million lengths, and Arrow would take memory for as many as are claimed."""
    path = encoded(tmp_path / "x.parquet", encoding, version)
    count = (b"\x80\x01\x04\xa0\x9c\x01", b"\x80\x01\x04\xff\xff\x7f")
    assert count[0] in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(*count))
    monkeypatch.setattr(tables, "check_encodings", lambda *_: None)
    table = tables.open_table(path, path.stat().st_size, "here")
    monkeypatch.setattr(table, "iter_batches", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(DataError, match=f"column url is encoded as {encoding}"):
        list(tables.batches(table, ["url"], "here"))


def test_f83_two_columns_of_one_name_are_refused_when_they_are_added(
    store: ArtifactStore, tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table([["a"], ["b"], ["c"]], names=["url", "url", "caption"]), path)
    with pytest.raises(DataError, match="several columns have the same name: url"):
        registry.inspect(str(path), store, 100)


def test_f87_a_page_as_long_as_no_reader_takes_it_is_refused() -> None:
    """Arrow takes 32 bits of it, and finds the next page where nobody has looked."""
    long = b"\x25\0" + b"\x15" + varint((1 << 32) + 10) + b"\0"
    with pytest.raises(ValueError, match="without its sizes"):
        list(pages.pages(io.BytesIO(long + bytes(100)), 0, 100))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_the_pages_of_honest_files_add_up(version: str, compression: str, dictionary: bool) -> None:
    stored, texts = io.BytesIO(), [f"a caption of row {row}" * (row % 7) for row in range(5000)]
    options = {"compression": compression, "use_dictionary": dictionary, "data_page_version": version}
    pq.write_table(pa.table({"x": texts}), stored, data_page_size=20_000, write_page_index=True, **options)
    chunk = pq.ParquetFile(stored).metadata.row_group(0).column(0)
    start = chunk.dictionary_page_offset if dictionary else chunk.data_page_offset
    found = list(pages.pages(stored, start, chunk.total_compressed_size))
    sizes = [page.unpacked for page in found]
    assert frozenset.union(*(page.encodings for page in found)) <= {0, 2, 8}  # plain, or from a dictionary
    headers = chunk.total_uncompressed_size - sum(sizes)
    assert len(sizes) >= 2 and 0 < headers < 200 * len(sizes)
    stored.seek(0)
    assert sum(batch.num_rows for batch in tables.batches(tables.open_table(stored, 10**6, "x"), ["x"], "x"))


@pytest.mark.parametrize(
    "header",
    [b"", b"\x15", b"\x1c" * 50, b"\x19\xf5\xff\xff\xff\xff\x0f", b"\x1d", b"\x15" + b"\xff" * 11, b"\0"],
)
def test_f87_headers_that_make_no_sense(header: bytes) -> None:
    with pytest.raises(ValueError, match=r"header|number|page"):
        list(pages.pages(io.BytesIO(header), 0, max(1, len(header))))


def test_f87_pages_are_limited_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_PAGES", 10)
    empty = b"\x25\0\x15\0\0"  # sizes of nothing
    assert list(pages.pages(io.BytesIO(empty * 9), 0, 9 * len(empty))) == [(0, frozenset())] * 9
    with pytest.raises(ValueError, match="pages"):
        list(pages.pages(io.BytesIO(empty * 11), 0, 11 * len(empty)))
