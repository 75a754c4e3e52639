"""Which code this process runs. Content keys hold for one version of it: a worker with another would store
what it makes under the keys of the flow's version."""

from __future__ import annotations

import platform

from mudg_core.errors import VersionError
from mudg_core.storage.build_info import build_info


def code_version() -> str:
    """The release, and of a source checkout its commit."""
    made_by = build_info("0" * 32, 0.0)  # of no attempt
    return f"{made_by.mudg_version} {made_by.code_version[:12]}".strip()


CODE = code_version()  # of what this process has loaded, whatever is checked out later


def check_code(flow: str, here: str = CODE) -> None:
    """Refuses to work for a flow of another version. Where one side was installed without a checkout, only
    releases can be compared."""
    releases, commits = zip(_parts(flow), _parts(here), strict=True)
    if len(set(releases)) == 1 and len(set(commits) - {""}) < 2:
        return
    raise VersionError(
        what=f"this worker runs mudg {here}, and the flow runs {flow}",
        where=f"worker on {platform.node()}",
        fix="install the same version in both places, and start the workers again",
    )


def _parts(version: str) -> tuple[str, str]:
    release, _, commit = version.partition(" ")
    return release, commit
