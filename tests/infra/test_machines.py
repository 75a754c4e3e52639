"""Which Python `make setup` takes, and that the locks hold for all of them and for other machines."""

from __future__ import annotations

import itertools
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra import check_platforms
from tests.infra.files import INFRA, PROJECT, ROOT

FIND = INFRA / "find-python"
# What a Python prints that finds its version and modules, as find-python asks.
FITS, OLD, BARE = "echo fits", "echo 3.9.18", "echo 3.12.1 without venv or ensurepip"
SHIM = "echo 'command not found' >&2; exit 127"


def find(folder: Path, *named: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", FIND, *named], env={"PATH": str(folder)}, capture_output=True, text=True, check=False
    )


def install(folder: Path, **programs: str) -> None:
    for name, body in programs.items():
        file = folder / name.replace("_", ".")
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
    (folder / "cat").symlink_to("/bin/cat")


@pytest.mark.parametrize(
    ("programs", "wanted"),
    [
        ({"python3_11": FITS, "python3_13": FITS, "python3": OLD}, "python3.11"),
        ({"python3_11": SHIM, "python3_12": SHIM, "python3_13": FITS}, "python3.13"),
        ({"python3_12": BARE, "python3": FITS}, "python3"),
        ({"python3": OLD, "python": FITS}, "python"),
    ],
)
def test_the_first_that_runs_and_fits_is_taken(tmp_path: Path, programs: dict[str, str], wanted: str) -> None:
    install(tmp_path, **programs)
    assert find(tmp_path).stdout == f"{tmp_path / wanted}\n"


def test_what_does_not_fit_is_named_with_its_reason(tmp_path: Path) -> None:
    install(tmp_path, python3_11=SHIM, python3_12=BARE, python3=OLD)
    refused = find(tmp_path)
    assert refused.returncode == 1 and refused.stdout == ""
    for name, reason in (("3.11", "does not run"), ("3.12", "3.12.1 without venv"), ("3", "3.9.18")):
        assert f"{tmp_path}/python{name}: {reason}" in refused.stderr
    assert "PYTHON=" in refused.stderr and "apt install" in refused.stderr
    assert "none of them is installed" in find(tmp_path, "nothing").stderr


def test_one_that_is_named_is_the_only_one_asked(tmp_path: Path) -> None:
    install(tmp_path, python3_11=FITS, python3_12=FITS, python3=OLD)
    assert find(tmp_path, "python3.12").stdout == f"{tmp_path}/python3.12\n"
    assert find(tmp_path, "python3").returncode == 1


def test_the_question_is_one_that_a_real_python_answers() -> None:
    assert find(Path("/bin"), sys.executable).stdout == f"{sys.executable}\n"


def environments() -> list[dict[str, str]]:
    machines = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
    return [
        {"sys_platform": system, "platform_machine": machine, "extra": ""}
        | {"platform_system": system.title(), "python_version": python, "python_full_version": f"{python}.9"}
        for (system, machine), python in itertools.product(machines, check_platforms.PYTHONS)
    ]


def fixed(environment: dict[str, str]) -> set[str]:
    lines = [Requirement(line) for line in (ROOT / "requirements.lock").read_text().splitlines()]
    return {
        canonicalize_name(one.name) for one in lines if one.marker is None or one.marker.evaluate(environment)
    }


@pytest.mark.parametrize("environment", environments(), ids=lambda one: " ".join(one.values()))
def test_the_lock_fixes_what_its_packages_want_elsewhere(environment: dict[str, str]) -> None:
    """`make check-platforms` asks the registry; this, offline, asks the packages that are installed here."""
    names = fixed(environment)
    for name in names:
        try:
            wanted = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:  # of another Python or machine than this
            continue
        for one in map(Requirement, wanted):
            if one.marker is None or one.marker.evaluate(environment):
                found = canonicalize_name(one.name)
                assert found in names or found.startswith(check_platforms.FOR_GPUS), f"{name} wants {one}"


def test_every_python_that_is_promised_is_checked() -> None:
    wanted = Requirement(f"python{PROJECT['requires-python']}").specifier
    promised = tuple(version for version in (f"3.{minor}" for minor in range(8, 20)) if version in wanted)
    assert promised == check_platforms.PYTHONS
    said = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: Python ::" in line}
    assert said == set(promised)


def test_a_package_that_no_lock_fixes_is_named() -> None:
    lock = "prefect==3.8.8\npendulum==3.3.0 ; python_full_version < '3.13'\n"
    resolution = "nvidia-cublas==13.1\nprefect==3.8.8\ntriton==3.7.1\nwhenever==0.10.5\n"
    assert check_platforms.unpinned(lock, resolution) == ["whenever"]
    assert check_platforms.unpinned(lock, lock) == []


def test_locks_name_nothing_for_gpus() -> None:
    for lock in check_platforms.LOCKS:
        names = check_platforms.names((ROOT / lock).read_text())
        assert names and not [name for name in names if name.startswith(check_platforms.FOR_GPUS)]
