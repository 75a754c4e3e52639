"""Settings: who wins, who is refused, and that the refusal names its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from mudg_core.errors import SettingsError
from mudg_core.settings import MAX_FILE_BYTES, PROFILES, ComputeSettings, Settings, load_settings


def write(path: Path, tree: Any) -> Path:
    path.write_text(yaml.safe_dump(tree))
    return path


def test_the_papers_profile() -> None:
    settings = load_settings(environ={"MUDG_PROFILE": "paper"})
    assert (settings.profile, settings.dataset.label, settings.dataset.filter_reference) == (
        "paper",
        "rank",
        "query",
    )
    assert (settings.train.augmentations, settings.train.diversity, settings.train.ema) == (
        "mean",
        0.2,
        0.995,
    )
    assert (settings.index.variant, settings.index.iterations, settings.augment.label_clusters) == (
        "paired",
        10,
        16,
    )


def test_the_default_goes_beyond_the_paper_in_index_refilling_and_near_copies_alone() -> None:
    settings = load_settings(environ={})
    assert settings == Settings()
    assert (settings.profile, settings.index.variant, settings.index.iterations) == ("mudg", "auto", 20)
    paper = load_settings(environ={"MUDG_PROFILE": "paper"})
    assert (settings.dataset.refill, paper.dataset.refill) == ("label", "cluster")
    assert (settings.augment.near_copy, paper.augment.near_copy) == (0.9, 1)
    ours = {"dataset": {"refill": "label"}, "augment": {"near_copy": 0.9}}
    same = paper.replace(ours).model_dump(exclude={"profile", "index"})
    assert settings.model_dump(exclude={"profile", "index"}) == same


def test_author_code_profile() -> None:
    settings = load_settings(environ={"MUDG_PROFILE": "author-code"})
    assert settings.dataset.label == "borda"
    assert settings.dataset.filter_reference == "label"
    assert settings.dataset.refill == "cluster"
    assert settings.train.augmentations == "in-turn"
    assert settings.train.augmentation_limit == 8
    assert settings.train.teacher_temperature == 10.0
    assert settings.train.min_crop == 0.08
    others = settings.model_dump(exclude={"profile", "dataset", "train"})
    paper = load_settings(environ={"MUDG_PROFILE": "paper"})
    assert others == paper.model_dump(exclude={"profile", "dataset", "train"})


def test_exact_ranks_are_for_labels_by_rank() -> None:
    assert load_settings(environ={"MUDG_DATASET__RANKS": "exact"}).dataset.ranks == "exact"
    with pytest.raises(SettingsError, match="ranks: exact goes with label: rank and not with borda"):
        load_settings(environ={"MUDG_DATASET__RANKS": "exact", "MUDG_PROFILE": "author-code"})


def test_a_profile_is_for_the_whole_run() -> None:
    """Replacing it would change its name and none of the values that it stands for."""
    with pytest.raises(SettingsError, match="profile"):
        load_settings(environ={}).replace({"profile": "author-code"})
    assert load_settings(environ={}).replace({"profile": "mudg"}) == Settings()


def test_each_source_wins_over_those_before(tmp_path: Path) -> None:
    """One setting for each level of the ladder; the highest that speaks is heard."""
    first = write(
        tmp_path / "1.yaml",
        {
            "profile": "author-code",
            "train": {"augmentation_limit": 2, "batch_size": 2, "blocks": 2, "ema": 0.2},
        },
    )
    second = write(tmp_path / "2.yaml", {"train": {"batch_size": 3, "blocks": 3, "ema": 0.3}})
    environ = {"MUDG_TRAIN__BLOCKS": "4", "MUDG_TRAIN__EMA": "0.4", "TRAIN__EMA": "0.9", "PATH": "/bin"}
    train = load_settings([first, second], {"train": {"ema": 0.5}}, environ).train
    assert train.teacher_temperature == 10.0  # profile
    assert train.augmentation_limit == 2  # first file over profile
    assert train.batch_size == 3  # second file over first
    assert train.blocks == 4  # environment over files
    assert train.ema == 0.5  # command line over environment
    assert train.momentum == 0.9  # nobody spoke


def test_highest_profile_counts(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", {"profile": "author-code"})
    assert load_settings([file], environ={}).dataset.label == "borda"
    assert load_settings([file], {"profile": "paper"}, {}).dataset.label == "rank"


def test_profiles_are_not_changed_by_loading(tmp_path: Path) -> None:
    before = repr(PROFILES)
    load_settings([], {"profile": "author-code", "train": {"augmentation_limit": 3}}, {})
    assert repr(PROFILES) == before


def test_f59_unknown_keys_name_their_source(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml", {"index": {"cels": 5}})
    with pytest.raises(SettingsError, match=r"index\.cels: no such setting") as caught:
        load_settings([file], environ={})
    assert caught.value.where == str(file)
    with pytest.raises(SettingsError, match=r"index\.cels: no such setting") as caught:
        load_settings(environ={"MUDG_INDEX__CELS": "5"})
    assert caught.value.where == "environment"
    with pytest.raises(SettingsError, match="indx: no such setting") as caught:
        load_settings(overrides={"indx": {"cells": 5}}, environ={})
    assert caught.value.where == "command line"
    assert "mudg settings" in caught.value.fix


@pytest.mark.parametrize(
    ("tree", "meant"),
    [
        ({"dataset": {"selct": "x"}}, "dataset.select"),
        ({"datset": {"select": "x"}}, "dataset.select"),
        ({"trian": {"ema": 0.9}}, "train.ema"),
        ({"selct": "x"}, "dataset.select"),
        ({"train": {"cells": 3}}, "index.cells"),
        ({"profil": "paper"}, "profile"),
        ({"index": {"nothing": 3}}, ""),
        ({"wholly": {"other": 3}}, ""),
    ],
)
def test_f59_an_unknown_key_names_the_setting_that_was_probably_meant(tree: Any, meant: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(overrides=tree, environ={})
    assert caught.value.what.endswith(f"did you mean {meant}?" if meant else "no such setting")


def test_f59_a_later_source_does_not_hide_a_mistake(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml", {"index": {"cells": 0}})
    with pytest.raises(SettingsError) as caught:
        load_settings([file], {"index": {"cells": 5}}, {})
    assert caught.value.where == str(file)


@pytest.mark.parametrize(
    ("area", "key", "value"),
    [
        ("index", "cells", 0),
        ("index", "cells", "many"),
        ("index", "variant", "magic"),
        ("index", "code", "sq5"),
        ("index", "code", "pq0"),
        ("index", "code", "flat\n"),
        ("index", "code", "pq8; rm"),
        ("index", "pairs", "some"),
        ("index", "mass", 0),
        ("index", "retrain_growth", 1.0),
        ("index", "seed", -1),
        ("index", "seed", 2**31),
        ("train", "ema", 1.0),
        ("train", "diversity", 1.01),
        ("train", "learning_rate", 0),
        ("train", "learning_rate", float("nan")),
        ("train", "learning_rate", float("inf")),
        ("train", "min_crop", 0),
        ("dataset", "min_cosine", -1.5),
        ("dataset", "neighbors", 1.5),
        ("compute", "device", "tpu"),
        ("compute", "device", "cuda:0; rm"),
        ("corpus", "image_size", 32),
    ],
)
def test_f59_out_of_range(area: str, key: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=rf"{area}\.{key}") as caught:
        load_settings(overrides={area: {key: value}}, environ={})
    assert str(value) in caught.value.what


@pytest.mark.parametrize("code", ["flat", "fp16", "sq8", "sq6", "sq4", "pq64"])
def test_fine_codes_are_names_with_a_pattern(code: str) -> None:
    assert load_settings(overrides={"index": {"code": code}}, environ={}).index.code == code


@pytest.mark.parametrize("profile", ["papr", ["paper"], None, {"a": 1}])
def test_f59_unknown_profile_names_its_source(profile: Any, tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml", {"profile": profile})
    with pytest.raises(SettingsError, match="unknown profile") as caught:
        load_settings([file], environ={})
    assert caught.value.where == str(file)
    assert "author-code" in caught.value.fix


def test_every_complaint_is_listed() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(overrides={"index": {"cells": 0, "x": 1}, "train": {"ema": 2}}, environ={})
    assert all(name in caught.value.what for name in ("index.cells", "index.x", "train.ema"))


def test_frozen() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.profile = "author-code"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.index.cells = 3  # type: ignore[misc]


def test_replace() -> None:
    old = Settings().replace({"index": {"probes": 3}})
    new = old.replace({"index": {"cells": 7}, "train": {"ema": 0.5}})
    assert (new.index.cells, new.train.ema, new.index.probes) == (7, 0.5, 3)
    assert (old.index.cells, old.train.ema) == (128, 0.995)
    with pytest.raises(SettingsError, match=r"index\.cells") as caught:
        old.replace({"index": {"cells": -7}}, where="target.yaml")
    assert caught.value.where == "target.yaml"


def test_environment_values_are_yaml_scalars() -> None:
    settings = load_settings(
        environ={
            "MUDG_INDEX__CELLS": "64",
            "MUDG_TRAIN__LEARNING_RATE": "1e-3",
            "MUDG_STORAGE__ENDPOINT_URL": "http://127.0.0.1:8333",
            "MUDG_COMPUTE__DASK_ADDRESS": "",
            "MUDG_STORAGE__URL": "'s3://bucket'",
            "XMUDG_INDEX__CELLS": "1",
        }
    )
    assert settings.index.cells == 64
    assert settings.train.learning_rate == 1e-3
    assert settings.storage.endpoint_url == "http://127.0.0.1:8333"
    assert settings.storage.url == "s3://bucket"
    assert settings.compute.dask_address is None


@pytest.mark.parametrize(
    "environ",
    [
        {"MUDG_INDEX__CELLS": "[1,"},
        {"MUDG_INDEX__CELLS": "a: b: c"},
        {"MUDG_INDEX": "5", "MUDG_INDEX__CELLS": "5", "MUDG_INDEX__CELLS__DEEP": "1"},
        {"MUDG_INDEX__CELLS__DEEP": "1", "MUDG_INDEX__CELLS": "5", "MUDG_INDEX": "5"},
        {"MUDG_": "5"},
        {"MUDG___CELLS": "5"},
    ],
)
def test_nonsense_in_the_environment_is_a_settings_error(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ=environ)
    assert caught.value.where == "environment"


def test_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUDG_INDEX__CELLS", "65")
    assert load_settings().index.cells == 65


def test_file_with_bom_and_crlf_is_read_as_meant(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_bytes(b"\xef\xbb\xbfindex:\r\n  cells: 9\r\n")
    assert load_settings([file], environ={}).index.cells == 9


def test_empty_file_is_no_settings(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("# nothing yet\n")
    assert load_settings([file], environ={}) == Settings()


@pytest.mark.parametrize(
    "content",
    [
        b"#" * (MAX_FILE_BYTES + 1),
        b"index: {cells: \xff}",
        b"- index",
        b"just text",
        b"index: [",
        b"[" * 50_000,
        b"!!python/object/apply:os.system ['true']",
        b"1: 2",
        b"index: 5",
    ],
    ids=["oversized", "not UTF-8", "list", "text", "torn", "deep", "object", "number as key", "not an area"],
)
def test_unusable_file_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_settings([file], environ={})
    assert caught.value.where == str(file)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings([tmp_path / "none.yaml"], environ={})


@pytest.mark.parametrize(
    ("given", "workers", "device", "cores", "threads"),
    [
        (None, 2, "cpu", 2, 0),  # every core computes
        (None, 2, "cpu", 8, 3),
        (None, 4, "cpu", 2, 0),
        (None, 1, "cuda", 8, 8),
        (None, 4, "cuda:1", 8, 2),
        (5, 2, "cpu", 2, 5),
        (0, 1, "cuda", 8, 0),
    ],
)
def test_threads_that_decode(given: int | None, workers: int, device: str, cores: int, threads: int) -> None:
    compute = ComputeSettings(decode_threads=given, workers=workers, device=device)
    assert compute.decoders(cores) == threads


def test_a_file_for_every_process_lies_between_a_commands_defaults_and_the_users_file(tmp_path: Path) -> None:
    def file(name: str, **index: int) -> Path:
        return write(tmp_path / name, {"index": index})

    environ = {
        "MUDG_SETTINGS_FILE": str(file("machine.yaml", cells=2, iterations=2, probes=2)),
        "MUDG_INDEX__PROBES": "4",
    }
    defaults, own = file("demo.yaml", cells=1, seed=1), file("own.yaml", iterations=3, probes=3)
    index = load_settings([own], environ=environ, defaults=defaults).index
    assert (index.seed, index.cells, index.iterations, index.probes) == (1, 2, 3, 4)
    with pytest.raises(SettingsError, match=r"absent\.yaml"):
        load_settings(environ={"MUDG_SETTINGS_FILE": str(tmp_path / "absent.yaml")})
