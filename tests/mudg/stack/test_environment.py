"""Settings and addresses reach other processes through their environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mudg.ops.stack.running import (
    OWN_SETTINGS,
    Stack,
    as_script,
    inherited,
    scalar,
    settings_environment,
    settings_for_stack,
)
from mudg.ops.stack.state import State
from mudg_core.settings import Settings, load_settings

TREES = [
    {},
    {"profile": "paper", "compute": {"workers": 3, "memory_limit": "1GiB", "device": "cuda:1"}},
    {"corpus": {"rows": 1200, "min_cosine": 1e-05}, "augment": {"descriptors": "a: b # 'c'\n\"d\" é"}},
    {"compute": {"cluster_options": {"Name": [1, 1e-7, None, "no"], "x": {"y": True}}}},
    {"download": {"allow_networks": ["10.0.0.0/8"], "ports": [80, 8080]}, "gc": {"model_days": None}},
    {"profile": "author-code", "dataset": {"label": "rank"}, "gate": {"alphas": [0.5, 1.0]}},
]


@pytest.mark.parametrize("tree", TREES)
def test_settings_survive_the_way_through_an_environment(tree: dict[str, object]) -> None:
    settings = load_settings(overrides=tree, environ={})
    given = settings_environment(settings)
    assert load_settings(environ=given) == settings
    assert all(name.startswith("MUDG_") and name.isupper() for name in given)


def test_only_what_was_given_is_handed_on() -> None:
    assert settings_environment(Settings()) == {}
    assert settings_environment(load_settings(environ={"MUDG_CORPUS__ROWS": "500"})) == {
        "MUDG_CORPUS__ROWS": "500"
    }
    assert scalar("no") == "'no'" and scalar(1e-5) == "1.0e-05" and scalar(None) == "null"


def test_a_stack_answers_places_itself_and_paths_hold_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = settings_for_stack(
        load_settings(
            overrides={
                "storage": {"url": "s3://other", "cache_dir": "x", "retries": 1},
                "compute": {"dask_address": "tcp://elsewhere:1"},
                "encode": {"model": "local-dir:models/clip"},
                "augment": {"descriptors": "words.txt"},
                "evaluate": {"source": "zhou:images"},
                "download": {"command": "bin/img2dataset"},
            },
            environ={},
        )
    )
    assert given == {
        "MUDG_STORAGE__RETRIES": "1",
        "MUDG_ENCODE__MODEL": f"local-dir:{tmp_path}/models/clip",
        "MUDG_AUGMENT__DESCRIPTORS": f"{tmp_path}/words.txt",
        "MUDG_EVALUATE__SOURCE": f"zhou:{tmp_path}/images",
        "MUDG_DOWNLOAD__COMMAND": f"{tmp_path}/bin/img2dataset",
    }


def test_a_shell_that_has_sourced_the_script_uses_the_stack(tmp_path: Path) -> None:
    settings = {"MUDG_AUGMENT__DESCRIPTORS": "it's $HOME `x`"}
    names = ("prefect", "s3", "s3-master", "s3-volume", "s3-filer", "dask", "dask-http")
    ports = {name: 11_000 + i for i, name in enumerate(names)}
    stack = Stack(tmp_path, State(id="x", ports=ports, settings=settings, workers=3))
    environment = stack.environment()
    assert set(OWN_SETTINGS) <= environment.keys()
    file = stack.write_environment()
    assert file.stat().st_mode & 0o777 == 0o600
    done = subprocess.run(
        ["bash", "-c", f"set -eu; source {file}; env -0"], env={}, capture_output=True, check=True, timeout=30
    )
    told = dict(line.split("=", 1) for line in done.stdout.decode().split("\0") if line)
    assert told | environment == told
    loaded = load_settings(environ=environment)
    assert loaded.storage.url == "s3://mudg/store" and loaded.compute.workers == 3
    assert loaded.storage.browse_url is None
    assert loaded.augment.descriptors == "it's $HOME `x`"


def test_parts_do_not_inherit_where_the_users_shell_points(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ("PREFECT_API_URL", "PREFECT_SERVER_API_AUTH_STRING", "AWS_SESSION_TOKEN", "MUDG_STORAGE__URL")
    for name in (*theirs, "HTTPS_PROXY_OF_MINE", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    found = inherited()
    assert not found.keys() & set(theirs)
    assert {"HTTPS_PROXY_OF_MINE", "OMP_NUM_THREADS", "PREFECT_SERVER_ANALYTICS_ENABLED"} <= found.keys()


def test_scripts_hold_one_variable_a_line() -> None:
    assert as_script({"A": "b c"}).splitlines()[1:] == ["export A='b c'"]
