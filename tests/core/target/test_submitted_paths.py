"""A spec that was submitted names no path of the worker, but in folders that the operator allows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mudg_core.encode.weights import locate, path_in
from mudg_core.errors import InputError, ModelError
from mudg_core.settings import AugmentSettings, Settings
from mudg_core.target.paths import PLACES, named_paths
from mudg_core.target.prompts import wording
from mudg_core.target.spec import Target
from mudg_core.target.submitted_spec import (
    SUBMITTABLE,
    check_submitted,
    load_for_submission,
    parse_submitted,
    with_phrase_files,
    without_phrase_files,
)

# Settings that take any text and name no path. A new one belongs here or in PLACES.
TEXTS = {("train", "prompt_tokens")}
NAMED = {
    "descriptors": "settings: {{augment: {{descriptors: '{0}'}}}}",
    "prompts": "settings: {{augment: {{method: cupl, prompts: '{0}'}}}}",
    "index model": "settings: {{encode: {{model: 'local-dir:{0}'}}}}",
    "student": "settings: {{train: {{model: 'local-dir:{0}'}}}}",
    "weights": "settings: {{train: {{model: 'ViT-B-32/{0}.safetensors'}}}}",
    "other weights": "settings: {{train: {{model: 'ViT-B-32/{0}'}}}}",
    "evaluation": "evaluation: '{0}'",
    "layout": "evaluation: 'zhou:{0}'",
    "source": "settings: {{evaluate: {{source: 'folder:{0}'}}}}",
}


def read(line: str, *allowed: Path) -> Target:
    text = f"name: zoo\nclasses: [cat, dog]\n{line}\n"
    return parse_submitted(text.encode(), "inbox/a.yaml", [str(folder) for folder in allowed])


@pytest.mark.parametrize("line", NAMED.values(), ids=NAMED)
def test_f81_no_path_of_the_worker(line: str, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "secret").write_text("key")
    for link in ("link", "link.safetensors"):
        (tmp_path / "open" / link).symlink_to(tmp_path / "secret")
    (tmp_path / "open/round").symlink_to(tmp_path / "open/round")
    inside, outside = tmp_path / "open", tmp_path / "secret"
    with pytest.raises(InputError, match="names a path of the worker"):
        read(line.format(outside))
    for path in (outside, f"{inside}/../secret", f"{inside}/link", f"{inside}x", f"{inside}/round/x", "/"):
        with pytest.raises(InputError, match="names a path of the worker"):
            read(line.format(path), inside)
    assert read(line.format(f"{inside}/file"), inside).name == "zoo"


@pytest.mark.parametrize("line", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize(
    "path", ["s3://bucket/key", "file:///etc/hostname", "~/x", "./x", "..", "hf-hub:a/b"]
)
def test_f81_addresses_and_relative_paths_are_no_way_around(line: str, path: str) -> None:
    """Even where everything is allowed: S3 would be read with the worker's keys, if anything read it."""
    with pytest.raises(InputError):
        read(line.format(path), Path("/"))


def test_f81_the_answer_is_the_same_whether_a_file_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    said = []
    for name in "ab":
        with pytest.raises(InputError) as refusal:
            read(f"evaluation: {tmp_path}/{name}")
        said.append(str(refusal.value).replace(f"{tmp_path}/{name}", ""))
    assert said[0] == said[1]


@pytest.mark.parametrize("name", ["demo:/etc", "demo:../../x", "demo:index/../../x", "demo:"])
def test_f81_demo_models_are_no_paths(name: str) -> None:
    assert path_in(name) is not None
    with pytest.raises(ModelError):
        locate(name)


@pytest.mark.parametrize(
    "name", ["demo:index", "demo:student", "ViT-B-16/openai", "ViT-B-16-SigLIP-i18n-256/webli"]
)
def test_models_that_are_no_path_need_no_folder(name: str) -> None:
    assert read(f"settings: {{train: {{model: '{name}'}}}}").settings["train"]["model"] == name


