"""A machine without a browser: people are let off the test of pages, CI is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from _pytest.outcomes import Failed, Skipped

from tests.stack import browser

RUN = Path(__file__).parents[2] / ".ci/run"


@pytest.mark.parametrize(("where", "ends"), [("", Skipped), ("true", Failed)])
def test_without_chromium_a_person_skips_and_ci_fails(
    where: str, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", where)
    monkeypatch.setattr(browser, "NAMES", ("no-such-browser",))
    with pytest.raises(ends, match="no Chromium"):
        browser.chromium()


@pytest.mark.parametrize("name", [None, *browser.NAMES])
def test_ci_runs_no_test_without_chromium(name: str | None, tmp_path: Path) -> None:
    """On a machine that has nothing but these programs, and where nobody may install any."""
    dirname = shutil.which("dirname")
    programs = {"dirname": f'exec {dirname} "$@"', "id": "echo 1000", "make": 'echo "make $* CI=$CI"'}
    for program, does in (programs | ({name: "exit"} if name else {})).items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / program).chmod(0o755)
    bash = shutil.which("bash") or "bash"
    done = subprocess.run(
        [bash, str(RUN)], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    if name:
        assert (done.returncode, done.stdout) == (0, "make test CI=true\n"), done.stderr
    else:
        assert (done.returncode, done.stdout) == (1, "") and "Chromium" in done.stderr
