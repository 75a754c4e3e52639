"""The one file that users write by hand: every mistake in it gets a line number, every name stays a name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from mudg_core.errors import InputError
from mudg_core.settings import Settings, load_settings
from mudg_core.target.class_names import MAX_SYNONYMS
from mudg_core.target.spec import (
    MAX_BYTES,
    MAX_CLASSES,
    MAX_NAME,
    SHORTHANDS,
    Target,
    load_target,
    parse_target,
    slug,
)

GOOD = b"name: pets\nclasses:\n  - cat\n  - dog\n"


def complaint(data: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_target(data, where="pets.yaml")
    return caught.value


def test_a_good_spec() -> None:
    target = parse_target(
        b"name: pets\ndescription: my pets\nclasses: [cat, dog]\ntemplate: 'a sketch of a {}.'\n"
        b"evaluation: demo:pets\nseeds: [1, 2]\nsettings: {train: {iterations: 5}}\n"
    )
    assert target == Target(
        name="pets",
        description="my pets",
        classes=("cat", "dog"),
        template="a sketch of a {}.",
        evaluation="demo:pets",
        seeds=(1, 2),
        settings={"train": {"iterations": 5}},
    )
    assert parse_target(GOOD).seeds == (0,)
    assert parse_target(GOOD).template == "a photo of a {}."


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"", 1, "empty"),
        (b"# only a comment\n", 1, "empty"),
        (b"- cat\n- dog\n", 1, "not a mapping"),
        (b"name: pets\n", 1, "classes"),
        (b"classes: [cat, dog]\n", 1, "name"),
        (b"name: pets\nclasses: []\n", 2, "at least 2"),
        (b"name: pets\nclasses: [cat]\n", 2, "at least 2"),
        (b"name: pets\nclasses: cat\n", 2, "classes"),
        (b"name: pets\nclasses:\n  - cat\n  - dog\n  - cat\n", 5, "already, on line 3"),
        (b"name: pets\nclasses:\n  - cat\n  - dog\n  - CAT\n", 5, "already, on line 3"),
        (b"name: pets\nclasses:\n  - red fox\n  - dog\n  - ' Red  fox '\n", 5, "already, on line 3"),
        (b"name: pets\nclasses:\n  - cat\n  - ''\n  - dog\n", 4, "empty"),
        (b"name: pets\nclasses:\n  - cat\n  - '  '\n  - dog\n", 4, "empty"),
        (b"name: pets\nclasses:\n  - cat\n  -\n  - dog\n", 4, "empty"),
        (b"name: pets\nclasses:\n  - cat\n  - {dog: 1}\n", 4, "mapping or a list"),
        (b"name: pets\nclasses:\n  - cat\n  - d\0og\n", 4, "NUL"),
        (b'name: pets\nclasses:\n  - cat\n  - "d\\0og"\n', 4, "cannot be shown"),
        (b"name: pets\nclasses:\n  - cat\n  - d\x1bog\n", 4, "0x1b"),
        (b"name: pets\nclasses:\n  - cat\n  - d\xc2\x80og\n", 4, "not YAML"),
        (b"name: pets\nclasses:\n  - cat\n  - d\xffog\n", 4, "0xff is not UTF-8"),
        (b"name: pets\r\nclasses:\r\n  - cat\r\n  - cat\r\n", 4, "already"),
        (b"name: pets\nclasses: [cat, dog]\ncolour: red\n", 3, "colour: no such field"),
        (b"name: pets\nclasses: [cat, dog]\nname: zoo\n", 3, "twice"),
        (b"name: Pets/..\nclasses: [cat, dog]\n", 1, "name"),
        (b"name: 1999\nclasses: [cat, dog]\n", 1, "name"),
        (b"name: pets\nclasses: [cat, dog]\ntemplate: a photo.\n", 3, "exactly one {}"),
        (b"name: pets\nclasses: [cat, dog]\ntemplate: '{} and {}'\n", 3, "exactly one {}"),
        (b"name: pets\nclasses: [cat, dog]\ntemplate: '{} {0}'\n", 3, "exactly one {}"),
        (b"name: pets\nclasses: [cat, dog]\nseeds: [1, -2]\n", 3, "seeds.1"),
        (b"name: pets\nclasses: [cat, dog]\nseeds: []\n", 3, "seeds"),
        (b"name: pets\nclasses: [cat, dog]\nseeds: [1, 1]\n", 3, "repeated"),
        (b"name: pets\nclasses: [cat, dog\nseeds: [1]\n", 3, "not YAML"),
        (b"name: pets\n\tclasses: [cat, dog]\n", 2, "not YAML"),
        (b"name: pets\nclasses: [cat, dog]\n[a]: b\n", 3, "not text"),
        (b"name: pets\nclasses: [cat, dog]\ndescription: !!python/name:os.system ''\n", 3, "not a value"),
        (b"name: pets\nclasses: [cat, dog]\ndescription: !!int x\n", 3, "not a value"),
        (b"name: pets\nclasses: [cat, dog]\nsettings: &a [*a]\n", 3, "alias"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms: [kitty]\n", 3, "synonyms"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms: {cat: kitty}\n", 3, "a list of names"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms:\n  cat: [kitty]\n  hen:\n  - x\n", 5, "is no class"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms:\n  cat: [a]\n  CAT: [b]\n", 5, "there already"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms:\n  cat:\n  - kitty\n  - Dog\n", 6, "on line 2"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms:\n  cat: [x]\n  dog:\n  - ' X'\n", 6, "on line 4"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms:\n  cat:\n  - ''\n", 5, "empty"),
        (b"name: pets\nclasses: [cat, dog]\nsynonyms:\n  cat:\n  - [x]\n", 5, "mapping or a list"),
        (b"name: pets\nclasses: [cat, dog]\nprofile: mine\n", 3, "profile"),
        (b"name: pets\nclasses: [cat, dog]\nneighbors: 0\n", 3, "dataset.neighbors"),
        (b"name: pets\nclasses: [cat, dog]\niterations: many\n", 3, "iterations"),
        (
            b"name: pets\nclasses: [cat, dog]\nper_class: 3\nsettings:\n  dataset:\n    per_class: 4\n",
            6,
            "`per_class` and settings.dataset.per_class",
        ),
        (b"name: pets\nclasses: [cat, dog]\nsettings:\n  train:\n    blocks: 0\n", 5, "train.blocks"),
        (b"name: pets\nclasses: [cat, dog]\nsettings:\n  trian: {}\n", 4, "trian: no such setting"),
        (b"name: pets\nclasses: [cat, dog]\nsettings:\n  profile: paper\n", 3, "profile cannot"),
        (b"name: pets\nclasses: [cat, dog]\nclasses_from: list.txt\n", 3, "stands in for"),
        (b"name: pets\nclasses_from: [list.txt]\n", 2, "path of a file"),
    ],
)
def test_f57_every_mistake_has_its_line(data: bytes, line: int, words: str) -> None:
    error = complaint(data)
    assert error.where == f"pets.yaml:{line}"
    assert words in error.what


def test_a_misspelt_field_is_named_and_so_are_all_other_mistakes() -> None:
    error = complaint(b"name: pets\nclases: [cat, dog]\ntemplate: a photo.\nseeds: []\n")
    assert error.where == "pets.yaml:2"
    first, *others = error.what.splitlines()
    assert first == "clases: no such field; did you mean classes?"
    assert "line 1: classes: this field is needed" in others
    assert "line 4: seeds: at least 1 are needed, and there are 0" in others
    assert any(one.startswith("line 3: template: the template needs") for one in others)


def test_f57_a_line_of_a_megabyte() -> None:
    error = complaint(b"name: pets\nclasses:\n  - cat\n  - " + b"x" * (1 << 20) + b"\n")
    assert error.where == "pets.yaml:4"
    assert str(1 << 20) in error.what and len(str(error)) < 500


def test_a_name_at_the_limit_is_fine() -> None:
    assert parse_target(GOOD.replace(b"cat", b"x" * MAX_NAME)).classes[0] == "x" * MAX_NAME
    assert complaint(GOOD.replace(b"cat", b"x" * (MAX_NAME + 1))).where == "pets.yaml:3"


def test_absurdly_long_list() -> None:
    names = b"".join(b"- c%d\n" % number for number in range(MAX_CLASSES + 1))
    error = complaint(b"name: pets\nclasses:\n" + names)
    assert error.where == f"pets.yaml:{MAX_CLASSES + 3}"
    assert str(MAX_CLASSES) in error.what


def test_billion_laughs_are_refused_at_once() -> None:
    levels = [b"  a: &a [x, x, x, x, x, x, x, x, x]"]
    for own, below in zip("bcdefghij", "abcdefghi", strict=True):
        levels.append(f"  {own}: &{own} [{', '.join([f'*{below}'] * 9)}]".encode())
    error = complaint(b"name: pets\nclasses: [cat, dog]\nsettings:\n" + b"\n".join(levels))
    assert error.where == "pets.yaml:5"


def test_deep_nesting_is_refused() -> None:
    assert "not YAML" in complaint(b"name: pets\nsettings: " + b"[" * 100_000).what


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbf" + GOOD, GOOD.replace(b"\n", b"\r\n"), GOOD.replace(b"\n", b"\r"), GOOD.rstrip(b"\n")],
    ids=["BOM", "CRLF", "CR", "no end"],
)
def test_f57_bom_and_line_ends_are_read_as_meant(data: bytes) -> None:
    assert parse_target(data) == parse_target(GOOD)


def test_f58_names_stay_the_text_that_was_written() -> None:
    names = [
        "no",
        "1999",
        "../../x",
        "null",
        "1.50",
        "0x10",
        "2020-01-01",
        "~",
        "yes",
        "<b>",
        "{}",
        "café",
        "'",
    ]
    lines = "".join(f"  - {name}\n" for name in names if name not in ("{}", "'")) + "  - '{}'\n  - \"'\"\n"
    target = parse_target(f"name: odd\nclasses:\n{lines}".encode())
    assert sorted(target.classes) == sorted(names)
    label = target.classes.index("{}")
    assert target.prompts()[label] == "a photo of a {}."


def test_names_are_stripped() -> None:
    assert parse_target(GOOD.replace(b"cat", b"'  cat '")).classes == ("cat", "dog")


@pytest.mark.parametrize(
    "name", ["../../x", "a/b\\c", "..", "", "CON", "x" * 300, "café ☕", "\0", "$(rm)", "-rf"]
)
def test_f58_slugs_are_safe_folder_names(name: str) -> None:
    assert re.fullmatch(r"\d{4}(-[a-z0-9]+)*-?[a-z0-9]*", slug(name, 7))
    assert slug(name, 7).startswith("0007") and len(slug(name, 7)) <= 45
    assert slug(name, 7) != slug(name, 8)


def test_slug_reads_like_the_name() -> None:
    assert slug("Red Fox!", 12) == "0012-red-fox"


def test_prompt_grammar() -> None:
    target = parse_target(GOOD)
    assert target.prompts() == ["a photo of a cat.", "a photo of a dog."]
    assert target.prompt(0, "which has stripes") == "a photo of a cat, which has stripes."
    assert target.prompt(1, None) == "a photo of a dog."
    bare = Target(name="pets", classes=("cat", "dog"), template="{}")
    assert bare.prompt(0, "which has stripes") == "cat, which has stripes."


def test_a_target_is_frozen() -> None:
    with pytest.raises(ValidationError):
        parse_target(GOOD).name = "zoo"  # type: ignore[misc]


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "pets.yaml"
    with pytest.raises(InputError, match="cannot be read") as caught:
        load_target(file)
    assert caught.value.where == str(file)
    file.write_bytes(GOOD)
    assert load_target(file) == parse_target(GOOD)
    file.write_bytes(GOOD + b"x: 1\n")
    with pytest.raises(InputError) as caught:
        load_target(file)
    assert caught.value.where == f"{file}:5"
    file.write_bytes(GOOD + b"#" * MAX_BYTES)
    with pytest.raises(InputError, match="larger than 4 MiB"):
        load_target(file)


def test_synonyms_are_names_and_belong_to_a_class() -> None:
    spec = GOOD + b"synonyms:\n  CAT: [no, ' kitty ', 007]\n"
    target = parse_target(spec)
    assert target.synonyms == {"cat": ("no", "kitty", "007")}
    assert target.names(0) == ("cat", "no", "kitty", "007") and target.names(1) == ("dog",)
    assert target.prompts() == parse_target(GOOD).prompts()
    assert Target.model_validate(target.model_dump(mode="json")) == target
    with pytest.raises(ValidationError, match="is no class"):
        Target(name="pets", classes=("cat", "dog"), synonyms={"hen": ("x",)})


def test_a_class_has_so_many_synonyms_and_no_more() -> None:
    names = ", ".join(f"s{number}" for number in range(MAX_SYNONYMS))
    assert len(parse_target(GOOD + f"synonyms: {{cat: [{names}]}}\n".encode()).names(0)) == MAX_SYNONYMS + 1
    error = complaint(GOOD + f"synonyms:\n  cat: [{names},\n    more]\n".encode())
    assert error.where == "pets.yaml:7" and str(MAX_SYNONYMS) in error.what


def test_shorthands_and_settings_change_what_they_name() -> None:
    target = parse_target(
        GOOD + b"neighbors: 5\naugmentations: 6\nper_class: 7\niterations: 8\n"
        b"settings: {train: {batch_size: 9}, index: {probes: 3}}\n"
    )
    changed = Settings().replace(target.overrides(Settings()))
    assert [getattr(getattr(changed, area), name) for area, name in SHORTHANDS.values()] == [5, 6, 7, 8]
    assert (changed.train.batch_size, changed.index.probes) == (9, 3)
    assert parse_target(GOOD).overrides(Settings()) == {}


def test_a_profile_of_a_target_goes_below_what_the_user_has_set() -> None:
    target = parse_target(GOOD + b"profile: author-code\nsettings: {dataset: {filter_reference: query}}\n")
    settings = load_settings(overrides={"train": {"augmentation_limit": 5}}, environ={})
    changed = settings.replace(target.overrides(settings))
    assert (changed.dataset.label, changed.train.teacher_temperature) == ("borda", 10.0)
    assert changed.train.augmentation_limit == 5  # the user's
    assert changed.dataset.filter_reference == "query"  # the target's own
    assert (changed.index, changed.profile) == (settings.index, "mudg")


def test_a_profile_of_a_target_can_undo_that_of_the_run() -> None:
    settings = load_settings(overrides={"profile": "author-code"}, environ={})
    target = parse_target(GOOD + b"profile: paper\n")
    changed = settings.replace(target.overrides(settings))
    paper = load_settings(overrides={"profile": "paper"}, environ={})
    assert (changed.augment, changed.dataset, changed.train) == (paper.augment, paper.dataset, paper.train)
    same = parse_target(GOOD + b"profile: author-code\n")
    assert same.overrides(settings) == {}


def test_classes_from_a_list(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("cat\n\nred fox\n")
    spec = f"name: pets\nclasses_from: {file}\nsynonyms: {{red fox: [vixen]}}\n".encode()
    assert parse_target(spec) == Target(
        name="pets", classes=("cat", "red fox"), synonyms={"red fox": ("vixen",)}
    )
    file.write_text("cat\ndog\nCat\n")
    error = complaint(spec)
    assert error.where == f"{file}:3" and "on line 1" in error.what
    file.write_text("cat\n")
    assert "1 classes found" in complaint(spec).what
    file.write_text("red fox\nvixen\n")
    error = complaint(spec)
    assert error.where == "pets.yaml:3" and f"in {file}:2" in error.what
