"""The page as a whole: it stands alone, cannot be broken into, and tells the truth."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import tomllib
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mudg_core.dataset.fetch_filter_refill import CHOSEN, DEAD, SPARE, UNLIKE, UNREADABLE
from mudg_core.dataset.warning import TargetWarning
from mudg_core.report.data import DomainScores, ReportData, TargetReport, Timing
from mudg_core.report.gallery import MAX_IMAGES, safe_link
from mudg_core.report.page import render
from mudg_core.report.tables import warning_numbers, warning_view
from mudg_core.report.words import detail, sentence, verdict
from tests.core.report.fake import fake_lineage, fake_report, fake_target

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "img", "input", "br", "link"}


class Page(HTMLParser):
    """Every start tag with its attributes, and the words of the page; complains about tags out of order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def heading(html: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", html, re.DOTALL)
    assert found
    return re.sub(r"<[^>]+>", "", found[1])


def hostile(text: str) -> ReportData:
    """The text wherever somebody else's words can come in."""
    target = fake_target((text, "cat"), name=text, extras=True)
    gallery = tuple(
        dataclasses.replace(image, url=text, caption=text, query=text, outcome=outcome, detail=text)
        for image, outcome in zip(target.gallery, [text, "chosen"] * 99, strict=False)
    )
    scores = {arm: dataclasses.replace(score, domains={text: 50.0}) for arm, score in target.scores.items()}
    target = dataclasses.replace(
        target,
        description=text,
        template=text,
        gallery=gallery,
        scores=scores,
        outcomes={text: 3},
        warnings=(TargetWarning(text, (text, text), text, {text: 0.5}),),
        descriptors=tuple(dataclasses.replace(d, text=text) for d in target.descriptors),
        funnel=((text, 9), (text, 3)),
    )
    report = fake_report(target, notes=(text,))
    assert report.index
    return dataclasses.replace(
        report,
        title=text,
        created=text,
        version=text,
        profile=text,
        settings={text: {text: text}},
        index=dataclasses.replace(report.index, code=text, method=text),
        timings=tuple(dataclasses.replace(timing, stage=text) for timing in report.timings),
        lineage=tuple(
            dataclasses.replace(n, stage=text, key=text, digest=text, rows=text) for n in report.lineage
        ),
    )


def test_the_headline_says_what_was_measured() -> None:
    words = heading(render(fake_report(fake_target(gain=12.3))))
    assert words == "MUDG 71.2 % against 58.9 % zero-shot on animals: +12.3 points over 4 domains, 1 seed."


@pytest.mark.parametrize("gain", [-40.04, -1.9, 0.0, 3.33, 12.349])
def test_every_number_of_the_headline_comes_from_the_data(gain: float) -> None:
    target = fake_target(gain=gain, seeds=3)
    mudg, plain = (round(target.scores[arm].mean, 1) for arm in ("mudg", "zero_shot"))
    given = {f"{mudg:.1f}", f"{plain:.1f}", f"{abs(mudg - plain):.1f}", "4", "3"}
    assert set(re.findall(r"\d+(?:\.\d+)?", heading(render(fake_report(target))))) == given


@pytest.mark.parametrize(
    ("gain", "words"), [(-1.9, "MUDG is not better on"), (0.0, "MUDG makes no difference")]
)
def test_a_failure_is_called_one(gain: float, words: str) -> None:
    assert heading(render(fake_report(fake_target(gain=gain)))).startswith(words)


def test_caveats_are_told() -> None:
    one_seed = verdict(fake_target(gain=5.0)).caveats
    assert one_seed == ("One seed: the spread between runs is unknown.",)
    noisy = fake_target(gain=0.3, seeds=3)
    assert "The difference is within the spread between seeds." in verdict(noisy).caveats
    near = DomainScores(99.0, 0.0, {"chalk": 99.0})
    beaten = dataclasses.replace(noisy, scores=noisy.scores | {"nearest_neighbours": near})
    assert "Nearest neighbours alone reach 99.0 %, no less than MUDG." in verdict(beaten).caveats


def test_several_targets_are_summed_up_and_linked() -> None:
    targets = (
        fake_target(),
        fake_target(("a", "b"), name="two", gain=-3),
        fake_target(name="three", evaluated=False),
    )
    html = render(fake_report(*targets))
    assert (
        heading(html) == "MUDG is better than zero-shot on 1 of 2 evaluated targets; 1 target not evaluated."
    )
    page = Page(html)
    links = {attrs["href"][1:] for tag, attrs in page.tags if tag == "a" and attrs["href"].startswith("#")}
    ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id", "tip") != "tip"]
    assert links <= set(ids) and len(ids) == len(set(ids))


def test_without_evaluation_data_it_says_so_and_shows_the_rest() -> None:
    html = render(fake_report(fake_target(evaluated=False)))
    page = Page(html)
    assert heading(html) == "animals was not evaluated: the target has no evaluation data."
    assert "the accuracy of this classifier is unknown" in page.text
    assert "Descriptors" in page.text and "Training" in page.text and page.count("img") > 100


def test_an_empty_run_renders() -> None:
    empty = TargetReport("x", "", ("a", "b"), "{}", (0,), {}, {}, (), (), (), (), {}, (), (), 0.0)
    Page(render(ReportData("t", "", "0", "paper", (empty,), None, (), (), {}, ())))
    Page(render(ReportData("t", "", "0", "paper", (), None, (), (), {}, ())))


def test_a_diverged_run_renders() -> None:
    nan = float("nan")
    scores = {arm: DomainScores(nan, nan, {"chalk": nan}) for arm in ("zero_shot", "mudg")}
    target = dataclasses.replace(
        fake_target(),
        scores=scores,
        losses=((nan, 1.0, float("inf")),),
        class_accuracy={"zero_shot": (nan,) * 18, "mudg": (nan,) * 18},
    )
    html = render(fake_report(target))
    assert "nan" not in re.sub(r"base64,[^\"]+", "", html).lower()


@pytest.mark.parametrize("size", [2, 300])
def test_any_number_of_classes(size: int) -> None:
    target = fake_target(tuple(f"class {i}" for i in range(size)), extras=True)
    html = render(fake_report(target))
    page = Page(html)
    assert page.count("img") <= MAX_IMAGES and len(html) < 6_000_000
    if size == 300:
        assert "Showing 24 of 300 classes" in page.text and "Showing 30 of 300 classes" in page.text
        assert re.search(r"Showing [\d,]+ of [\d,]+ chosen and [\d,]+ of 1,500 rejected images", page.text)
        shown = [attrs for tag, attrs in page.tags if tag == "details" and attrs.get("class") == "class"]
        assert len(shown) == 300


SECTIONS = ("warnings:", "Map of the images", "Hubs", "Confusions", "Calibration", "Between the weights")


def test_what_a_run_lacks_is_left_out() -> None:
    old, new = (Page(render(fake_report(fake_target(extras=extras)))).text for extras in (False, True))
    assert not any(words in old for words in SECTIONS) and all(words in new for words in SECTIONS)


def test_a_run_without_nearest_neighbours_shows_the_other_arms() -> None:
    target = fake_target(extras=True)
    assert target.measures
    arms = [arm for arm in target.scores if not arm.startswith("nearest")]
    fewer = dataclasses.replace(
        target,
        scores={arm: target.scores[arm] for arm in arms},
        class_accuracy={arm: target.class_accuracy[arm] for arm in arms if arm in target.class_accuracy},
        measures=dataclasses.replace(
            target.measures, arms={arm: target.measures.arms[arm] for arm in ("zero_shot", "mudg")}
        ),
    )
    page = Page(render(fake_report(fewer)))
    assert "Nearest neighbours" not in page.text and verdict(fewer) == verdict(target)
    assert page.text.count("Zero-shot") >= 3 and all(words in page.text for words in SECTIONS)


def test_stages_are_called_as_in_the_plan() -> None:
    nodes = fake_lineage()
    picks = dataclasses.replace(nodes[-1], stage="picks", ref="picks/0123456789ab")
    report = dataclasses.replace(fake_report(), lineage=(*nodes, picks))
    timings = (*report.timings, Timing("picks", 1, 2.0))
    shown = re.findall(r"<text[^>]*>([^<]*)", render(dataclasses.replace(report, timings=timings)))
    assert shown.count("select") == 2 and shown.count("finetune") == 2 and "picks" not in shown


def test_a_loss_is_told_out_of_the_groups_there_are() -> None:
    target = fake_target()
    page = render(fake_report(target))
    worst = target.descriptors[-1]
    assert f'<td class="n">{worst.loss} of 16</td>' in page
    assert "loss: in how many of 16 groups of similar classes it raises the mean cosine" in page
    warned = TargetWarning("descriptors", (), "Eq. 4 could not choose", {"pool": 9})
    page = render(fake_report(dataclasses.replace(target, warnings=(warned,))))
    assert "Descriptors that Eq. 4 did not choose" in page and "Eq. 4 could not choose" in page


def test_the_gravest_warnings_are_not_hidden_by_many_small_ones() -> None:
    few = [TargetWarning("few", (f"class {i}",), f"few {i}", {"chosen": 2.0}) for i in range(900)]
    view = warning_view(
        [*few, TargetWarning("new kind", (), "odd"), TargetWarning("leaks", (), "images leak")]
    )
    assert view and view.summary.startswith("902 warnings: 1 of leaked images, 900 of few images")
    assert len(view.shown) == 6 and view.shown[0].message == "images leak"
    assert [one.kind for one in view.shown] == ["leaks", "few", "few", "few", "few", "new kind"]
    assert len(view.folded) == 500 and view.left_out == 396
    assert warning_numbers(view.shown[1]) == [("chosen", "2")]


def test_every_outcome_is_explained() -> None:
    image = dataclasses.replace(fake_target().gallery[0], detail="", fresh_cosine=0.2491)
    told = {
        outcome: sentence(dataclasses.replace(image, outcome=outcome), 0.25)
        for outcome in (CHOSEN, DEAD, SPARE, UNLIKE, UNREADABLE, "new reason")
    }
    assert all(words.startswith(outcome) for outcome, words in told.items())
    assert all(len(words) > len(outcome) + 10 for outcome, words in told.items() if outcome != "new reason")
    assert told[UNLIKE].endswith("cosine 0.2491, below 0.25") and told["new reason"] == "new reason"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("HTTP 404", "page not found (HTTP 404)"),
        ("HTTP 418", "HTTP 418"),
        ("image: truncated", "truncated"),
        ("refused: private address", "not fetched, for safety: private address"),
    ],
)
def test_details_are_said_as_people_would(words: str, said: str) -> None:
    assert detail(words) == said
    first = dataclasses.replace(fake_target().gallery[0], outcome=DEAD, image=b"", detail=words)
    page = Page(render(fake_report(dataclasses.replace(fake_target(), gallery=(first,)))))
    assert said in page.text


