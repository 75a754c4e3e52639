"""A stack's folder that is not ours alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flows.stack.running import find_stack
from flows.stack.state import State, check_folder, locked, write_state
from mudg_core.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "stack"
    place.mkdir()
    write_state(place, State(id="x"))
    return place


@pytest.mark.parametrize("name", ["stack.json", "env", "keys.json", "logs", "prefect/prefect.db"])
def test_f89_a_link_where_our_files_go_is_refused(name: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "target")
    with pytest.raises(InputError, match="link"):
        check_folder(folder)
    with pytest.raises(InputError, match="link"), locked(folder):
        pass


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
