"""Empty databases for Prefect's server."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tasks.executors.prefect_database import keep, lay_out, template


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _made(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE alembic_version (number TEXT)")
        database.execute("INSERT INTO alembic_version VALUES ('head')")
        database.commit()
    return path


def _versions(path: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT number FROM alembic_version").fetchall()


def test_the_first_server_makes_it_and_later_ones_get_a_copy(tmp_path: Path) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    assert lay_out(first) and not first.exists()
    with closing(sqlite3.connect(_made(first))):  # as a server has it open
        keep(first)
    assert not lay_out(second)
    assert _versions(second) == [("head",)]
    assert sorted(item.name for item in template().parent.iterdir()) == [template().name]


def test_a_database_that_is_there_stays(tmp_path: Path) -> None:
    _made(made := tmp_path / "kept.db")
    keep(made)
    mine = tmp_path / "mine.db"
    mine.write_bytes(b"mine")
    assert not lay_out(mine)
    assert mine.read_bytes() == b"mine"


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    keep(_made(tmp_path / "some.db"))
    assert lay_out(tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


def test_each_version_of_prefect_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = template()
    monkeypatch.setattr("tasks.executors.prefect_database.version", lambda name: f"{name} 99")
    assert template() != before
