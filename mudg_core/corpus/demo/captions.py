"""Alt texts, as good and as bad as those of the web.

A truthful caption only says what the facts say: a text tower that learns from these pairs can then tell
"which has stripes" from "which has spots". The dirt (shop talk, cut-off sentences, file names) is added last.
"""

from __future__ import annotations

from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.kinds import WORLD
from mudg_core.corpus.demo.scene import Facts

_VIEWS = {"side": "which is seen from the side", "front": "which is seen from the front",
          "top": "which is seen from above"}
_PATTERN_WORDS = {"stripes": "striped", "spots": "spotted"}
_CONTENTLESS, _TRUNCATED, _PREFIXED, _SUFFIXED = 0.04, 0.04, 0.06, 0.14


def caption(facts: Facts, dice: Dice) -> str:
    """An alt text for a picture of `facts`."""
    if dice.chance(_CONTENTLESS):
        return _numbers(dice.pick(WORLD.empty_captions), dice)
    bare = noun_phrase(facts, dice)
    style = dice.pick(WORLD.style_words.get(facts.style, ("picture",)))
    text = dice.weighted(WORLD.templates).format(
        thing=with_article(bare, facts.count), bare=bare, which=_which(facts, dice),
        style=style, a_style=with_article(style),
        place=dice.pick(WORLD.places[facts.place].phrases),
    )
    return _dirty(_case(text, dice), dice)


def hub_caption(banner: bool, dice: Dice) -> str:
    """What the web writes under pictures of everything."""
    return _numbers(dice.pick(WORLD.banner_captions if banner else WORLD.hub_captions), dice)


def noun_phrase(facts: Facts, dice: Dice) -> str:
    """Some true adjectives and a name: usually the kind's own, at times a synonym or something vaguer."""
    words = []
    if facts.size and dice.chance(0.45):
        words.append(facts.size)
    if facts.colour and dice.chance(0.35):
        words.append("grey" if facts.colour == "gray" and dice.chance(0.25) else facts.colour)
    if facts.pattern and facts.kind.innate is None and dice.chance(0.5):
        words.append(_PATTERN_WORDS[facts.pattern])
    return " ".join([*words, _name(facts, dice)])


def _name(facts: Facts, dice: Dice) -> str:
    if facts.count > 1:
        return facts.kind.plural
    if dice.chance(0.10):
        return dice.pick(facts.kind.synonyms)
    return dice.pick(facts.kind.hypernyms) if dice.chance(0.05) else facts.kind.name


def with_article(phrase: str, count: int = 1) -> str:
    if count > 1:
        return f"two {phrase}"
    if phrase.endswith(("glasses", "spectacles")):
        return f"a pair of {phrase}"
    return f"{'an' if phrase[0] in 'aeiou8' else 'a'} {phrase}"


def _which(facts: Facts, dice: Dice) -> str:
    """One descriptor of the form that label augmentation uses."""
    options = [_VIEWS[facts.kind.view], WORLD.places[facts.place].descriptor,
               f"which has {dice.pick(facts.kind.parts)}",
               f"which is {with_article(facts.kind.hypernyms[0])}"]
    if facts.colour:
        options += [f"which is {facts.colour}"] * 2
    if facts.pattern:
        options += [f"which has {facts.pattern}"] * 3
    if facts.size:
        options += [f"which is {facts.size}"] * 2
    if facts.side:
        options += [f"which is on the {facts.side} side"] * 2
    return _plural(dice.pick(options)) if facts.count > 1 else dice.pick(options)


def _plural(which: str) -> str:
    """The same descriptor, said of two things."""
    for one, more in (("is an ", "are "), ("is a ", "are "), ("is ", "are "), ("has ", "have "),
                      ("stands ", "stand "), ("lies ", "lie ")):
        if which.startswith(f"which {one}"):
            tail = which.removeprefix(f"which {one}")
            return f"which {more}{tail}" + ("s" if one in ("is an ", "is a ") else "")
    return which


def _case(text: str, dice: Dice) -> str:
    if dice.chance(0.12):
        return text.title()
    return text[0].upper() + text[1:] if dice.chance(0.3) else text


def _dirty(text: str, dice: Dice) -> str:
    if dice.chance(_PREFIXED):
        text = _numbers(dice.pick(WORLD.prefixes), dice) + text
    if dice.chance(_SUFFIXED):
        text = text.rstrip(".") + _numbers(dice.pick(WORLD.suffixes), dice)
    if dice.chance(_TRUNCATED):
        text = text[: max(6, int(len(text) * dice.uniform(0.4, 0.8)))] + "..."
    return text


def _numbers(text: str, dice: Dice) -> str:
    return text.replace("{n}", f"{dice.below(100000):05d}").replace("{d}", str(2 + dice.below(8)))
