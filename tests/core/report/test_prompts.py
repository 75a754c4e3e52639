"""The picture of a prompt study: complete in itself and true to its numbers."""

from __future__ import annotations

from xml.etree import ElementTree

from mudg_core.evaluate.prompts import MethodScore, PromptStudy, Spot
from mudg_core.report.charts.curves import prompt_study
from tests.core.report.test_curves import lines, words

METHODS = (
    MethodScore("adaptive", 16, 80.0, {"a": 70.0, "b": 90.0}),
    MethodScore("none", 1, 40.0, {"a": 40.0, "b": 40.0}),
)
CURVES = {"adaptive": ((1, 60.0), (2, 70.0), (4, 80.0)), "random": ((1, 50.0), (2, 55.0), (4, 52.0))}
SPOTS = tuple(Spot(f"which is <{n}>", 0.1 + n / 100, 40.0 + n) for n in range(9))
STUDY = PromptStudy(METHODS, CURVES, SPOTS, 1.0)


def test_everything_is_named_and_escaped() -> None:
    svg = prompt_study(STUDY)
    shown = words(svg)
    for expected in ("adaptive", "none", "random", "80.0", "40.0", "variance of label features"):
        assert expected in shown
    assert "one descriptor at a time, correlation 1.00" in shown
    assert "which is <8>" not in svg and "which is &lt;8&gt;" in svg
    assert prompt_study(STUDY) == svg


def test_bars_lines_and_dots_follow_the_numbers() -> None:
    svg = prompt_study(STUDY)
    root = ElementTree.fromstring(svg)
    own, other = (
        next(node for node in root.iter() if node.tag.endswith("rect") and node.get("class") == kind)
        for kind in ("dot tone-0", "shade")
    )
    assert float(own.get("width", "")) == 2 * float(other.get("width", ""))
    (curve,) = lines(svg, "line tone-0")
    assert len(curve) == 3 and curve[0][1] > curve[1][1] > curve[2][1]
    dots = [node for node in root.iter() if node.get("class") == "dot tone-2"]
    assert len(dots) == 9
    (fit,) = lines(svg, "plain dashed")
    assert fit[0][0] < fit[1][0] and fit[0][1] > fit[1][1]


def test_nothing_to_correlate() -> None:
    svg = prompt_study(PromptStudy(METHODS[:1], {"adaptive": ((1, 50.0),)}, SPOTS[:1], None))
    assert "one descriptor at a time" in words(svg) and lines(svg, "plain dashed") == []
