"""Which stage is at work, and how far it is, by a clock of the test's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mudg_core.settings import Settings
from tasks.executors import report_socket
from tasks.run import Run
from tasks.stage_progress import Board, Report, Reporter, reporting


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> Board:
    return Board(clock)


def test_waiting_in_line_is_no_work(board: Board, clock: Clock) -> None:
    """What the display showed once: `select 464 s, finetune 0.1 s`, of a flow that waited for `select` while
    the other worked."""
    training = board.start("model", "animals", 2, 0, {"model/a": 1, "model/b": 1})
    selecting = board.start("picks", "vehicles", 1, 0, {"picks/c": 1})
    board.report(Report("model/a"))
    clock.now += 200
    assert [one.stage for one in board.at_work()] == ["model"]
    board.report(Report("model/b"))
    board.report(Report("model/a", 1.0, ended=True))
    clock.now += 264
    board.report(Report("model/b", 1.0, ended=True))
    board.report(Report("picks/c"))
    clock.now += 0.5
    board.report(Report("picks/c", 1.0, ended=True))
    clock.now += 1000
    board.end(selecting)
    board.end(training)
    assert (training.seconds, selecting.seconds) == (464.0, 0.5)
    assert not board.at_work() and not board.stages


def test_times_of_tasks_side_by_side_are_counted_once(board: Board, clock: Clock) -> None:
    progress = board.start("embedding-shard", "", 3, 0, {"e/a": 1, "e/b": 1, "e/c": 1})
    for task in ("e/a", "e/b"):
        board.report(Report(task))
    clock.now += 10
    for task in ("e/a", "e/b"):
        board.report(Report(task, 1.0, ended=True))
    clock.now += 5  # nobody is at work
    board.report(Report("e/c"))
    clock.now += 3
    assert progress.seconds == 13.0 and board.at_work() == [progress]


@pytest.mark.parametrize(
    ("reports", "seconds", "words"),
    [
        ([Report("m/a", 0.6, 200, "steps")], 30, "120/200 steps, 4.0/s, 20 s left"),
        ([Report("m/a", 0.0, 200, "steps")], 30, "0/200 steps"),
        ([Report("m/a", 0.25)], 600, "25%, 30 min left"),
        ([Report("m/a")], 5, ""),
    ],
)
def test_steps_rate_and_time_left(
    reports: list[Report], seconds: float, words: str, board: Board, clock: Clock
) -> None:
    progress = board.start("model", "", 1, 0, {"m/a": 1})
    board.report(Report("m/a"))
    clock.now += seconds
    for report in reports:
        board.report(report)
    assert progress.describe() == words


def test_a_stage_of_many_tasks_counts_them_together(board: Board, clock: Clock) -> None:
    """Four artifacts were there before; of the other eight, in four tasks of two, a quarter is done."""
    progress = board.start("embedding-shard", "", 12, 4, {f"e/{number}": 2 for number in range(4)})
    board.report(Report("e/0", steps=1000, unit="images"))
    clock.now += 10
    board.report(Report("e/0", 1.0, 1000, "images", ended=True))
    board.report(Report("e/1", 0.0, 1000, "images"))
    assert progress.describe() == "2,000/8,000 images, 200/s, 30 s left"


def test_a_task_that_begins_again_is_at_work_all_the_time(board: Board, clock: Clock) -> None:
    progress = board.start("model", "", 1, 0, {"m/a": 1})
    for share in (0.0, 0.5, 0.0, 0.2):
        board.report(Report("m/a", share))
        clock.now += 10
    assert progress.seconds == 40 and progress.done == 0.2


def test_a_stage_whose_tasks_say_nothing_has_the_time_since_it_was_started(
    board: Board, clock: Clock
) -> None:
    silent_stage = board.start("x", "", 1, 0, {"x/a": 1})
    cached_stage = board.start("y", "", 1, 1, {})
    clock.now += 7
    assert (silent_stage.seconds, cached_stage.seconds) == (7.0, 0.0)


def test_reports_are_not_too_many(clock: Clock) -> None:
    sent: list[Report] = []
    reporter = Reporter("m/a", sent.append, clock)
    for number in range(1000):
        reporter.progress(number / 1000)
        clock.now += 0.01
    assert 9 <= len(sent) <= 11


def test_an_error_ends_a_task_too() -> None:
    sent: list[Report] = []
    with pytest.raises(KeyError), reporting("m/a", sent.append) as reporter:
        reporter.count(200, "steps")
        raise KeyError
    assert [one.ended for one in sent] == [False, True]


@pytest.mark.parametrize(
    "values",
    [None, [], {}, {"task": 1}, {"task": "a", "share": "x", "steps": 0, "unit": "", "ended": False}],
)
def test_what_is_no_report_is_passed_over(values: object) -> None:
    assert Report.from_json(values) is None


def test_reports_come_back_as_they_were_sent() -> None:
    report = Report("m/a", 0.25, 200, "steps")
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(report_socket, "_sender", None)
    report_socket.send_to(report_socket.report_address())
    yield
    assert report_socket._sender is not None
    report_socket._sender[0].close()


def test_reports_of_workers_arrive(sending: None, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived, seen = threading.Event(), []
    monkeypatch.setattr(report_socket.BOARD, "report", lambda one: (seen.append(one), arrived.set()))
    report_socket.send(Report("m/a", 0.5))
    assert arrived.wait(30) and seen == [Report("m/a", 0.5)]


def test_a_record_has_the_time_at_work(tmp_path: Path, clock: Clock) -> None:
    settings = Settings().replace({"storage": {"url": f"file://{tmp_path}", "cache_dir": str(tmp_path)}})
    run, board = Run(settings), Board(clock)
    progress = board.start("model", "", 2, 1, {"m/a": 1})
    board.report(Report("m/a"))
    clock.now += 12
    board.report(Report("m/a", 1.0, ended=True))
    clock.now += 100
    with run.watch(progress):
        clock.now += 50
    (record,) = run.records
    assert (record.stage, record.cached, record.computed, record.seconds) == ("model", 1, 1, 12.0)
