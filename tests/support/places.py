"""Commands of `mudg` in a folder: in this process, or on one Prefect server and one Dask cluster for all.

Starting servers is most of the time of a small command, so tests share them, and most do without.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import dask
import pytest
from prefect.settings import PREFECT_API_URL
from typer.testing import CliRunner, Result

from mudg.cli.app import app
from mudg_core.settings import Settings
from tasks.executors.session import session
from tests.support.demo_runs import digests, mudg
from tests.support.seaweed import CREDENTIALS

runner = CliRunner()
TLS = {"ca-file": "CA_FILE", "client.cert": "CLIENT__CERT", "client.key": "CLIENT__KEY"}


def here(folder: Path, *arguments: str, ends: int = 0) -> Result:
    """A command in this process. One that needs a session must be told of servers: see `Place`."""
    with chdir(folder):
        done = runner.invoke(app, list(arguments))
    assert done.exit_code == ends, done.output
    return done


@dataclass(frozen=True)
class Place:
    """A folder with a store, and the servers that commands in it use; without any they compute themselves."""

    folder: Path
    dask: str = ""
    prefect: str = ""
    flags: Sequence[str] = ()
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    def command(self, *arguments: str) -> dict[str, Any]:
        """As a user types it: a process of its own."""
        keys = ({"PREFECT_API_URL": self.prefect} if self.prefect else {}) | dict(self.keys)
        done = mudg(*self._all(arguments), "--json", cwd=self.folder, **keys)
        assert done.returncode == 0, done.stderr[-3000:]
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    def run(self, *arguments: str, ends: int = 0) -> dict[str, Any]:
        """The same command in this process, which has loaded everything already."""
        result: dict[str, Any] = json.loads(self.says(*arguments, "--json", ends=ends).splitlines()[-1])
        return result

    def says(self, *arguments: str, ends: int = 0) -> str:
        return here(self.folder, *self._all(arguments), ends=ends).stdout

    def _all(self, arguments: tuple[str, ...]) -> list[str]:
        """The place's settings before those of the test, which win."""
        words = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
        where = f"dask_address={self.dask}" if self.dask else "executor=in-process"
        return [*words, *self.flags, "--set", f"compute.{where}", *arguments[len(words) :]]

    def versions(self) -> list[tuple[str, str]]:
        return [(one["index"], one["state"]) for one in self.run("index", "list")["versions"]]

    def current(self) -> str:
        return self.versions()[0][0]

    def digests(self, *stages: str) -> dict[str, str]:
        found = digests(self.folder)
        return {key: value for key, value in found.items() if not stages or key.split("/")[0] in stages}

    def made_since(self, before: dict[str, str]) -> Counter[str]:
        return Counter(key.split("/")[0] for key in self.digests().keys() - before.keys())

    def copy(self, to: Path) -> Place:
        shutil.copytree(self.folder, to, dirs_exist_ok=True)
        return replace(self, folder=to)


@pytest.fixture(scope="package")
def local(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Workers inherit the environment: they can use buckets too."""
    folder = tmp_path_factory.mktemp("servers")
    storage = {"url": f"file://{folder}/.mudg", "cache_dir": str(folder / ".mudg/cache")}
    settings = Settings().replace({"storage": storage, "compute": {"workers": 1}})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        with session(settings) as ready:
            address, api = str(ready.compute.dask_address), str(PREFECT_API_URL.value())
            yield Place(folder, address, api, keys=_keys())


def _keys() -> dict[str, str]:
    """What lets another process use the servers of this one: Prefect's password and Dask's certificate."""
    tls = {name: dask.config.get(f"distributed.comm.tls.{name}") for name in TLS}
    by_name = {f"DASK_DISTRIBUTED__COMM__TLS__{TLS[name]}": str(value) for name, value in tls.items()}
    return by_name | {"PREFECT_API_AUTH_STRING": os.environ["PREFECT_API_AUTH_STRING"]}
