"""What Prefect knows of submissions, in one word, and what is asked of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import (
    AwaitingConcurrencySlot,
    Cancelled,
    Cancelling,
    Completed,
    Crashed,
    Failed,
    Pending,
    Running,
    Scheduled,
)

from deployments import target_runs
from deployments.target_runs import announce, cancel_run, claim, find_runs, is_lost, is_over, state_of
from mudg_core.errors import OrchestrationError
from mudg_core.storage.objects_local import LocalObjects
from mudg_core.target.spec import parse_target
from mudg_core.target.submissions import MOST_LOST, Submission, Submissions

SPEC = b"name: zoo\nclasses: [cat, dog]\n"


@pytest.fixture
def desk(tmp_path: Any) -> Submissions:
    return Submissions(LocalObjects(tmp_path))


@pytest.fixture
def one(desk: Submissions) -> Submission:
    return desk.add(parse_target(SPEC), SPEC, "command")


def a_run(state: Any, submission: str = "") -> FlowRun:
    return FlowRun(flow_id=uuid.uuid4(), parameters={"submission": submission}, state=state)


class Server:
    """As much of Prefect's client as is asked."""

    def __init__(self, *runs: FlowRun) -> None:
        self.runs, self.asked = list(runs), list[Any]()

    def read_flow_run(self, identity: uuid.UUID) -> FlowRun:
        for run in self.runs:
            if run.id == identity:
                return run
        raise ObjectNotFound(Exception())

    def read_flow_runs(self, limit: int, offset: int, **_: Any) -> list[FlowRun]:
        return self.runs[offset : offset + limit]

    def set_flow_run_state(self, identity: uuid.UUID, state: Any) -> None:
        self.asked.append((identity, state.type.value))


@contextmanager
def serving(*runs: FlowRun) -> Iterator[Server]:
    server = Server(*runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_runs, "prefect_client", lambda: nullcontext(server))
        yield server


def away(_: Any) -> Any:
    raise OrchestrationError(what="the server is away")


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (Scheduled(), "Submitted"),
        (AwaitingConcurrencySlot(), "Submitted"),
        (Pending(), "Submitted"),
        (Running(), "Running"),
        (Completed(), "Completed"),
        (Failed(), "Failed"),
        (Crashed(), "Crashed"),
        (Cancelled(), "Cancelled"),
    ],
)
def test_states(one: Submission, state: Any, word: str) -> None:
    assert state_of(one, a_run(state)) == word


def test_states_without_a_run_are_those_that_the_store_knows(desk: Submissions, one: Submission) -> None:
    assert state_of(one, None) == "Submitted"
    claimed = desk.claim("zoo", one.id, str(uuid.uuid4()))
    assert state_of(claimed, None) == "Unknown"
    assert state_of(desk.finish(claimed, {"classifier": "x"}), None) == "Completed"
    cancelled = desk.cancel("zoo", desk.add(parse_target(SPEC), SPEC, "command").id)
    assert state_of(cancelled, None) == state_of(cancelled, a_run(Scheduled())) == "Cancelled"
    assert state_of(cancelled, a_run(Running())) == "Running"


def test_the_run_that_has_it_is_found_and_else_the_first(desk: Submissions, one: Submission) -> None:
    second, first = (a_run(Scheduled(), one.id) for _ in range(2))
    late = a_run(Completed(name="AlreadyRunning"), one.id)
    server: Any = Server(a_run(Running(), "another"), late, second, first)
    assert find_runs(server, [one]) == {one.id: first}
    claimed = desk.claim("zoo", one.id, str(second.id))
    assert find_runs(server, [claimed]) == {one.id: second}
    other = desk.add(parse_target(SPEC), SPEC, "command")
    lost = desk.claim("zoo", other.id, str(uuid.uuid4()))
    assert find_runs(server, [other]) == find_runs(server, [lost]) == {}


@pytest.mark.parametrize("state", [Crashed(), Failed(), Failed(name="TimedOut")])
def test_a_run_that_ended_before_its_claim_is_lost(
    desk: Submissions, one: Submission, monkeypatch: pytest.MonkeyPatch, state: Any
) -> None:
    """It is announced again, and then the later one counts."""
    dead, later = a_run(state, one.id), a_run(Scheduled(), one.id)
    server: Any = Server(dead)
    monkeypatch.setattr(target_runs, "prefect_client", lambda: nullcontext(server))
    assert find_runs(server, [one]) == {one.id: dead} and target_runs.find_lost([one]) == {one.id: True}
    server = Server(later, dead)
    assert find_runs(server, [one]) == {one.id: later} and target_runs.find_lost([one]) == {one.id: False}
    claimed = desk.claim("zoo", one.id, str(dead.id))
    assert target_runs.find_lost([claimed]) == {one.id: False}
    assert target_runs.find_lost([desk.add(parse_target(SPEC), SPEC, "command")]) == {}


