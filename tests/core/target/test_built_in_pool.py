"""The built-in pool: every phrase a clause, no two alike, and joined only from lists that go together."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product

import numpy as np

from mudg_core.target import vocabulary
from mudg_core.target.descriptor_pool import RULES, as_clause, built_in


def test_there_are_more_than_four_thousand_and_no_two_alike() -> None:
    pool = built_in()
    plain = [" ".join(phrase.casefold().split()) for phrase in pool]
    assert len(pool) >= 4000
    assert [phrase for phrase, count in Counter(plain).items() if count > 1] == []


def test_every_phrase_is_a_clause_that_can_follow_a_name() -> None:
    for phrase in built_in():
        assert re.fullmatch(r"which (is|has|stands|looks|lies|fills|comes|casts) [a-z0-9 ,\-]+", phrase), (
            phrase
        )
        assert "  " not in phrase and not phrase.endswith((" ", ","))
        assert 11 <= len(phrase) <= 80, phrase
        assert as_clause(phrase) == phrase


def test_articles_fit_what_follows() -> None:
    assert [p for p in built_in() if re.search(r"\ba [aeio]|\ban [^aeio]", p)] == []


def test_no_word_stands_twice_in_a_row_and_no_colour_is_joined_to_itself() -> None:
    assert [p for p in built_in() if re.search(r"\b(\w+)( and)? \1\b", p)] == []


def test_samples_obey_the_grammar() -> None:
    """Any filling of any rule is in the pool, but for the article before a vowel."""
    random, pool = np.random.default_rng(0), set(built_in())
    for pattern, lists in RULES:
        assert pattern.count("{}") == len(lists)
        for _ in range(20):
            said = pattern.format(*(options[random.integers(len(options))] for options in lists))
            assert re.sub(r"\ba (?=[aeio])", "an ", said) in pool


def test_lists_hold_no_entry_twice_and_none_that_is_empty() -> None:
    for name, value in vars(vocabulary).items():
        if name.isupper() and value and isinstance(value[0], str):
            assert len(set(value)) == len(value) and all(value), name


def test_what_the_demo_was_measured_with_comes_first() -> None:
    """Its figures were taken with the first pool, which a later one must not lose."""
    v = vocabulary
    first = [
        *(f"which is {word}" for word in (*v.COLOURS, *v.LOOKS)),
        *(f"which has {thing}" for thing in (*v.PATTERNS, *v.PARTS)),
        *(f"which is seen {view}" for view in v.VIEWS),
        *(f"which stands {place}" for place in v.PLACES),
        *(f"which is {way}" for way in (*v.MANNERS, *v.COUNTS)),
        *(f"which is {a} and {b}" for a, b in product(v.LOOKS[:8], v.COLOURS[:10])),
    ]
    assert list(built_in()[: len(first)]) == first
    assert {"which is drawn with a pencil, from behind", "which is tall and stands in a forest"} <= set(
        built_in()
    )


def test_the_order_is_fixed() -> None:
    built_in.cache_clear()
    again = built_in()
    built_in.cache_clear()
    assert again == built_in()
    assert (again[0], again[-1]) == ("which is red", "which is black and white")