@pytest.mark.parametrize(
    "text",
    [
        EVIL,
        '"><img src=x onerror=alert(1)>',
        "javascript:alert(1)",
        "\u202eevil\x00\ud800",
        "{{ 7 * 7 }}",
        "</style></title>",
        "x" * 3000,
    ],
)
def test_hostile_words_stay_words(text: str) -> None:
    html = render(hostile(text))
    html.encode("utf-8")
    page = Page(html)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in Page(render(hostile("y"))).tags}
    assert page.count("title") == Page(render(hostile("y"))).count("title")
    assert page.count("script") == page.count("style") == 1
    for _, attrs in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attrs)
        assert not attrs.get("href", "").lower().startswith("javascript")
    assert "alert(1)" not in re.findall(r"<script>(.*?)</script>", html, re.DOTALL)[0]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:x",
        " javascript:x",
        "data:text/html,x",
        "//a.b/c",
        "file:///etc/passwd",
        "http://[",
        "https://",
        "http://a b",
        "https://a\n.b",
        "",
    ],
)
def test_only_plain_web_addresses_become_links(url: str) -> None:
    assert safe_link(url) == ""
    assert safe_link("https://a.example/x?y=1") == "https://a.example/x?y=1"


def test_it_loads_nothing() -> None:
    html = render(fake_report())
    for tag, attrs in Page(html).tags:
        assert tag not in (
            "link",
            "iframe",
            "object",
            "embed",
            "base",
            "form",
            "video",
            "audio",
            "image",
            "use",
        )
        assert attrs.get("src", "data:image/").startswith("data:image/")
        assert not {"srcset", "background", "poster", "ping"} & set(attrs)
        if "href" in attrs and not attrs["href"].startswith("#"):
            assert tag == "a" and "noopener" in attrs["rel"] and "noreferrer" in attrs["rel"]
    style = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)[0]
    assert "@import" not in style and "url(" not in style and "http" not in style