def test_f81_every_setting_that_takes_any_text_is_looked_at() -> None:
    """Fails when a setting is added that may hold a path and that the gate does not know."""
    free = {(area, name) for area, name, field in fields() if takes_any_text(field)}
    assert free - TEXTS == {place for place in PLACES if place[0] in SUBMITTABLE}


def test_f81_every_area_but_those_of_a_target_is_refused() -> None:
    for area in Settings.model_fields.keys() - set(SUBMITTABLE):
        target = Target.model_validate({"name": "zoo", "classes": ["cat", "dog"], "settings": {area: {}}})
        with pytest.raises(InputError, match=f"settings.{area} cannot be changed"):
            check_submitted(target, ["/"], "here")
    assert {"storage", "compute", "gc", "corpus", "download", "target"}.isdisjoint(SUBMITTABLE)


@pytest.mark.parametrize(
    "names",
    [
        ("cat", "CAT"),
        ("caf\u00e9", "cafe\u0301"),
        ("cat", "d\u202eog"),
        ("cat", "\x1b[2J"),
        ("cat", "x" * 201),
    ],
)
def test_f90_names_of_a_target_that_no_spec_was_read_for_are_looked_at(names: tuple[str, str]) -> None:
    """Whoever can write to the store need not use our reader."""
    target = Target.model_validate({"name": "zoo", "classes": names})
    with pytest.raises(InputError, match=r"class name|there already"):
        check_submitted(target, ["/"], "here")


def test_f81_what_is_handed_in_is_read_where_it_is_typed(tmp_path: Path) -> None:
    """The worker needs neither the path nor leave to read it."""
    phrases, spec = tmp_path / "d.json", tmp_path / "zoo.yaml"
    phrases.write_text(json.dumps({"cat": ["two ears"], "dog": ["a tail"]}))
    spec.write_text(
        "name: zoo\nclasses: [cat, dog]\n"
        f"settings: {{augment: {{method: per-class, descriptors: '{phrases}'}}}}\n"
    )
    target, files = load_for_submission(spec)
    phrases.write_text("the worker's own")
    with pytest.raises(InputError, match="names a path of the worker"):
        check_submitted(target, (), "here")
    check_submitted(without_phrase_files(target, files), (), "here")
    with with_phrase_files(target, files) as ready:
        settings = AugmentSettings.model_validate(ready.settings["augment"])
        assert wording(settings, ready).by_class == [["two ears"], ["a tail"]]
    assert not Path(str(settings.descriptors)).exists()


def test_f81_only_files_that_came_along_are_taken_out_of_the_look(tmp_path: Path) -> None:
    target = read(
        f"settings: {{augment: {{descriptors: '{tmp_path}/d', prompts: '{tmp_path}/p'}}}}", tmp_path
    )
    with pytest.raises(InputError, match=r"augment\.prompts"):
        check_submitted(without_phrase_files(target, {"descriptors": "x"}), (), "here")


def fields() -> Iterator[tuple[str, str, FieldInfo]]:
    for area in SUBMITTABLE:
        model: Any = Settings.model_fields[area].annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            for name, field in model.model_fields.items():
                yield area, name, field


def takes_any_text(field: FieldInfo) -> bool:
    """Anything that is not a number, a switch, a choice, or text of a given form."""
    if any(getattr(rule, "pattern", None) for rule in field.metadata):
        return False
    return any(kind in (str, Any, dict, object, Path) for kind in _kinds(field.annotation))


def _kinds(annotation: Any) -> Iterator[Any]:
    if not get_args(annotation):
        yield annotation
    elif not all(isinstance(choice, str) for choice in get_args(annotation)):
        for inner in get_args(annotation):
            yield from _kinds(inner)


def test_f81_a_path_of_bytes_is_one() -> None:
    settings: Any = {"augment": {"descriptors": b"/etc/passwd"}}
    assert list(named_paths(settings)) == [("augment.descriptors", "/etc/passwd")]
