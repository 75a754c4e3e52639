"""The Dockerfile: hadolint reads it in `make check`; here, that it fits the rest of the repository."""

from __future__ import annotations

import re

import dask
import yaml

from tasks.executors.clusters import DASK
from tests.infra.files import INFRA, LOCK, PROJECT, ROOT, SECRET, load

DOCKERFILE = (INFRA / "docker/Dockerfile").read_text()
LINES = re.sub(r"\\\n\s*", " ", DOCKERFILE).splitlines()
GPU = dict(line.split("==") for line in (INFRA / "docker/requirements-gpu.lock").read_text().splitlines())


def copied() -> set[str]:
    sources = [line.split()[1:-1] for line in LINES if line.startswith("COPY ") and "--from" not in line]
    return {source for many in sources for source in many}


def test_what_is_copied_exists_and_nothing_else_reaches_the_engine() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert lines[1] == "*"
    for source in copied():
        assert (ROOT / source).exists(), source
        assert any(source == one or source.startswith(f"{one}/") for one in allowed), source
    assert all(any(source.startswith(one) for source in copied()) for one in allowed)


def test_every_package_of_ours_is_in_the_images() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    for target in ("cpu", "gpu"):
        stage = DOCKERFILE.partition(f"AS build-{target}\n")[2].partition("\nFROM")[0]
        assert set(re.findall(r"^COPY (\w+) \1$", stage, re.M)) == packages


def test_versions_are_those_of_the_repository() -> None:
    minor = PROJECT["requires-python"].partition(",")[0].removeprefix(">=")
    assert all(image.startswith(f"{minor}.") for image in re.findall(r"FROM python:(\S+)", DOCKERFILE))
    [uv] = re.findall(r"uv==([\d.]+)", (ROOT / "Makefile").read_text())
    assert f"uv=={uv}" in DOCKERFILE
    assert f"mudg:{PROJECT['version']}-cpu" in DOCKERFILE and f"mudg:{PROJECT['version']}-gpu" in DOCKERFILE
    assert yaml.safe_load((ROOT / "prefect.yaml").read_text())["prefect-version"] == LOCK["prefect"]


def test_images_run_as_nobody_in_particular_and_hold_no_secret() -> None:
    assert "\nUSER 1001\n" in DOCKERFILE
    base = DOCKERFILE.partition("AS base\n")[2]
    assert "USER root" not in base and base.count("ENTRYPOINT") == 1
    assert not any(SECRET.search(line) for line in LINES if line.startswith(("ENV", "ARG")))


def test_helm_charts_find_what_they_start() -> None:
    assert "COPY infra/docker/entrypoint.sh /opt/prefect/entrypoint.sh" in DOCKERFILE
    assert (INFRA / "docker/entrypoint.sh").stat().st_mode & 0o111 == 0o111
    assert "install --yes --no-install-recommends tini" in DOCKERFILE


def test_workers_behave_as_those_that_a_run_starts() -> None:
    own = yaml.safe_load((INFRA / "docker/dask.yaml").read_text())
    with dask.config.set(DASK):
        for path, value in DASK.items():
            assert dask.config.get(path, config=own) == value, path
    assert sum(
        1 for line in (INFRA / "docker/dask.yaml").read_text().splitlines() if re.search(r": \S", line)
    ) - 1 == len(DASK)


def test_both_images_can_start_clusters_of_kubernetes() -> None:
    """The package, in a version that does not move, and the spec where the settings look for it."""
    [wanted] = PROJECT["optional-dependencies"]["kubernetes"]
    assert wanted.partition(">=")[0] in GPU
    [install] = [line for line in LINES if "-r pyproject.toml" in line]
    assert "--extra cpu --extra kubernetes" in install
    assert "--constraints requirements.lock" in install and "requirements-gpu.lock" in install
    assert "--extra gpu --extra kubernetes" in (ROOT / "Makefile").read_text()
    in_image = {f"/app/{source}" for source in copied() if source.startswith("infra/")}
    options = load("settings/kubernetes.yaml")["compute"]["cluster_options"]
    assert {options["custom_cluster_spec"], "/app/infra/settings/kubernetes.yaml"} <= in_image


def test_the_gpu_lock_differs_only_where_a_gpu_needs_it() -> None:
    assert all(re.fullmatch(r"[\w.\-]+", name + version) for name, version in GPU.items())
    differ = {name for name in GPU.keys() & LOCK.keys() if GPU[name] != LOCK[name]}
    assert differ == {"dask", "distributed"}
    assert "faiss-gpu-cu12" in GPU and "faiss-cpu" not in GPU and "dask-cuda" in GPU
    base = {re.split(r"[\[<>=;]", line)[0].replace("_", "-").lower() for line in PROJECT["dependencies"]}
    assert base <= GPU.keys()
