"""Starting parts, with small programs in place of the real ones."""

from __future__ import annotations

import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib.metadata import PackagePath
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from typer.testing import CliRunner

from mudg.cli.app import app
from mudg.ops.stack import parts, ports, prefect_setup, start
from mudg.ops.stack.parts import Part
from mudg.ops.stack.processes import marked
from mudg.ops.stack.running import Stack
from mudg.ops.stack.start import StartOptions, start_stack
from mudg.ops.stack.state import State, locked, read_state, write_state
from mudg.ops.stack.stop import ORDER, stop_part, stop_stack
from mudg_core.errors import OrchestrationError, SettingsError
from mudg_core.settings import Settings, load_settings

SERVER = (
    "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), {}).serve_forever()"
)
HANDLER = "http.server.SimpleHTTPRequestHandler"
REGISTER = start._register
CRON = "17 4 * * 2"


def answers(stack: Stack) -> bool:
    try:
        return httpx.get(stack.ui_url, trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def web(name: str = "prefect-server") -> Part:
    """Stands in for Prefect's server; the port must be its own to come up."""
    return Part(
        name,
        "a web server",
        lambda stack: [sys.executable, "-c", SERVER.format(HANDLER), str(stack.state.ports["prefect"])],
        answers,
        ports=ports.PREFECT,
        seconds=60,
        grace=5,
    )


def broken(name: str = "s3") -> Part:
    words = [sys.executable, "-c", "print('first'); raise SystemExit('the disk is on fire')"]
    return Part(
        name,
        "a broken part",
        lambda stack: words,
        lambda stack: False,
        seconds=60,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stack of one web server, on a port that no real stack has."""
    place = tmp_path / "stack"
    monkeypatch.setattr(ports, "UI_PORT", ports.choose(ports.DASK, {})["dask"])
    monkeypatch.setattr(start, "FIRST", (web(),))
    monkeypatch.setattr(start, "_register", lambda result, options, progress: None)
    yield place
    list(stop_stack(place))


@dataclass
class Server:
    """What the stack's Prefect server was told of: how often deployments, which schedules and limits.
    `lost`: whether it has forgotten."""

    declared: int = 0
    crons: list[str] = field(default_factory=list)
    limits: list[int] = field(default_factory=list, compare=False)
    lost: bool = False


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    told = Server()

    def declare(stack: Stack) -> None:
        told.declared += 1

    monkeypatch.setattr(start, "_register", REGISTER)
    monkeypatch.setattr(start, "SECOND", ())
    monkeypatch.setattr(start, "is_registered", lambda api: not told.lost)
    monkeypatch.setattr(start, "create_pool", lambda api: None)
    monkeypatch.setattr(start, "limit_gpu_tasks", lambda api, limit: told.limits.append(limit))
    monkeypatch.setattr(start, "_deploy", declare)
    monkeypatch.setattr(start, "schedule_index", lambda api, cron: told.crons.append(cron))
    return told


def quiet(title: str) -> nullcontext[None]:
    return nullcontext()


def test_up_starts_what_is_missing_and_down_ends_it(folder: Path) -> None:
    settings = load_settings(overrides={"corpus": {"rows": 500}}, environ={})
    first = start_stack(folder, settings, StartOptions(), quiet)
    assert first.started == ["prefect-server"] and answers(first.stack) and not first.notes
    again = start_stack(folder, Settings(), StartOptions(), quiet)
    assert again.started == [] and again.stack.state == first.stack.state and not again.notes
    other = start_stack(
        folder, load_settings(overrides={"corpus": {"rows": 600}}), StartOptions({"prefect": 7}), quiet
    )
    assert [note.split(":")[0] for note in other.notes] == [
        "it keeps the settings that it was started with",
        "it keeps its ports",
    ]
    state = read_state(folder)
    assert state is not None and state.settings == {"MUDG_CORPUS__ROWS": "500"}
    assert list(stop_stack(folder)) == ["prefect-server"] and list(stop_stack(folder)) == []
    assert not marked(state.id) and ports.is_free(state.ports["prefect"])
    new = start_stack(folder, Settings(), StartOptions(), quiet)  # after an end, the new settings hold
    assert new.stack.state.settings == {} and new.stack.state.ports == state.ports
    assert new.stack.keys == first.stack.keys


def test_a_server_that_has_lost_its_database_is_told_all_again(folder: Path, server: Server) -> None:
    start_stack(folder, Settings(), StartOptions(index_cron=CRON, gpu_limit=3), quiet)
    start_stack(folder, Settings(), StartOptions(), quiet)
    assert (server.declared, server.crons, server.limits) == (1, [CRON], [3])
    server.lost = True
    start_stack(folder, Settings(), StartOptions(), quiet)
    assert (server.declared, server.crons, server.limits) == (2, [CRON, CRON], [3, 3])


def test_runs_of_a_machine_that_went_down_are_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Stack] = []
    monkeypatch.setattr(start, "crash_open_runs", closed.append)
    first = start_stack(folder, Settings(), StartOptions(), quiet)
    start_stack(folder, Settings(), StartOptions(), quiet)
    assert len(closed) == 1, "what runs is left alone"
    for process in marked(first.stack.state.id):
        process.kill()
        process.wait(10)
    again = start_stack(folder, Settings(), StartOptions(), quiet)
    assert again.started == ["prefect-server"] and len(closed) == 2


def kept(folder: Path) -> str | None:
    state = read_state(folder)
    assert state is not None
    return state.index_cron


def test_a_schedule_stays_until_another_is_given(folder: Path, server: Server) -> None:
    start_stack(folder, Settings(), StartOptions(index_cron=CRON), quiet)
    assert kept(folder) == CRON and server == Server(1, [CRON])
    start_stack(folder, Settings(), StartOptions(), quiet)  # it runs: nothing to tell
    assert server == Server(1, [CRON])
    list(stop_stack(folder))
    again = start_stack(
        folder, Settings(), StartOptions(), quiet
    )  # prefect.yaml is declared anew, and goes under
    assert kept(folder) == CRON and server == Server(2, [CRON, CRON])
    assert again.notes == [f"the schedule of the index is as before: {CRON}"]
    start_stack(folder, Settings(), StartOptions(index_cron="off"), quiet)
    assert kept(folder) == "off" and server == Server(2, [CRON, CRON, "off"])


def test_the_schedule_of_prefect_yaml_can_be_had_again(folder: Path, server: Server) -> None:
    start_stack(folder, Settings(), StartOptions(index_cron="off"), quiet)
    start_stack(folder, Settings(), StartOptions(index_cron="default"), quiet)  # declared again, as it runs
    assert kept(folder) is None and server == Server(2, ["off"])
    list(stop_stack(folder))
    assert not start_stack(folder, Settings(), StartOptions(), quiet).notes
    assert kept(folder) is None and server == Server(3, ["off"])


def test_a_start_that_failed_keeps_the_schedule_of_before(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_stack(folder, Settings(), StartOptions(index_cron=CRON), quiet)
    list(stop_stack(folder))
    with monkeypatch.context() as patch, pytest.raises(OrchestrationError):
        patch.setattr(start, "FIRST", (web(), broken()))
        start_stack(folder, Settings(), StartOptions(index_cron="off"), quiet)
    assert kept(folder) == CRON


def test_what_does_not_come_up_is_told_and_nothing_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "FIRST", (web(), broken()))
    with pytest.raises(OrchestrationError) as error:
        start_stack(folder, Settings(), StartOptions(), quiet)
    assert "a broken part (s3) did not come up" in error.value.what
    assert "the disk is on fire" in error.value.what and error.value.where.endswith("logs/s3.log")
    state = read_state(folder)
    assert state is not None and state.processes == () and not marked(state.id)


def test_a_part_whose_port_was_taken_meanwhile_gets_another(folder: Path) -> None:
    port = ports.UI_PORT
    with locked(folder):
        result = start._new(folder, Settings(), StartOptions())
    with socket.socket() as thief:
        thief.bind(("127.0.0.1", port))
        thief.listen()
        begun = start._start_missing(result, (web(),))
        start._wait_for(result, begun, StartOptions(), quiet)
        assert result.stack.state.ports["prefect"] == port + 1 and answers(result.stack)
        assert read_state(folder) == result.stack.state
        stop_part(result.stack, "prefect-server")
        result.stack.change(ports=result.stack.state.ports | {"prefect": port})
        with pytest.raises(OrchestrationError, match="one of its ports is taken"):
            start._wait_for(
                result, start._start_missing(result, (web(),)), StartOptions({"prefect": port}), quiet
            )


def test_another_server_on_its_port_is_not_taken_for_a_part(folder: Path) -> None:
    """A part that is slow to start lives, and somebody else answers in its place."""
    slow = replace(
        web(), command=lambda stack: [sys.executable, "-c", "import time; time.sleep(600)"], seconds=3
    )
    with locked(folder):
        result = start._new(folder, Settings(), StartOptions())
    port = result.stack.state.ports["prefect"]
    with subprocess.Popen([sys.executable, "-c", SERVER.format(HANDLER), str(port)]) as stranger:
        try:
            while not answers(result.stack):
                assert stranger.poll() is None
            begun = start._start_missing(result, (slow,))
            with pytest.raises(OrchestrationError, match="did not come up"):
                start._wait_for(result, begun, StartOptions(), quiet)
            assert not result.stack.listens("prefect-server") and answers(result.stack)
        finally:
            stranger.kill()


def test_what_a_killed_start_has_left_is_ended_first(folder: Path) -> None:
    result = start_stack(folder, Settings(), StartOptions(), quiet)
    [process] = result.stack.state.processes
    write_state(
        folder, result.stack.state.model_copy(update={"processes": ()})
    )  # killed before it was written
    assert [one.pid for one in marked(result.stack.state.id)] == [process.pid]
    again = start_stack(folder, Settings(), StartOptions(), quiet)
    assert again.started == ["prefect-server"]
    assert [one.pid for one in marked(again.stack.state.id)] == [
        one.pid for one in again.stack.state.processes
    ]


def test_a_taken_port_is_said(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports.UI_PORT))
        other.listen()
        done = CliRunner().invoke(app, ["up", "--folder", str(folder), "--ui-port", str(ports.UI_PORT)])
        assert done.exit_code == 2 and "is taken" in done.stderr
        result = start_stack(folder, Settings(), StartOptions(), quiet)
    assert result.notes == [
        f"port {ports.UI_PORT} is taken: the UI is on {result.stack.state.ports['prefect']}"
    ]


def test_a_missing_s3_server_is_told_with_its_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.shutil, "which", lambda name, path: None)
    done = CliRunner().invoke(app, ["up", "--folder", str(folder)])
    assert done.exit_code == 6 and "[cpu,stack]" in done.stderr and not folder.exists()


def test_missing_declarations_and_bad_schedules_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = CliRunner().invoke(app, ["up", "--folder", str(folder), "--index-cron", "at noon"])
    assert bad.exit_code == 2 and "not a cron schedule" in bad.stderr and not folder.exists()
    monkeypatch.setattr(prefect_setup, "CHECKOUT", folder)
    monkeypatch.setattr(prefect_setup, "files", lambda name: [])
    done = CliRunner().invoke(app, ["up", "--folder", str(folder)])
    assert done.exit_code == 6 and "prefect.yaml" in done.stderr and "checkout" in done.stderr


def test_an_installed_release_has_its_declarations_with_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, record = tmp_path / "share/mudg/prefect.yaml", PackagePath("../share/mudg/prefect.yaml")
    file.parent.mkdir(parents=True)
    file.write_bytes((prefect_setup.CHECKOUT / "prefect.yaml").read_bytes())
    record.dist = SimpleNamespace(locate_file=lambda path: tmp_path / "site-packages" / path)  # type: ignore[assignment]
    monkeypatch.setattr(prefect_setup, "CHECKOUT", tmp_path)
    monkeypatch.setattr(prefect_setup, "files", lambda name: [PackagePath("flows/demo.yaml"), record])
    (tmp_path / "site-packages").mkdir()
    assert (
        prefect_setup.prefect_file().resolve() == file
        and prefect_setup.SCHEDULED in prefect_setup.declared_deployments()
    )
    packed = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["tool"]["setuptools"][
        "data-files"
    ]
    assert packed == {"share/mudg": ["prefect.yaml"]}


def test_every_part_is_ended_in_an_order() -> None:
    assert set(ORDER) == {*parts.PARTS, parts.DEPLOY}


def test_workers_are_started_as_the_settings_say(tmp_path: Path) -> None:
    given = {
        "MUDG_COMPUTE__MEMORY_LIMIT": "3GiB",
        "MUDG_COMPUTE__DEVICE": "cuda",
        "MUDG_COMPUTE__WORKERS": "5",
    }
    all_ports = ports.choose(ports.S3, {}) | ports.choose(ports.DASK, {}) | {"prefect": 4200}
    stack = Stack(tmp_path, State(id="x", ports=all_ports, settings=given, workers=5))
    words = parts.WORKERS.command(stack)
    assert words[2:5] == ["dask", "cuda", "worker"]  # which starts one for each GPU
    assert {"--nthreads=1", "--memory-limit=3GiB", "--resources=GPU=1"} <= set(words)
    assert "--host=127.0.0.1" in words and not any(word.startswith("--nworkers") for word in words)
    cpu = Stack(tmp_path, State(id="x", ports=all_ports, workers=4))
    words = parts.WORKERS.command(cpu)
    assert "--nworkers=4" in words and not any("GPU" in word or word == "cuda" for word in words)
    for part in parts.PARTS.values():
        assert not any(key in word for word in part.command(stack) for key in (stack.keys.secret, "internal"))


def test_a_stack_on_gpus_has_a_worker_and_a_slot_for_each(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpus = load_settings(overrides={"compute": {"device": "cuda", "workers": 7}}, environ={})
    monkeypatch.setattr(start, "gpus", lambda: 0)
    with pytest.raises(SettingsError, match="sees no GPU"):
        start_stack(folder, on_gpus, StartOptions(), quiet)
    monkeypatch.setattr(start, "gpus", lambda: 2)
    assert start_stack(folder, on_gpus, StartOptions(), quiet).stack.state.workers == 2
    assert server.limits == [2]


def test_dask_gets_the_configuration_of_our_clusters(tmp_path: Path) -> None:
    import dask

    from tasks.executors.clusters import DASK

    parts.write_dask_config(Stack(tmp_path, State(id="x")))
    (loaded,) = dask.config.collect_yaml([str(tmp_path / "dask.yaml")])
    assert {path: dask.config.get(path, config=loaded) for path in DASK} == DASK
