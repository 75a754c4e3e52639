"""Why an image is or is not in the training set, in words for somebody who has not read the code."""

from __future__ import annotations

from mudg_core.report.data import GalleryImage
from mudg_core.report.words import number

MEANING = {
    "chosen": "in the training set",
    "not needed": "its group was full before its turn came",
    "unlike its query": "what the link gives now does not look like the words that found it",
    "dead link": "the link gave no image",
    "unreadable image": "the link gave something that cannot be read as a picture",
}
DETAILS = {
    "HTTP 401": "needs a login (HTTP 401)",
    "HTTP 403": "access denied (HTTP 403)",
    "HTTP 404": "page not found (HTTP 404)",
    "HTTP 410": "removed for good (HTTP 410)",
    "HTTP 429": "asked too often (HTTP 429)",
    "HTTP 5xx": "its server failed (HTTP 5xx)",
    "bad TLS": "no secure connection (bad TLS)",
    "connection cut": "the connection broke off",
    "dead host": "its server is gone",
    "hash mismatch": "not the image it was when it was crawled",
    "no answer": "no answer",
    "no result": "no answer",
    "opted out": "its owner does not want it used",
    "over a limit": "too large or too slow",
    "timed out": "no answer in time",
}


def detail(words: str) -> str:
    """A counted reason (`HTTP 404`, `image: truncated`, `refused: scheme`) as a person would say it."""
    if words in DETAILS:
        return DETAILS[words]
    kind, colon, rest = words.partition(": ")
    if colon and kind == "refused":
        return f"not fetched, for safety: {rest}"
    return rest if colon and kind in ("image", "tar", "text") else words


def why(image: GalleryImage, min_cosine: float | None) -> str:
    """The exact reason, in a few words; empty when the outcome says all there is."""
    if image.detail:
        return detail(image.detail)
    if image.outcome == "unlike its query" and image.fresh_cosine is not None:
        least = "" if min_cosine is None else f", below {number(min_cosine, 2)}"
        return f"cosine {_below(image.fresh_cosine, min_cosine)}{least}"
    return ""


def _below(cosine: float, least: float | None) -> str:
    """With as many digits as it takes to see that it is below."""
    short = number(cosine, 2)
    return number(cosine, 4) if least is not None and short == number(least, 2) else short


def sentence(image: GalleryImage, min_cosine: float | None) -> str:
    """All of it: `dead link: the link gave no image; page not found (HTTP 404)`."""
    meaning = MEANING.get(image.outcome, "")
    told = "; ".join(part for part in (meaning, why(image, min_cosine)) if part)
    return f"{image.outcome}: {told}" if told else image.outcome
