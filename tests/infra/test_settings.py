"""Settings files for clusters: ours accepts them, and a class of each kind would be asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mudg_core.settings import load_settings
from tasks.executors.clusters import KINDS, options
from tests.infra.files import INFRA, PROJECT, ROOT, load

FILES = sorted((INFRA / "settings").iterdir())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_for_the_cluster_of_its_name(file: Path) -> None:
    compute = load_settings([str(file)], environ={}).compute
    assert compute.cluster == file.stem
    assert options(compute).items() >= compute.cluster_options.items()


def test_there_is_one_for_every_kind_but_the_default_and_an_extra_of_its_name() -> None:
    assert {file.stem for file in FILES} == KINDS.keys() - {"local"}
    extras = PROJECT["optional-dependencies"]
    for name, extra in (("cuda", "gpu"), ("kubernetes", "kubernetes"), ("slurm", "slurm")):
        assert any(line.startswith(KINDS[name].package) for line in extras[extra])


def test_files_that_they_name_exist() -> None:
    spec = load("settings/kubernetes.yaml")["compute"]["cluster_options"]["custom_cluster_spec"]
    assert (ROOT / spec.removeprefix("/app/")).is_file()
    prologue = load("settings/slurm.yaml")["compute"]["cluster_options"]["job_script_prologue"]
    assert (ROOT / prologue[-1].partition("DASK_CONFIG=/shared/mudg/")[2]).is_file()


def test_readme_of_infra_names_files_that_exist() -> None:
    text = (INFRA / "README.md").read_text()
    named = set(re.findall(r"(?<![\w/])infra/[\w./-]*\w", text))
    assert named >= {f"infra/settings/{file.name}" for file in FILES}
    assert all((ROOT / name).exists() or name.endswith(".env") for name in named)
