"""What a model card says, to people and to the Hub."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mudg_core.train.card import Origin, Verdict, card
from tests.support.exported import facts

SCORES: Any = {
    "zero_shot": {"single": {"mean": 40.0, "domains": {"a|b": 30.0, "photo": 50.0}}},
    "mudg": {
        "single": {"mean": 60.04, "domains": {"a|b": 50.04, "photo": 70.04}},
        "averaged": {"mean": 61.0, "domains": {"a|b": 51.0, "photo": 71.0}},
    },
}


def front(text: str) -> Any:
    return yaml.safe_load(text.split("---\n")[1])


def test_the_hub_reads_what_it_is() -> None:
    told = front(card(facts(target="things: # and more")))
    assert told["library_name"] == "open_clip" and told["license"] == "other"
    assert told["mudg"]["target"] == "things: # and more"
    assert told["mudg"]["model"] == "model/" + "12" * 32 and told["mudg"]["alpha"] == 1.0


def test_it_says_what_it_was_made_from() -> None:
    text = card(facts())
    for words in (
        "3 classes",
        "finetuned on 7 retrieved images",
        "s3://bucket/pool",
        "corpus of 1,000 rows in 4 shards",
        "ab" * 32,
        "model/" + "12" * 32,
        "train.iterations",
        "No licence of any of them is known",
        "Apache-2.0",
    ):
        assert words in text, words


def test_names_of_strangers_stay_names() -> None:
    origin = Origin("folder", "a | <i>b</i>", 1, 7)
    text = card(facts(description="<script>", warnings=("<u>few</u>",), origins=(origin,), template="`{}`"))
    for raw in ("<b>", "<script>", "<u>", "<i>", "| `x`", '"`{}`"'):
        assert raw not in text
    assert "&lt;b&gt;no&lt;/b&gt; \\| \\`x\\`" in text


def test_without_evaluation_it_says_so() -> None:
    assert "It was not evaluated" in card(facts())
    assert "It was not evaluated" not in card(facts(scores=SCORES))


def test_accuracies_are_told_by_domain() -> None:
    text = card(facts(scores=SCORES, over_seeds=(60.04, 58.0)))
    assert "|  | mean | a\\|b | photo |" in text
    assert "| zero-shot, single prompt | 40.0 | 30.0 | 50.0 |" in text
    assert "| finetuned, averaged prompts | 61.0 | 51.0 | 71.0 |" in text
    assert "by seed: 60.0, 58.0." in text
    assert "by seed" not in card(facts(scores=SCORES, over_seeds=(60.04,)))
    assert "interpolated" not in text


@pytest.mark.parametrize(
    ("alpha", "better", "says"),
    [
        (0.0, False, ["the initial ones of", "**not certainly better than zero-shot**", "alpha 0.00"]),
        (0.4, True, ["alpha 0.40 between", "**better than zero-shot**", "were not evaluated"]),
        (1.0, None, ["**not estimated**", "alpha 1.00"]),
        (1.0, True, ["finetuned on 7 retrieved images", "alpha 1.00"]),
    ],
)
def test_the_verdict_is_told(alpha: float, better: bool | None, says: list[str]) -> None:
    text = card(facts(verdict=Verdict(alpha, better, ("agreement is <low>",)), scores=SCORES))
    assert all(words in text for words in [*says, "- agreement is &lt;low&gt;"])
    assert front(text)["mudg"]["alpha"] == alpha


def test_without_a_gate_it_says_so() -> None:
    assert "was not estimated" in card(facts())


def test_long_lists_are_cut_and_counted() -> None:
    many = tuple(f"class {n}" for n in range(300))
    origins = tuple(Origin("folder", f"pool {n}", 1, 1) for n in range(60))
    text = card(facts(classes=many, images=(1,) * 300, origins=origins, warnings=("w",) * 70))
    assert "class 199 |" in text and "class 200 |" not in text and "and 100 more (" in text
    assert "and 10 more sources" in text and "and 20 more warnings" in text


def test_warnings_come_before_what_is_always_so() -> None:
    text = card(facts(warnings=("the corpus lacks `cat`",)))
    assert text.index("the corpus lacks \\`cat\\`") < text.index("It knows the classes above")
