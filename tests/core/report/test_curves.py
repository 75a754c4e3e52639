"""SVG files of recall and of training: complete in themselves, true to their numbers, the same every time."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from mudg_core.index.recall import Point, wilson
from mudg_core.report.charts.curves import objective_curves, recall_curves
from mudg_core.report.charts.svg import log_ticks

SVG = "{http://www.w3.org/2000/svg}"


def point(share: float, at_1: float, at_10: float, qps: float | None = None) -> Point:
    return Point(4, 1.0, wilson(at_1, 200), wilson(at_10, 200), share * 1e6, share, qps)


TEXTS = [point(0.03, 0.93, 0.9), point(0.002, 0.57, 0.5), point(0.008, 0.79, 0.72)]
IMAGES = [point(0.002, 0.69, 0.55), point(0.03, 0.99, 0.96)]
BOTH = recall_curves({"text queries": TEXTS, "image <queries>": IMAGES})


def words(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def lines(svg: str, kind: str) -> list[list[tuple[float, float]]]:
    """Corners of the paths of a class."""
    paths = [p for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if kind in p.get("class", "")]
    numbers = [[float(n) for n in re.findall(r"-?\d+\.?\d*", p.get("d", ""))] for p in paths]
    return [list(zip(n[::2], n[1::2], strict=True)) for n in numbers]


def test_the_files_stand_alone() -> None:
    for svg in (BOTH, objective_curves([1.0, 0.5], [0.2, 0.1])):
        assert svg.startswith("<?xml")
        root = ElementTree.fromstring(svg)
        assert root.tag == f"{SVG}svg" and root.get("role") == "img" and root.get("aria-label")
        style = root.find(f"{SVG}style")
        assert style is not None and style.text and "var(" not in style.text
        assert not re.search(r"https?://(?!www\.w3\.org)|url\(|@import", svg), "nothing is fetched"


def test_recall_has_titles_axes_and_units() -> None:
    shown = words(BOTH)
    for expected in ("Recall against cost", "recall", "text queries", "image <queries>", "R@1", "R@10"):
        assert expected in shown
    assert "95 % interval" in shown and "100 %" in shown
    assert "0.2 %" in shown and "1 %" in shown and any("log scale" in text for text in shown)


def test_each_kind_of_query_has_two_lines_with_bands() -> None:
    for tone, points in enumerate((TEXTS, IMAGES)):
        assert [len(line) for line in lines(BOTH, f"line tone-{tone}")] == [len(points)] * 2
        assert [len(band) for band in lines(BOTH, f"band tone-{tone}")] == [2 * len(points)] * 2


def test_points_go_right_with_cost_and_up_with_recall() -> None:
    at_1, at_10 = lines(BOTH, "line tone-0")
    assert [x for x, _ in at_1] == sorted(x for x, _ in at_1), "in order of cost, however they came"
    assert [y for _, y in at_1] == sorted((y for _, y in at_1), reverse=True)
    assert all(low > high for (_, high), (_, low) in zip(at_1, at_10, strict=True)), "R@10 lies below R@1"
    (x1, _), (x2, _), (x3, _) = at_1
    ratio = math.log(0.03 / 0.008) / math.log(0.008 / 0.002)
    assert (x3 - x2) / (x2 - x1) == pytest.approx(ratio, abs=0.01), "a log axis"


def test_bands_enclose_their_line() -> None:
    line, band = lines(BOTH, "line tone-1")[0], lines(BOTH, "band tone-1")[0]
    above, below = band[: len(line)], band[len(line) :][::-1]
    for (x, y), (x_above, high), (x_below, low) in zip(line, above, below, strict=True):
        assert x == x_above == x_below and high < y < low


def test_one_point_has_a_whisker() -> None:
    svg = recall_curves({"text queries": TEXTS[:1]})
    marks = [n for n in ElementTree.fromstring(svg).iter(f"{SVG}line") if n.get("class") == "line tone-0"]
    assert any(n.get("x1") == n.get("x2") and n.get("y1") != n.get("y2") for n in marks)


def test_no_clock_enters_the_file() -> None:
    slow, fast = ([point(0.01, 0.9, 0.8, qps)] for qps in (1.0, 1000.0))
    assert recall_curves({"a": slow}) == recall_curves({"a": fast})


def test_objectives_have_a_panel_each_with_its_unit() -> None:
    svg = objective_curves([1.3, 1.1, 1.05], [0.5, 0.25, 0.2])
    shown = words(svg)
    assert any("L_kmeans" in text and "squared distance" in text for text in shown)
    assert any("L_cross-modal" in text and "texts in a wrong cell" in text for text in shown)
    assert "50 %" in shown and "0.5" not in shown, "a share is shown as a percentage"
    tips = [node.text for node in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert "25 %" in tips
    assert shown.count("iteration") == 2
    assert [len(line) for line in lines(svg, "line tone-")] == [3, 3]


@pytest.mark.parametrize(
    "svg",
    [
        recall_curves({}),
        recall_curves({"a": []}),
        recall_curves({"a": [point(0.0, 0.5, 0.5), point(math.nan, 0.5, 0.5)]}),
        recall_curves({"a": [point(1.0, 1.0, 1.0)] * 3}),
        recall_curves({f"a name that is long {i}": TEXTS for i in range(12)}),
        objective_curves([], [math.nan, 1.0]),
    ],
)
def test_nothing_and_nonsense_still_draw(svg: str) -> None:
    ElementTree.fromstring(svg)
    assert "nan" not in re.sub(r"<text.*?</text>", "", svg.lower())


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.002, 0.12, [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]),
        (0.01, 1.0, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]),
        (1e-6, 0.5, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0]),
        (0.03, 0.03, [0.02, 0.05]),
        (0.05, 0.05, [0.05, 0.1]),
    ],
)
def test_log_ticks_are_round_and_cover(low: float, high: float, expected: list[float]) -> None:
    assert log_ticks(low, high) == expected
