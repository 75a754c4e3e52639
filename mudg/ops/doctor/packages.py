"""Are the versions installed those that work together?"""

from __future__ import annotations

import sys
from importlib import metadata

from packaging.requirements import Requirement

from mudg.ops.doctor.finding import Case, Finding, fault, ok, warning

SETUP = "run `make setup`, or install from requirements.lock"
# What no resolver reports.
BREAKAGES = {
    "fastapi>=0.151": "Prefect's server fails: Body() got an unexpected keyword argument 'min_items'",
    "sqlalchemy>=2.1": "Prefect's cron schedules create no runs, and say nothing",
    "dataclasses": "the backport hides Python's own module, and Prefect's server does not start",
}
FAISS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cu11")


def python(case: Case) -> list[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    wanted = _metadata("Requires-Python") or ">=3.11"
    if Requirement(f"python{wanted}").specifier.contains(version):
        return [ok("python", version)]
    return [fault("python", f"{version}, and mudg wants {wanted}", f"use a Python {wanted}")]


def pins(case: Case) -> list[Finding]:
    """Against what mudg itself says that it needs."""
    try:
        wanted = [Requirement(line) for line in metadata.requires("mudg") or ()]
    except metadata.PackageNotFoundError:
        return [warning("packages", "mudg is not installed, but run from its sources", "pip install -e .")]
    main = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    wrong = [
        f"{one.name} {_version(one.name) or 'is missing'} ({one.specifier})" for one in main if not _fits(one)
    ]
    if wrong:
        return [fault("packages", ", ".join(wrong), SETUP)]
    shown = ", ".join(f"{name} {_version(name)}" for name in ("prefect", "distributed", "torch"))
    return [ok("packages", f"{len(main)} in versions that mudg allows; {shown}")]


def breakages(case: Case) -> list[Finding]:
    found = [
        fault("known breakages", f"{one.name} {_version(one.name)}: {why}", f"pip uninstall, or {SETUP}")
        for one, why in ((Requirement(line), why) for line, why in BREAKAGES.items())
        if _version(one.name) and _fits(one)
    ]
    both = [name for name in FAISS if _version(name)]
    if len(both) > 1:
        found.append(
            fault(
                "known breakages",
                f"{' and '.join(both)} break each other",
                "uninstall both, then install one",
            )
        )
    if not both:
        found.append(
            fault(
                "known breakages",
                "no faiss is installed",
                "pip install -e '.[cpu]' in the checkout, or [gpu]",
            )
        )
    return found or [ok("known breakages", "none")]


def _fits(wanted: Requirement) -> bool:
    version = _version(wanted.name)
    return version is not None and wanted.specifier.contains(version, prereleases=True)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _metadata(field: str) -> str | None:
    try:
        found = metadata.metadata("mudg")
        return str(found[field]) if field in found else None
    except metadata.PackageNotFoundError:
        return None
