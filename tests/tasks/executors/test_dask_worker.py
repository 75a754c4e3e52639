"""What a stage finds on a worker of a real Dask cluster: room to spread its work, and whether to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from mudg_core.errors import DataError, OrchestrationError
from mudg_core.index import kmeans
from mudg_core.index.kmeans import TILE, Clustering, LocalPool, PairShard
from tasks.executors.dask_worker import TOPIC, DaskPool, WorkerHost, cluster
from tasks.stage_progress import Report, reporting
from tests.core.index.making import sphere

ROWS, CELLS, SECONDS = 5 * TILE + 100, 12, 60.0
Trained = tuple[bytes, object, str, int]


@pytest.fixture(scope="module", params=[1, 2])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    with (
        LocalCluster(
            n_workers=request.param, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as here,
        Client(here) as client,
    ):
        yield client


def load(part: slice) -> PairShard:
    images, texts = sphere(ROWS, 8), sphere(ROWS, 8, seed=1)
    return PairShard(images[part], kmeans.single_on_grid(texts[part]))


def split(most: int) -> list[slice]:
    ends = [TILE * (6 * i // most) for i in range(1, most + 1)]
    return [slice(a, min(b, ROWS)) for a, b in zip([0, *ends], ends, strict=False)]


def start() -> Clustering:
    return Clustering(sphere(ROWS, 8)[:CELLS], ())


def train() -> Trained:
    """What `train_centroids` does, inside a task."""
    with WorkerHost().pair_pool(load, split, SECONDS) as pool:
        found = kmeans.train(pool, start(), 3)
        shards = pool.shards  # type: ignore[attr-defined]
        return found.centroids.tobytes(), found.history, type(pool).__name__, len(shards)


def train_in(parts: int) -> Trained:
    with cluster() as client:
        pool = DaskPool(client, load, split(parts), SECONDS)
        found = kmeans.train(pool, start(), 3)
        return found.centroids.tobytes(), found.history, "DaskPool", len(pool.shards)


def double(number: int) -> tuple[int, str]:
    return 2 * number, threading.current_thread().name


def fail_at_3(number: int) -> int:
    if number == 3:
        raise DataError(what="three is bad", fix="use four")
    return number


def wait_for(name: str, number: int) -> int:
    """Until the test says so: nothing is timed here."""
    EVENTS[name].wait(SECONDS)
    return number


EVENTS: dict[str, threading.Event] = {}


def spread(function: Callable[[Any], Any], items: list[Any], seconds: float) -> list[Any]:
    return WorkerHost().spread(function, items, seconds)


def inside(client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    return client.submit(function, *arguments, pure=False).result(timeout=SECONDS)


@pytest.fixture(scope="module")
def alone() -> tuple[bytes, object]:
    found = kmeans.train(LocalPool([load(slice(0, ROWS))]), start(), 3)
    return found.centroids.tobytes(), found.history


def test_a_cluster_gives_the_same_bytes(client: Any, alone: tuple[bytes, object]) -> None:
    workers = len(client.nthreads())
    assert inside(client, train) == (*alone, "DaskPool", workers)


@pytest.mark.parametrize("parts", [1, 3, 6])
def test_however_many_shards_a_cluster_gives_the_same_bytes(
    client: Any, alone: tuple[bytes, object], parts: int
) -> None:
    assert inside(client, train_in, parts) == (*alone, "DaskPool", parts)


@pytest.mark.parametrize("many", [0, 1, 2, 17])
def test_spread_keeps_the_order(client: Any, many: int) -> None:
    numbers = [(7 * n) % 17 for n in range(many)]
    found = inside(client, partial(spread, double, numbers, SECONDS))
    assert [value for value, _ in found] == [2 * n for n in numbers]


def test_spread_raises_what_a_worker_has_raised(client: Any) -> None:
    with pytest.raises(DataError, match="three is bad") as caught:
        inside(client, partial(spread, fail_at_3, [1, 2, 3, 4], SECONDS))
    assert caught.value.fix == "use four"


def spread_twice() -> list[int]:
    """As a task that is tried again after an error does, in the same thread."""
    with suppress(DataError):
        spread(fail_at_3, [1, 2, 3, 4], SECONDS)
    return spread(fail_at_3, [1, 2, 4], SECONDS)


def test_a_task_that_is_tried_again_can_use_the_cluster_again(client: Any) -> None:
    assert inside(client, spread_twice) == [1, 2, 4]


def spread_behind_others() -> list[tuple[int, str]]:
    """While every worker has something else to do for longer than any of these may take."""
    with cluster() as here:
        others = [
            here.submit(partial(wait_for, "others"), n, pure=False, workers=[w])
            for n, w in enumerate(here.nthreads())
        ]
        while sum(map(len, here.processing().values())) < 1 + len(others):
            time.sleep(0.01)
        done = spread(double, [1, 2, 3], 0.2)
        here.gather(others)
        return done


def test_time_in_line_for_a_worker_does_not_count(client: Any) -> None:
    EVENTS["others"] = threading.Event()
    timer = threading.Timer(2, EVENTS["others"].set)
    timer.start()
    try:
        assert [value for value, _ in inside(client, spread_behind_others)] == [2, 4, 6]
    finally:
        timer.cancel()
        EVENTS["others"].set()


def spread_and_end() -> int:
    """Somebody else takes the slot that it has left, and keeps it."""
    with cluster() as here:
        here.submit(partial(wait_for, "next"), 1, pure=False, workers=list(here.nthreads()))
        return sum(value for value, _ in spread(double, [1], SECONDS))


def test_a_task_that_is_done_does_not_wait_for_its_slot(client: Any) -> None:
    EVENTS["next"] = threading.Event()
    try:
        assert inside(client, spread_and_end) == 2
    finally:
        EVENTS["next"].set()


def test_a_shard_that_cannot_be_loaded_is_the_errors_name(client: Any) -> None:
    def bad(part: slice) -> PairShard:
        return PairShard(np.full((3, 8), np.nan, np.float32), np.zeros((3, 8), np.float32))

    def run() -> None:
        with WorkerHost().pair_pool(bad, split, SECONDS) as pool:
            pool.iterate(start().centroids)

    with pytest.raises(DataError, match="NaN or infinite"):
        inside(client, run)


def test_f11_a_time_out_is_an_error_and_not_an_endless_wait(client: Any) -> None:
    EVENTS["late"] = threading.Event()
    try:
        with pytest.raises(OrchestrationError, match="not done after 0 s") as caught:
            inside(client, partial(spread, partial(wait_for, "late"), [1, 2], 0.05))
        assert "compute.task_timeout_seconds" in caught.value.fix
    finally:
        EVENTS["late"].set()
    assert inside(client, double, 4)[0] == 8, "the cluster goes on"


def stopping() -> AbstractContextManager[Callable[[], bool]]:
    return WorkerHost().stopping()


def until_told(folder: str, question: Callable[[], AbstractContextManager[Callable[[], bool]]]) -> None:
    with question() as asked:
        Path(folder, "started").touch()
        deadline = time.monotonic() + 60
        while not asked() and time.monotonic() < deadline:
            time.sleep(0.01)
        Path(folder, str(asked())).touch()


@pytest.mark.filterwarnings("ignore")  # of a worker that is closed under its task
def test_f08_a_stage_sees_that_its_worker_closes(tmp_path: Path) -> None:
    """As `dask worker` does when it gets SIGTERM: it closes its nanny, whose worker waits for its threads."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        doing = client.submit(until_told, str(tmp_path), stopping, pure=False)
        while not (tmp_path / "started").exists():
            time.sleep(0.05)
        cluster.scale(0)
        deadline = time.monotonic() + 60
        while not (tmp_path / "True").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        doing.release()
    assert (tmp_path / "True").exists()


