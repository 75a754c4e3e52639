"""The demo world: a seeded, procedural stand-in for a web crawl of image-caption pairs."""

from __future__ import annotations

from mudg_core.corpus.demo.kinds import KIND_SHARES, KINDS
from mudg_core.corpus.demo.styles import ABSENT_STYLES, CORPUS_STYLES, STYLES
from mudg_core.corpus.demo.targets import TARGET_BY_NAME, TARGETS, DemoTarget, evaluation_images
from mudg_core.corpus.demo.world import DemoRow, DemoWorld, Truth, write_demo_shard

__all__ = [
    "ABSENT_STYLES",
    "CORPUS_STYLES",
    "KINDS",
    "KIND_SHARES",
    "STYLES",
    "TARGETS",
    "TARGET_BY_NAME",
    "DemoRow",
    "DemoTarget",
    "DemoWorld",
    "Truth",
    "evaluation_images",
    "write_demo_shard",
]
