"""A stack's folder that is not ours alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mudg.ops.stack.running import find_stack
from mudg.ops.stack.state import State, check_folder, check_owner, locked, write_state
from mudg_core.errors import InputError

FILES = ("stack.json", "env", "keys.json", "logs", "prefect/prefect.db", "tls/ca.pem")
FOLDERS = ("cache", "dask", "logs", "prefect", "s3", "tls", "work")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "stack"
    place.mkdir()
    write_state(place, State(id="x"))
    return place


@pytest.mark.parametrize("name", [*FILES, *(f"{place}/any" for place in FOLDERS)])
def test_f89_a_link_where_our_files_go_is_refused(name: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "target")
    with pytest.raises(InputError, match="link"):
        check_folder(folder)
    with pytest.raises(InputError, match="link"), locked(folder):
        pass


@pytest.mark.parametrize("place", FOLDERS)
def test_f89_what_another_user_has_put_into_a_part_of_it_is_refused(
    place: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / place).mkdir()
    theirs = folder / place / "theirs"
    theirs.touch()
    real = Path.lstat

    def given_away(path: Path) -> os.stat_result:
        found = real(path)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10])) if path == theirs else found

    monkeypatch.setattr(Path, "lstat", given_away)
    with pytest.raises(InputError, match="another user") as refused:
        check_folder(folder)
    assert refused.value.where == str(theirs)


def test_a_file_that_goes_while_it_is_looked_at_is_nobodys(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "iterdir", lambda self: iter([self / "stack.json", self / "gone"]))
    check_owner(folder)


def test_f89_a_folder_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(InputError, match="link"):
        find_stack(tmp_path / "link")


def test_f89_a_folder_of_another_user_is_refused_by_all_who_read_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings would become our environment."""
    find_stack(folder)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for use in (find_stack, check_folder):
        with pytest.raises(InputError, match="another user"):
            use(folder)
    with pytest.raises(InputError, match="another user"), locked(folder):
        pass