def test_the_policy_allows_exactly_this_style_and_script() -> None:
    html = render(fake_report())
    policy = next(
        a["content"] for _, a in Page(html).tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; img-src data:;") and "unsafe" not in policy
    for tag in ("style", "script"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[0]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_pictures_and_charts_have_words() -> None:
    for tag, attrs in Page(render(fake_report())).tags:
        if tag == "img":
            assert attrs["alt"]
        if tag == "svg":
            assert attrs["role"] == "img" and attrs["aria-label"]


def test_the_same_data_gives_the_same_bytes() -> None:
    shuffled = fake_target()
    shuffled = dataclasses.replace(shuffled, gallery=shuffled.gallery[::-1])
    assert render(fake_report()) == render(fake_report(fake_target())) == render(fake_report(shuffled))


def test_a_wheel_holds_every_file_the_page_is_made_of() -> None:
    root = Path(__file__).parents[3]
    tools = tomllib.loads((root / "pyproject.toml").read_text())["tool"]
    patterns = tools["setuptools"]["package-data"]["mudg_core"]
    for file in (root / "mudg_core/report").iterdir():
        if file.is_file() and file.suffix != ".py":
            assert any(fnmatch(str(file.relative_to(root / "mudg_core")), pattern) for pattern in patterns), (
                file
            )
