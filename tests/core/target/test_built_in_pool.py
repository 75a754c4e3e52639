"""The built-in pool: every phrase a clause, no two alike, and joined only from lists that go together."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product

import numpy as np

from mudg_core.target.descriptor_pool import as_clause, built_in, grammar, phrase_file, word_list


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
    for pattern, lists in grammar():
        assert pattern.count("{}") == len(lists)
        for _ in range(20):
            said = pattern.format(*(options[random.integers(len(options))] for options in lists))
            assert re.sub(r"\ba (?=[aeio])", "an ", said) in pool


def test_lists_hold_no_entry_twice_and_none_that_is_empty() -> None:
    for name in phrase_file()["lists"]:
        words = word_list(name)
        assert len(set(words)) == len(words) and all(words), name


def test_what_the_demo_was_measured_with_comes_first() -> None:
    """Its figures were taken with the first pool, which a later one must not lose."""
    first = [
        *(f"which is {word}" for word in (*word_list("colours"), *word_list("looks"))),
        *(f"which has {thing}" for thing in (*word_list("patterns"), *word_list("parts"))),
        *(f"which is seen {view}" for view in word_list("views")),
        *(f"which stands {place}" for place in word_list("places")),
        *(f"which is {way}" for way in (*word_list("manners"), *word_list("counts"))),
        *(f"which is {a} and {b}" for a, b in product(word_list("looks")[:8], word_list("colours")[:10])),
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
