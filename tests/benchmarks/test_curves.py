"""What is read from a peer, which of its points is the best, and the picture of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.index.curves import Curve, Point, Recall, best_qps, plot
from benchmarks.index.peer_runs import REQUIREMENTS, parse, run_peer
from benchmarks.peer_environment import PeerError

SVG = "{http://www.w3.org/2000/svg}"


def point(tuning: float, report: float, qps: float, read: float | None = None) -> Point:
    return Point(
        params={"ef": 10},
        tuning=Recall(tuning - 0.05, tuning),
        report=Recall(report - 0.05, report),
        qps_cpu=qps,
        qps_wall=qps * 0.9,
        single_qps_cpu=qps / 2,
        vectors_read=read,
        build_cpu_seconds=10,
        build_wall_seconds=11,
        index_bytes=1000,
    )


POINTS = [point(0.8, 0.95, 4000, 500), point(0.91, 0.89, 2000, 2000), point(0.95, 0.94, 900, 8000)]


def test_the_tuning_queries_choose_the_point() -> None:
    best = best_qps(POINTS, 0.9)
    assert best and best.qps_cpu == 2000 and best.report.recall_at_10 == 0.89
    assert best_qps(POINTS, 0.96) is None


def test_the_last_line_of_a_peer_is_parsed() -> None:
    line = json.dumps({"points": [asdict(one) for one in POINTS]})
    assert parse("hnsw", f"a peer may chatter\n{line}\n") == POINTS


@pytest.mark.parametrize("out", ["", "[]", "no JSON", "{}", '{"points": [{"params": {}}]}'])
def test_anything_else_is_told_with_the_name_of_the_peer(out: str) -> None:
    with pytest.raises(PeerError, match="scann printed no measurement"):
        parse("scann", out)


def test_a_peer_that_ends_badly_says_how(tmp_path: Path) -> None:
    home = tmp_path / "hnsw"
    (home / "bin").mkdir(parents=True)
    (home / "requirements.txt").write_bytes((REQUIREMENTS / "hnsw.txt").read_bytes())
    (home / "bin" / "python").write_text("#!/bin/sh\necho its last words >&2\nkill -9 $$\n")
    (home / "bin" / "python").chmod(0o755)
    with pytest.raises(PeerError, match="hnsw failed with exit code -9: its last words"):
        run_peer("hnsw", tmp_path, tmp_path)


def test_the_picture_is_well_formed_and_has_each_curve(tmp_path: Path) -> None:
    silent = Curve("tells <nothing>", [point(0.7, 0.7, 300), point(0.9, 0.9, 100)])
    plot([Curve("ours", POINTS), silent], tmp_path / "curves.svg")
    root = ElementTree.parse(tmp_path / "curves.svg").getroot()
    assert root.tag == f"{SVG}svg"
    words = [node.text for node in root.iter(f"{SVG}text")]
    assert {"ours", "tells <nothing>", "queries per CPU second, log scale"} <= set(words)
    assert len(list(root.iter(f"{SVG}circle"))) == 3 + 2 + 3


def test_a_picture_of_nothing_is_one_too(tmp_path: Path) -> None:
    plot([Curve("empty", [])], tmp_path / "curves.svg")
    ElementTree.parse(tmp_path / "curves.svg")
