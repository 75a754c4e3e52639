"""Debian's Chromium, driven through pages on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


def chromium() -> str:
    """Where it is; `.ci/run` installs it, and where CI is set nothing is skipped for want of it."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    give_up = pytest.fail if os.environ.get("CI") else pytest.skip
    return found or give_up("no Chromium: `apt install chromium`")


@contextmanager
def page(*flags: str) -> Iterator[Page]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=[*QUIET, *flags])
        try:
            yield browser.new_page(viewport={"width": 1440, "height": 1400})
        finally:
            browser.close()
