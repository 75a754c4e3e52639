"""The compose file: its form is checked by `make check`; here, that what it says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from tests.infra.files import INFRA, INTERPOLATED, PROJECT, ROOT, SECRET, check_environment, filled, load

TEXT = (INFRA / "compose/compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = load("compose/compose.yaml")["services"]
OURS = {name: one for name, one in SERVICES.items() if "mudg" in one["image"]}
EXAMPLE = (INFRA / "compose/.env.example").read_text()
DASK = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}


def variables(text: str) -> dict[str, str]:
    """What a file of variables sets, or offers as a comment."""
    return dict(re.findall(r"^#?([A-Z][A-Z0-9_]*)=(.*)$", text, re.M))


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
    used = set(re.findall(r"\$\{(\w+)", TEXT))
    offered = variables(EXAMPLE)
    assert used | {"COMPOSE_PROFILES"} == offered.keys()
    required = {found[0] for found in INTERPOLATED.findall(TEXT) if found[1] == "?"}
    assert required == {name for name in offered if SECRET.search(name)}
    assert all(offered[name] == "" for name in required)
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {".env", "infra/compose/mudg.env"} <= set(ignored)


def test_the_ui_is_found_from_wherever_browsers_are() -> None:
    """A browser asks the API that the UI names, and people follow links to runs that containers make."""
    for given, expected in (({}, "http://127.0.0.1:4200"), ({"UI_URL": "https://ui.org"}, "https://ui.org")):
        services = yaml.safe_load(filled(TEXT, given))["services"]
        server = services["prefect-server"]["environment"]
        assert server["PREFECT_UI_API_URL"] == f"{expected}/api"
        assert server["PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS"] == expected  # and no page of others
        for name in ("prepare", "prefect-worker", "dask-worker", "dask-gpu-worker"):
            assert services[name]["environment"]["PREFECT_UI_URL"] == expected


def test_settings_reach_whatever_runs_our_code() -> None:
    with_store = {name for name, one in SERVICES.items() if "MUDG_STORAGE__URL" in one.get("environment", {})}
    assert with_store == {"prepare", "prefect-worker", "dask-worker", "dask-gpu-worker"}
    for name in with_store:
        assert SERVICES[name]["env_file"] == [{"path": "mudg.env", "required": False}]


def test_settings_that_the_example_offers_exist_and_are_not_overruled() -> None:
    offered = variables((INFRA / "compose/mudg.env.example").read_text())
    check_environment(offered)
    assert offered.keys().isdisjoint(SERVICES["prefect-worker"]["environment"])


def test_downloaded_weights_and_runs_outlive_their_container() -> None:
    """HF_HOME is in the image; a run whose container has gone is known by its missing heartbeat."""
    home = re.search(r"HF_HOME=(/\w+)/", (INFRA / "docker/Dockerfile").read_text())
    for name in ("prefect-worker", "dask-worker", "dask-gpu-worker"):
        assert home and f"cache:{home[1]}" in SERVICES[name]["volumes"]
    assert SERVICES["prefect-worker"]["environment"]["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "30"


def test_the_image_is_built_from_the_repository() -> None:
    for service in OURS.values():
        context = (INFRA / "compose" / service["build"]["context"]).resolve()
        assert context == ROOT.resolve() and (context / service["build"]["dockerfile"]).is_file()
        assert f"AS {filled(service['build']['target'])}\n" in Path(INFRA / "docker/Dockerfile").read_text()
