"""Charts are well-formed, show the numbers they were given, and survive any of them."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from mudg_core.dataset.pseudo_labels import Hubness
from mudg_core.evaluate.measures import Bin, Calibration
from mudg_core.report.charts import bars, lineage, plot
from mudg_core.report.charts.bars import MAX_HUBS
from mudg_core.report.charts.lineage import depths, layout
from mudg_core.report.charts.plot import KINDS, MAX_POINTS, smooth, thin
from mudg_core.report.charts.svg import log_ticks, tag, ticks
from mudg_core.report.data import AlphaPoint, Descriptor, DomainScores, LineageNode, Timing
from mudg_core.report.words import columns, duration, number, shorten, signed
from tests.core.report.fake import fake_lineage, fake_map, fake_report, fake_target

TARGET, REPORT = fake_target(seeds=3, extras=True), fake_report()
assert REPORT.index and TARGET.hubness and TARGET.map and TARGET.measures
CALIBRATED = {arm: found.calibration for arm, found in TARGET.measures.arms.items()}
EVERY = {
    "accuracy": bars.accuracy(TARGET.scores),
    "alpha": plot.alpha_curve(TARGET.measures.alpha),
    "reliability": plot.reliability(CALIBRATED),
    "confidences": plot.confidences(CALIBRATED),
    "gains": bars.class_gains(TARGET.classes, *(TARGET.class_accuracy[arm] for arm in ("zero_shot", "mudg"))),
    "labels": bars.labels(TARGET.classes, TARGET.labels_before, TARGET.labels_after),
    "descriptors": bars.descriptor_losses(TARGET.descriptors, TARGET.groups),
    "funnel": bars.funnel(TARGET.funnel),
    "hubness": bars.hubness(TARGET.classes, TARGET.hubness),
    "map": plot.class_map(TARGET.map, TARGET.classes),
    "outcomes": bars.outcomes(TARGET.outcomes),
    "training": plot.training(TARGET.losses),
    "recall": plot.recall(REPORT.index.recall_at_1),
    "objective": plot.objective([step[0] for step in REPORT.index.objectives], "k-means", "arm-mudg"),
    "timings": bars.timings(REPORT.timings),
    "lineage": lineage.lineage(REPORT.lineage),
}


def words(chart: Markup) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(chart).iter("text")]


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_is_well_formed_and_named(name: str) -> None:
    root = ElementTree.fromstring(EVERY[name])
    assert root.tag == "svg" and root.get("role") == "img" and root.get("aria-label")
    assert all(math.isfinite(float(value)) for value in re.findall(r"-?\d+\.?\d*", root.get("viewBox", "")))
    assert all(float(node.get("width", "1")) > 0 for node in root.iter("rect"))


def test_accuracy_prints_each_value_and_the_mean_apart() -> None:
    shown = words(EVERY["accuracy"])
    for arm in ("zero_shot", "nearest_neighbours", "mudg"):
        assert {number(value) for value in TARGET.scores[arm].domains.values()} <= set(shown)
        assert number(TARGET.scores[arm].mean) in shown
    assert "mean ± std" in shown and 'class="whisker"' in EVERY["accuracy"]


def test_reliability_and_confidence_follow_the_bins() -> None:
    found = Calibration(10.0, 50.0, 40.0, [Bin(0.2, 0.4, 30, 30.0, 10.0), Bin(0.8, 1.0, 10, 90.0, 90.0)])
    dots = ElementTree.fromstring(plot.reliability({"mudg": found})).findall(".//circle")
    (low, lower), (high, higher) = ((float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in dots)
    assert low < high and lower > higher
    assert "30 predictions, confidence 30.0 %, accuracy 10.0 %" in (dots[0][0].text or "")
    bars = ElementTree.fromstring(plot.confidences({"mudg": found})).findall(".//rect")
    heights = [float(bar.get("height", "")) for bar in bars]
    assert heights[0] == pytest.approx(3 * heights[1], rel=0.01)
    assert [bar[0].text for bar in bars] == ["MUDG: 75.0 % of predictions", "MUDG: 25.0 % of predictions"]


def test_the_way_between_the_weights_has_two_lines_and_a_band_over_seeds() -> None:
    assert TARGET.measures
    points = TARGET.measures.alpha
    drawn = ElementTree.fromstring(plot.alpha_curve(points))
    assert len(drawn.findall(".//circle")) == 2 * len(points) and 'class="band' in EVERY["alpha"]
    alone = [AlphaPoint(point.alpha, point.single, point.averaged, 0.0) for point in points]
    assert 'class="band' not in plot.alpha_curve(alone)


def test_many_domains_are_cut() -> None:
    scores = {"mudg": DomainScores(50.0, 0.0, {f"domain {i}": 50.0 for i in range(40)})}
    assert len(ElementTree.fromstring(bars.accuracy(scores)).findall(".//rect")) == 8 + 1 + 1


def test_charts_of_nothing_and_of_nonsense() -> None:
    nan = math.nan
    hard = [
        bars.accuracy({"mudg": DomainScores(nan, nan, {"a": nan})}),
        bars.class_gains(("a",), (nan,), (1.0,)),
        plot.alpha_curve(()),
        plot.alpha_curve([AlphaPoint(0.0, nan, 1.0, nan), AlphaPoint(1.0, 2.0, 2.0, 0.0)]),
        plot.reliability({}),
        plot.confidences({"mudg": Calibration(0.0, 0.0, 0.0, [])}),
        bars.labels((), (), ()),
        bars.descriptor_losses((), 0),
        bars.descriptor_losses([Descriptor("x", 10_000, 0.0, True), Descriptor("y", 0, 0.0, False)], 10_000),
        bars.funnel((("a", 0), ("b", 0))),
        bars.outcomes({"new reason": 0}),
        bars.hubness((), Hubness((), (), nan, nan, (), 0.0, ())),
        bars.hubness(("a",), Hubness((0,), (0,), nan, nan, (7,), 0.0, ())),
        plot.class_map(fake_map(3, points=5), ("only one name",)),
        plot.training(((nan,), (), (1.0,))),
        plot.recall({0: 0.5}),
        plot.recall({8: nan}),
        plot.objective([], "x", "y"),
        bars.timings([Timing("x", 1, nan), Timing("y", 1, 0.0)]),
        lineage.lineage(
            [LineageNode("a/1", "a", "1", "", "", ("b/1",)), LineageNode("b/1", "b", "1", "", "", ("a/1",))]
        ),
    ]
    for chart in hard:
        ElementTree.fromstring(chart)
        assert "nan" not in chart.lower().replace("n/a", "")


def test_the_map_draws_every_point_once_with_its_kind() -> None:
    for size, coloured in ((4, True), (12, True), (13, False)):
        points, names = fake_map(size, points=400), tuple(f"name {i}" for i in range(size))
        root = ElementTree.fromstring(plot.class_map(points, names))
        assert len(list(root.iter("circle"))) == 400
        tips = [node.text or "" for node in root.iter("title")]
        both = points.chosen & points.nearest
        assert sum("chosen" in tip for tip in tips) == points.chosen.sum()
        assert sum("nearest" in tip for tip in tips) == points.nearest.sum()
        assert sum("chosen, and nearest" in tip for tip in tips) == both.sum() > 0
        assert {int(tip.rsplit(" ", 1)[1]) for tip in tips} == set(points.row.tolist())
        tones = {str(node.get("class")).split()[2] for node in root.iter("g")}
        wanted = {f"tone-{i}" for i in range(size)}
        assert tones == (wanted if coloured else {f"kind-{kind}" for kind in KINDS})


def test_points_stay_inside_the_map() -> None:
    for node in ElementTree.fromstring(EVERY["map"]).iter("circle"):
        assert 0 < float(node.get("cx", "-1")) < 800 and 0 < float(node.get("cy", "-1")) < 560


def test_hubness_shows_the_greatest_differences_and_names_hubs() -> None:
    found = Hubness(tuple([100] * 40), tuple([100 + i for i in range(39)] + [20]), 0.0, 2.0, (38,), 0.0, ())
    names = tuple(f"name-{i}" for i in range(40))
    shown = [word for word in words(bars.hubness(names, found)) if word.startswith("name")]
    assert len(shown) == MAX_HUBS and shown[0] == "name-38" and shown[-1] == "name-39"
    assert "name-3" not in shown and words(bars.hubness(names, found)).count("hub") == 1


def test_more_than_before_are_replacements_and_not_a_share() -> None:
    shown = words(bars.funnel((("selected", 100), ("fetched", 130), ("kept", 65))))
    assert "at least 30 replacements" in shown and "50 % of fetched" in shown


def test_shards_are_one_box_of_the_lineage() -> None:
    shown = words(lineage.lineage(fake_lineage(shards=300)))
    assert shown.count("\u00d7 300") == 2 and len(shown) < 40


def test_columns_follow_the_longest_path_and_late_sources_move_right() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("q", "c")]
    assert depths(["a", "b", "c", "q"], edges) == {"a": 0, "b": 1, "c": 2, "q": 0}
    plan = layout(["a", "b", "c", "q"], edges)
    assert plan.column["q"] == 1
    assert [len(route) for route in plan.routes] == [2, 2, 3, 2]
    places = [(plan.column[name], round(plan.height[name])) for name in plan.column]
    assert len(places) == len(set(places))


def test_tags_escape_children_and_attributes() -> None:
    made = tag("text", '<b a="1">&', title='"><script>', x=1.25)
    assert made == '<text title="&#34;&gt;&lt;script&gt;" x="1.2">&lt;b a=&#34;1&#34;&gt;&amp;</text>'


def test_ticks_are_round_and_cover_the_range() -> None:
    assert ticks(0, 75.8) == [0, 20, 40, 60, 80]
    for low, high in [(0.36, 0.421), (3, 3), (-5, 1e9), (math.nan, 1)]:
        marks = ticks(low, high)
        assert len(marks) >= 2 and not (marks[0] > low or marks[-1] < high)


def test_log_ticks_are_round_and_cover_the_range() -> None:
    assert log_ticks(130, 4300) == [100, 200, 500, 1000, 2000, 5000]
    for low, high in [(1, 1), (0.003, 0.0031), (10, 1e6), (999.9, 1000.1)]:
        marks = log_ticks(low, high)
        assert len(marks) >= 2 and marks[0] <= low * 1.001 and marks[-1] >= high * 0.999


def test_smoothing_keeps_a_line_and_thinning_its_ends() -> None:
    flat = [(float(i), 2.0) for i in range(1000)]
    assert all(abs(y - 2) < 1e-9 for _, y in smooth(flat))
    assert len(thin(flat)) == MAX_POINTS and thin(flat)[0] == flat[0] and thin(flat)[-1] == flat[-1]


def test_numbers_in_words() -> None:
    assert [number(-0.04), number(-1.9), number(1234.56, 0), number(math.inf)] == [
        "0.0",
        "\u22121.9",
        "1,235",
        "n/a",
    ]
    assert [signed(0), signed(12.3), signed(-1.9)] == ["0.0", "+12.3", "\u22121.9"]
    assert [duration(41.2), duration(358), duration(7300)] == ["41.2 s", "5 min 58 s", "2 h 1 min"]
    assert (
        shorten("a\n b", 9) == "a b"
        and columns(shorten("漢字" * 30, 10)) <= 10
        and len(shorten("x" * 99, 10)) == 10
    )