def test_the_run_that_is_lost_last_ends_it(one: Submission) -> None:
    """What no run can begin would be announced for a week."""
    dead = a_run(Failed(), one.id)
    told = [one.changed(lost=number) for number in range(MOST_LOST)]
    assert [is_lost(each, dead) for each in told] == [True] * (MOST_LOST - 1) + [False]
    assert [is_over(each, dead) for each in told] == [False] * (MOST_LOST - 1) + [True]
    assert {state_of(each, dead) for each in told} == {"Failed"}


@pytest.mark.parametrize("state", [Cancelled(), Completed(), Running()])
def test_what_somebody_ended_or_what_goes_on_is_not_lost(one: Submission, state: Any) -> None:
    assert not is_lost(one, a_run(state, one.id))


@pytest.mark.parametrize("state", [Crashed(), Failed(), Cancelled(), Completed(), None])
def test_a_run_takes_over_from_one_that_has_ended_or_never_was(desk: Submissions, state: Any) -> None:
    with serving() as server:
        dead, mine = a_run(state or Failed()), str(uuid.uuid4())
        server.runs += [dead] if state else []
        left = desk.claim("zoo", desk.add(parse_target(SPEC), SPEC, "command").id, str(dead.id))
        assert claim(desk, "zoo", left.id, mine).run == mine == desk.read("zoo", left.id).run


@pytest.mark.parametrize("state", [Scheduled(), Running(), Cancelling()])
def test_no_run_takes_over_from_one_that_goes_on(desk: Submissions, one: Submission, state: Any) -> None:
    with serving(a_run(state)) as server:
        going = str(server.runs[0].id)
        desk.claim("zoo", one.id, going)
        assert claim(desk, "zoo", one.id, str(uuid.uuid4())).run == going


def test_of_a_submission_that_is_over_and_of_ones_own_nobody_is_asked(desk: Submissions) -> None:
    """Nor is one whose run cannot be told, as the server is away, taken over."""
    run = str(uuid.uuid4())
    finished, cancelled, mine, theirs = (desk.add(parse_target(SPEC), SPEC, "command") for _ in range(4))
    for one in (finished, mine, theirs):
        desk.claim("zoo", one.id, run)
    desk.finish(finished, {})
    desk.cancel("zoo", cancelled.id)
    with serving() as server:
        server.read_flow_run = away  # type: ignore[method-assign]
        assert claim(desk, "zoo", finished.id, "another").run == run
        assert claim(desk, "zoo", cancelled.id, "another").run == ""
        assert claim(desk, "zoo", mine.id, run).run == run
        with pytest.raises(OrchestrationError):
            claim(desk, "zoo", theirs.id, "another")
    assert desk.read("zoo", theirs.id).run == run


def test_announcing_again_is_another_event(desk: Submissions, one: Submission) -> None:
    """Prefect ignores one that it has seen within half an hour."""
    sent: list[str] = []
    server: Any = SimpleNamespace(_client=SimpleNamespace(post=lambda _, json: sent.append(json[0]["id"])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_runs, "prefect_client", lambda: nullcontext(server))
        for submission in (one, one, one.changed(taken=one.taken + timedelta(minutes=11))):
            announce(submission)
    assert sent[0] == sent[1] != sent[2]


def test_it_is_found_behind_many_others(one: Submission) -> None:
    mine = a_run(Running(), one.id)
    server: Any = Server(*(a_run(Running()) for _ in range(target_runs.PAGE + 5)), mine)
    assert find_runs(server, [one]) == {one.id: mine}


def test_only_what_goes_on_is_cancelled() -> None:
    going, over = a_run(Running()), a_run(Completed())
    server: Any = Server()
    for run in (going, over):
        cancel_run(server, run)
    assert server.asked == [(going.id, "CANCELLING")]


def test_the_same_submission_is_the_same_event(one: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    @contextmanager
    def client() -> Any:
        post = lambda path, json: sent.append((path, json))  # noqa: E731
        yield type("Client", (), {"_client": type("Http", (), {"post": staticmethod(post)})})

    monkeypatch.setattr(target_runs, "prefect_client", client)
    announce(one)
    announce(one)
    [(path, [first]), (_, [second])] = sent
    assert path == "/events" and first["id"] == second["id"] and first["event"] == "mudg.target.created"
    assert first["payload"] == {"submission": one.id, "name": "zoo"}
    assert first["resource"]["prefect.resource.id"] == "mudg.target.zoo"


def test_a_server_that_is_away_is_told_with_its_address(
    one: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: Any) -> Any:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(target_runs, "get_client", away)
    with pytest.raises(OrchestrationError, match=r"refused[^$]*PREFECT_API_URL"):
        announce(one)
