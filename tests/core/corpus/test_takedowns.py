"""The list of takedowns: what it matches, that it only grows, and that it does not tell addresses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus import takedowns as lists
from mudg_core.corpus.takedowns import Takedowns, read_takedowns, remember
from tests.support.training_sets import store_at

IMAGES = pa.table(
    {
        "row": [1, 2, 3, 4, 5],
        "url": ["http://x/1", "http://x/2", "http://x/1", "", None],
        "sha256": ["aa", "bb", "cc", "aa", None],
    }
)


def test_an_image_is_known_by_its_address_and_by_its_bytes() -> None:
    by_url = Takedowns.of(IMAGES.slice(0, 0), [" http://x/1 "])
    assert by_url.matches(IMAGES).tolist() == [True, False, True, False, False]
    by_row = Takedowns.of(IMAGES.slice(0, 1))
    assert by_row.matches(IMAGES).tolist() == [True, False, True, True, False]
    assert by_row.rows == frozenset()  # a row number means another image in another corpus
    bare = Takedowns.of(IMAGES.slice(4, 1))
    assert bare.rows == {5} and bare.matches(IMAGES).tolist() == [False] * 4 + [True]
    assert Takedowns().matches(IMAGES).tolist() == [False] * 5 and not Takedowns()
    assert by_url.matches(IMAGES.select(["row", "sha256"])).tolist() == [False] * 5


def test_rows_of_a_file_are_found_part_by_part(tmp_path: Path) -> None:
    rows = np.arange(200_000)
    table = pa.table({"row": rows, "url": [f"http://x/{row % 70_000}" for row in rows]})
    pq.write_table(table, tmp_path / "x.parquet")
    found = Takedowns.of(table.slice(69_999, 1)).rows_in(tmp_path / "x.parquet")
    assert found == [69_999, 139_999]


def test_what_lies_at_an_address_is_known_by_its_bytes_too(tmp_path: Path) -> None:
    """Row 4 is a copy of row 1 without an address, and row 3 was at the address of row 1 at another time."""
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, part in zip(files, (IMAGES.slice(0, 2), IMAGES.slice(2)), strict=True):
        pq.write_table(part, file)
    by_url = Takedowns.of(IMAGES.slice(0, 0), ["http://x/1"])
    widened = by_url.with_bytes(files)
    assert widened.contents == {"aa", "cc"} and widened.urls == by_url.urls
    assert widened.matches(IMAGES).tolist() == [True, False, True, True, False]
    elsewhere = Takedowns.of(IMAGES.slice(0, 0), ["http://x/9"])
    assert elsewhere.with_bytes(files) == elsewhere


def test_the_list_only_grows_and_hides_addresses(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    assert read_takedowns(store) == Takedowns()
    first = remember(store, Takedowns.of(IMAGES.slice(0, 1)))
    again = remember(store, Takedowns.of(IMAGES.slice(0, 1)))
    assert again == first == read_takedowns(store) and first.ref is not None
    remember(store, Takedowns.of(IMAGES.slice(1, 1), ["http://x/9"]) | Takedowns(marked={"model/a": 2}))
    now = read_takedowns(store)
    assert now.urls > first.urls and now.contents == {"aa", "bb"} and len(now.urls) == 3
    assert now.note("model/a") == "trained on 2 images since taken down" and now.note("model/b") == ""
    text = store.file(now.ref, lists.FILE).read_text() if now.ref else ""
    assert text and "http" not in text


def test_two_who_add_at_once_lose_nothing(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    save, calls = lists._save, []

    def and_another(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            remember(store_at(tmp_path), Takedowns(contents=frozenset(["other"])))
        return save(*arguments)  # type: ignore[arg-type]

    lists._save, kept = and_another, lists._save  # type: ignore[assignment]
    try:
        remember(store, Takedowns(contents=frozenset(["mine"])))
    finally:
        lists._save = kept
    assert read_takedowns(store).contents == {"mine", "other"}
