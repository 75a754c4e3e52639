"""The compose file: its form is checked by `make check`; here, that what it says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from distributed.cli import dask_scheduler, dask_worker

from tests.infra.files import INFRA, INTERPOLATED, PROJECT, ROOT, SECRET, check_environment, filled, load

TEXT = (INFRA / "compose/compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = load("compose/compose.yaml")["services"]
OURS = {name: one for name, one in SERVICES.items() if "mudg" in one["image"]}
EXAMPLE = (INFRA / "compose/.env.example").read_text()
DASK = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}


@pytest.mark.parametrize("name", OURS)
def test_commands_are_those_of_our_image(name: str) -> None:
    command = OURS[name]["command"]
    if command[0] == "python":
        assert (ROOT / command[1]).is_file()
    else:
        assert command[0] in {script.name for script in entry_points(group="console_scripts")}


@pytest.mark.parametrize("name", [name for name in OURS if OURS[name]["command"][0] == "dask"])
def test_dask_has_these_options(name: str) -> None:
    """`dask cuda worker` is not installed here; it has the options of `dask worker` that we use."""
    words = [word for word in OURS[name]["command"][1:] if word != "cuda"]
    known = {
        option for parameter in DASK[words[0]].params for option in parameter.opts + parameter.secondary_opts
    }
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("name", ["prefect-server", "prefect-worker"])
def test_prefect_has_these_options(name: str) -> None:
    command = OURS[name]["command"]
    words = [sys.executable, "-m", "prefect", *command[1:3], "--help"]
    said = subprocess.run(
        words, capture_output=True, text=True, check=True, env={"COLUMNS": "200", "PATH": ""}
    ).stdout
    assert {word for word in command if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", said))


@pytest.mark.parametrize("name", SERVICES)
def test_environments_are_understood(name: str) -> None:
    environment = {key: filled(str(value)) for key, value in SERVICES[name].get("environment", {}).items()}
    assert all("${" in str(SERVICES[name]["environment"][key]) for key in environment if SECRET.search(key))
    check_environment(environment)


def test_versions_are_those_of_the_repository() -> None:
    assert {filled(one["image"]) for one in OURS.values()} == {f"mudg:{PROJECT['version']}-cpu"}
    [pinned] = PROJECT["optional-dependencies"]["stack"]
    assert SERVICES["s3"]["image"].partition(":")[2] == pinned.partition("==")[2]


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_bounded_and_closed(name: str) -> None:
    service = SERVICES[name]
    assert {"cpus", "memory"} == service["deploy"]["resources"]["limits"].keys()
    assert "no-new-privileges:true" in service["security_opt"]
    assert "healthcheck" in service or name in ("prepare", "dask-gpu-worker")
    assert all(filled(port).startswith("127.0.0.1:") for port in service.get("ports", []))
    if name in OURS:
        assert (
            service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["tmpfs"] == ["/tmp"]
        )


def test_nobody_can_reach_dask_from_outside() -> None:
    assert not any("ports" in SERVICES[name] for name in SERVICES if name.startswith("dask"))


def test_services_and_volumes_that_are_named_exist() -> None:
    volumes = load("compose/compose.yaml")["volumes"]
    for service in SERVICES.values():
        assert service.get("depends_on", {}).keys() <= SERVICES.keys()
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= volumes.keys()
    hosts = re.findall(r"(?:tcp|http)://([a-z0-9-]+):|@([a-z]+):", TEXT)
    assert {host for pair in hosts for host in pair if host} <= SERVICES.keys()


def test_every_variable_is_explained_and_no_secret_is_given() -> None:
    used = {found[0] for found in INTERPOLATED.findall(TEXT)}
    offered = dict(re.findall(r"^#?([A-Z][A-Z0-9_]*)=(.*)$", EXAMPLE, re.M))
    assert used | {"COMPOSE_PROFILES"} == offered.keys()
    required = {found[0] for found in INTERPOLATED.findall(TEXT) if found[1] == "?"}
    assert required == {name for name in offered if SECRET.search(name)}
    assert all(offered[name] == "" for name in required)
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_image_is_built_from_the_repository() -> None:
    for service in OURS.values():
        context = (INFRA / "compose" / service["build"]["context"]).resolve()
        assert context == ROOT.resolve() and (context / service["build"]["dockerfile"]).is_file()
        assert f"AS {filled(service['build']['target'])}\n" in Path(INFRA / "docker/Dockerfile").read_text()
