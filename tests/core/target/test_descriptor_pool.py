"""Readers for the phrases that users bring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mudg_core.errors import InputError
from mudg_core.target import descriptor_pool
from mudg_core.target.descriptor_pool import as_clause, covers_classes, read_by_class, read_pool, subsample
from mudg_core.target.user_files import MAX_LINE


def as_file(folder: Path, tree: Any) -> Path:
    file = folder / "phrases.json"
    file.write_text(json.dumps(tree))
    return file


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
    file = as_file(tmp_path, {"hen": ["two legs", "a comb"], "cow": ["four legs", "two legs", " "]})
    assert read_pool(file) == ("which has two legs", "which is a comb", "which has four legs")


def test_a_file_of_the_size_of_the_papers(tmp_path: Path) -> None:
    """4,229 different phrases, two of which become another's clause: 4,227 descriptors."""
    phrases = [f"{n} thin stripes" for n in range(4225)]
    phrases += ["a blunt end", "has 7 thin stripes", "used at sea", "has 4000 thin stripes"]
    random = np.random.default_rng(0)
    listed = random.permutation(np.array([*phrases, *phrases[:900]]))
    tree = {f"class {number}": part.tolist() for number, part in enumerate(np.array_split(listed, 1000))}
    assert len(set(listed.tolist())) == 4229
    assert len(read_pool(as_file(tmp_path, tree))) == 4227


def test_text_pool(tmp_path: Path) -> None:
    file = tmp_path / "pool.txt"
    file.write_bytes("\ufefftwo legs\r\n\r\ntwo  legs.\r\nwhich is café-brown\r\n".encode())
    assert read_pool(file) == ("which has two legs", "which is café-brown")


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("pool.json", b"{", ":1"),
        ("pool.json", b'{"a":\n["b"\n}', ":3"),
        ("pool.json", b'{"a":\n["\xff"]}', ":2"),
        ("pool.json", b'{"a": ["b\0"]}', ":1"),
        ("pool.json", b'{"hen": ["b\\u0000"]}', ", 'hen'"),
        ("pool.json", b'{"hen": ["a"], "hen": ["b"]}', ""),
        ("pool.json", b"[1]", ""),
        ("pool.json", b'{"hen": "two legs"}', ""),
        ("pool.json", b'{"hen": [1]}', ", 'hen'"),
        ("pool.json", b"[" * 200_000, ""),
        ("pool.json", b"{}", ""),
        ("pool.txt", b"red\n\xff\xfe", ":2"),
        ("pool.txt", b"red\r\nblue\r\n\0", ":3"),
        ("pool.txt", b"red\n\n" + b"x" * (MAX_LINE + 1), ":3"),
        ("pool.txt", b"\n \n", ""),
    ],
)
def test_f57_an_unusable_pool_is_refused_with_its_line(
    name: str, content: bytes, line: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_pool(file)
    assert caught.value.where == f"{file}{line}"
    assert len(str(caught.value)) < 1000


def test_pool_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pool.txt"
    file.write_text("one\ntwo\nthree\n")
    monkeypatch.setattr(descriptor_pool, "MAX_PHRASES", 2)
    with pytest.raises(InputError, match="3 descriptors"):
        read_pool(file)
    monkeypatch.setattr(descriptor_pool, "MAX_BYTES", 4)
    with pytest.raises(InputError, match="larger"):
        read_pool(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_pool(tmp_path / "none.txt")


def test_phrases_by_class_follow_the_classes_of_the_target(tmp_path: Path) -> None:
    file = as_file(tmp_path, {"Red  Fox": ["a tail"], "hen": ["two legs", " "], "cow": []})
    assert read_by_class(file, ["hen", "red fox"]) == [["two legs"], ["a tail"]]
    assert covers_classes(file, ["hen", "red fox"]) and not covers_classes(file, ["hen", "cow"])
    with pytest.raises(InputError, match=r"2 of 3 classes: 'cow', 'dog'"):
        read_by_class(file, ["cow", "hen", "dog"])
    plain = tmp_path / "pool.txt"
    plain.write_text("hen\n")
    assert not covers_classes(plain, ["hen"])


def test_a_part_of_the_pool_is_fixed_by_the_seed_and_keeps_its_order() -> None:
    pool = [str(number) for number in range(500)]
    part = subsample(pool, 50, seed=3)
    assert len(set(part)) == 50 and list(part) == sorted(part, key=int)
    assert subsample(pool, 50, seed=3) == part != subsample(pool, 50, seed=4)
    assert subsample(pool, None, 0) == subsample(pool, 500, 0) == subsample(pool, 900, 0) == tuple(pool)
