"""The descriptor pool and the readers for other pools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mudg_core.errors import InputError
from mudg_core.target import descriptors
from mudg_core.target.descriptors import as_clause, built_in, read_pool


def test_built_in_pool() -> None:
    pool = built_in()
    assert len(pool) == len(set(pool)) >= 400
    assert all(phrase.startswith("which ") for phrase in pool)
    assert all(phrase == " ".join(phrase.split()) and not phrase.endswith(".") for phrase in pool)
    assert built_in() == pool


@pytest.mark.parametrize(
    ("phrase", "clause"),
    [
        ("a long tail", "which is a long tail"),
        ("an orange beak", "which is an orange beak"),
        ("used for cooking", "which is used for cooking"),
        ("has stripes", "which has stripes"),
        ("often red", "which often red"),
        ("typically found in water", "which typically found in water"),
        ("may have spots", "which may have spots"),
        ("can be blue", "which can be blue"),
        ("four legs", "which has four legs"),
        ("which is red", "which is red"),
        ("  four \t legs.  ", "which has four legs"),
        ("which is   red.", "which is red"),
    ],
)
def test_grammar(phrase: str, clause: str) -> None:
    assert as_clause(phrase) == clause


def test_json_pool(tmp_path: Path) -> None:
    file = tmp_path / "pool.json"
    file.write_text(json.dumps({"hen": ["two legs", "a comb"], "cow": ["four legs", "two legs", " "]}))
    assert read_pool(file) == ("which has two legs", "which is a comb", "which has four legs")


def test_text_pool(tmp_path: Path) -> None:
    file = tmp_path / "pool.txt"
    file.write_bytes("\ufefftwo legs\r\n\r\ntwo  legs.\r\nwhich is café-brown\r\n".encode())
    assert read_pool(file) == ("which has two legs", "which is café-brown")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pool.json", b"{"),
        ("pool.json", b"[1]"),
        ("pool.json", b'{"hen": "two legs"}'),
        ("pool.json", b'{"hen": [1]}'),
        ("pool.json", b"[" * 200_000),
        ("pool.json", b"{}"),
        ("pool.txt", b"\xff\xfe"),
        ("pool.txt", b"\n \n"),
    ],
)
def test_unusable_pool(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_pool(file)
    assert caught.value.where == str(file)


def test_pool_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pool.txt"
    file.write_text("one\ntwo\nthree\n")
    monkeypatch.setattr(descriptors, "MAX_PHRASES", 2)
    with pytest.raises(InputError, match="3 descriptors"):
        read_pool(file)
    monkeypatch.setattr(descriptors, "MAX_BYTES", 4)
    with pytest.raises(InputError, match="larger"):
        read_pool(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_pool(tmp_path / "none.txt")