@contextmanager
def dropping() -> Iterator[Callable[[], bool]]:
    yield WorkerHost().unwanted()


@pytest.mark.parametrize("question", [stopping, dropping])
def test_f14_a_stage_sees_that_nobody_wants_its_result(tmp_path: Path, question: Any) -> None:
    """The worker stays: it is the team's, and only one flow has gone."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        with Client(cluster) as client:
            client.submit(until_told, str(tmp_path), question, pure=False)
            while not (tmp_path / "started").exists():
                time.sleep(0.05)
        deadline = time.monotonic() + 60
        while not (tmp_path / "True").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert (tmp_path / "True").exists()


def report() -> None:
    with reporting("model/a", WorkerHost().report) as reporter:
        reporter.count(200, "steps")
    WorkerHost().logger().warning("a line")


def test_reports_and_lines_of_workers_arrive(client: Any) -> None:
    heard: list[Any] = []
    ended = threading.Event()

    def hear(event: tuple[float, Any]) -> None:
        heard.append(event[1])
        if "line" in event[1]:
            ended.set()

    client.subscribe_topic(TOPIC, hear)
    inside(client, report)
    assert ended.wait(SECONDS)
    reports = [Report.from_json(one) for one in heard[:-1]]
    assert reports == [Report("model/a"), Report("model/a", 0.0, 200, "steps", ended=True)]
    assert heard[-1]["line"] == "a line" and Report.from_json(heard[-1]) is None
