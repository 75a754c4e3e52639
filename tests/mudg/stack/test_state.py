"""What is known of a stack survives the command that knows it, and tells no secret."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from mudg.cli.app import app
from mudg.cli.command import settings_from
from mudg.ops.stack.credentials import keys_of
from mudg.ops.stack.running import Stack, find_stack, use_stack
from mudg.ops.stack.state import Process, State, check_folder, locked, read_state, write_state
from mudg.ops.stack.stop import wipe
from mudg_core.errors import DataError, InputError, OrchestrationError

PORTS = dict.fromkeys(("prefect", "s3", "s3-filer", "dask", "dask-http"), 9)


def this_process(**values: object) -> Process:
    born = psutil.Process().create_time()
    fields = {"name": "prefect-server", "pid": os.getpid(), "started": born, "command": ("x",)}
    return Process.model_validate(fields | values)


def test_state_is_written_whole_and_private(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    stack = Stack(tmp_path, State(id="x", ports=PORTS, settings={"MUDG_CORPUS__ROWS": "500"}, workers=1))
    stack.record(this_process(name="s3"))
    stack.record(this_process(name="dask-workers"))
    stack.record(this_process(name="s3", pid=1))
    assert read_state(tmp_path) == stack.state
    assert [(one.name, one.pid) for one in stack.state.processes] == [
        ("dask-workers", os.getpid()),
        ("s3", 1),
    ]
    stack.forget("s3")
    assert [one.name for one in stack.state.processes] == ["dask-workers"]
    text = (tmp_path / "stack.json").read_text()
    assert stack.keys.secret not in text and stack.keys.internal not in text
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "stack.json": 0o600,
        "keys.json": 0o600,
    }


def test_keys_are_random_and_stay(tmp_path: Path) -> None:
    keys = keys_of(tmp_path)
    (tmp_path / "other").mkdir()
    assert keys_of(tmp_path) == keys and keys_of(tmp_path / "other") != keys
    assert len({keys.access, keys.secret, keys.internal}) == 3 and len(keys.secret) >= 32


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        read_state(tmp_path)


def test_one_command_at_a_time_works_on_a_stack(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with locked(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(OrchestrationError, match="another"), locked(folder):
            pass
    with locked(folder):
        pass


def test_a_folder_with_other_things_in_it_is_no_place_for_a_stack(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    check_folder(folder)
    with locked(folder):
        pass
    check_folder(folder)  # of an `up` that was killed at once
    (folder / "holiday.jpg").touch()
    with pytest.raises(InputError, match="no stack's"):
        check_folder(folder)
    keys_of(folder)
    check_folder(folder)


def test_a_stack_is_found_while_any_of_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_stack() is None
    folder = tmp_path / ".mudg/stack"
    folder.mkdir(parents=True)
    write_state(folder, State(id="x", ports=PORTS, workers=1, processes=(this_process(started=1.0),)))
    assert find_stack() is None  # the number is somebody else's now
    write_state(folder, State(id="x", ports=PORTS, workers=1, processes=(this_process(),)))
    stack = find_stack()
    assert stack is not None and stack.folder == folder and stack.is_alive("prefect-server")
    assert not stack.is_alive("s3")


def test_whoever_does_not_use_the_stack_that_runs_here_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    folder = tmp_path / ".mudg/stack"
    folder.mkdir(parents=True)
    settings_from((), ())
    assert capsys.readouterr().err == ""
    write_state(folder, State(id="x", ports=PORTS, workers=1, processes=(this_process(),)))
    settings_from((), ())
    assert f"source {folder}/env" in capsys.readouterr().err
    settings_from((), ["storage.url=s3://mine/store"])
    settings_from((), (), hint=False)
    monkeypatch.setenv("PREFECT_API_URL", "http://mine/api")
    settings_from((), ())
    assert capsys.readouterr().err == ""


def test_a_server_that_the_user_has_named_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(tmp_path, State(id="x", ports=PORTS, workers=1, processes=(this_process(),)))
    for name in ("MUDG_STORAGE__URL", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "before")
    with monkeypatch.context() as patch:
        patch.setenv("PREFECT_API_URL", "http://mine/api")
        assert use_stack(tmp_path) and os.environ["MUDG_STORAGE__URL"] == "before"
    environ: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", environ)
    stack = use_stack(tmp_path)
    assert stack is not None and environ == stack.environment()


def test_down_without_a_stack_is_well(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["down", "--folder", str(tmp_path / "none")])
    assert done.exit_code == 0 and "nothing of a stack is running" in done.stdout
    assert not (tmp_path / "none").exists()


def test_only_what_a_stack_has_made_is_wiped(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "mine").write_text("x")
    assert wipe(tmp_path) == [] and (tmp_path / "logs" / "mine").exists()  # never was one
    write_state(tmp_path, State(id="x", processes=(this_process(),)))
    (tmp_path / "holiday.jpg").write_text("x")
    with pytest.raises(OrchestrationError, match="started again"):
        wipe(tmp_path)
    write_state(tmp_path, State(id="x"))
    (tmp_path / "keys.json").unlink()
    assert wipe(tmp_path) == ["logs", "stack.json", "lock"]
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
