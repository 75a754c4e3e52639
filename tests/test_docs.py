"""What the documentation says is so: links lead somewhere, commands and settings exist, tables are as
printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.main import get_command
from typer.testing import CliRunner

from benchmarks import quoted
from mudg.cli.app import app
from mudg_core.evaluate.images import Source
from mudg_core.settings import Settings
from mudg_core.target.spec import parse_target
from tests.support import fault_list

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "infra/README.md", *(ROOT / "docs").rglob("*.md")]
)
# Written like settings, and none: a file that a stage leaves, and a file of ours.
NO_SETTINGS = {"dataset.tar", "gate.py"}

FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]*\n)+")
INLINE = re.compile(r"`([^`\n]+)`")
CALL = re.compile(r"(?:\.venv/bin/|.*\| |.* prefect-worker (?:-- )?)?mudg (?=[a-z])")
USAGE = re.compile(r"[\[…]|(?<![\w=-])[A-Z]{2,}\b")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

COMMANDS: Any = get_command(app)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


# -- links ------------------------------------------------------------------------------------------------


def prose(text: str) -> str:
    """A page without its code, in which brackets mean other things."""
    return INLINE.sub("`code`", FENCED.sub("", text))


def links(page: Path) -> list[str]:
    return [link for link in LINK.findall(prose(page.read_text())) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Those that both GitHub and mkdocs give to headings: they differ in what they make of odd characters."""
    titles = [title.replace("`", "") for title in HEADING.findall(FENCED.sub("", page.read_text()))]
    return {_github(title) for title in titles} & {_mkdocs(title) for title in titles}


def _github(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _mkdocs(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def dead(page: Path) -> list[str]:
    found = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        known = there.is_file() and (not anchor or anchor in anchors(there))
        found += [] if known else [link]
    return found


@pages
def test_links_and_anchors_exist(page: Path) -> None:
    assert dead(page) == []


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One thing\n[a](#one-thing) [b](#other) [c](page.md#one-thing) ![d](none.png) `[e](x)`\n"
    )
    assert dead(page) == ["#other", "none.png"]


def test_there_is_something_to_look_at() -> None:
    assert {"docs/report.png", "docs/pipeline.svg"} <= set(links(ROOT / "README.md"))
    assert sum(len(links(page)) for page in PAGES) > 100
    assert sum(len(list(commands(page.read_text()))) for page in PAGES) > 100


# -- commands ---------------------------------------------------------------------------------------------


def code(text: str) -> Iterator[str]:
    """Lines of code blocks; those that go on with a backslash as one."""
    for block in (*FENCED.findall(text), *INDENTED.findall(FENCED.sub("", text))):
        yield from (line.strip() for line in block.replace("\\\n", " ").splitlines())


def commands(text: str) -> Iterator[tuple[str, bool]]:
    """Every command line that calls mudg, from its second word on, and whether it is one to be typed as it
    stands. What is said between backticks, and a usage with [options], capitals or dots, is not."""
    for line in code(text):
        if begin := CALL.match(line):
            yield line[begin.end() :], not USAGE.search(line)
    for line in INLINE.findall(FENCED.sub("", text)):
        if begin := CALL.match(line):
            yield line[begin.end() :], False


def fault(command: str, whole: bool = True) -> str:
    """Why a command line cannot be, or nothing. Of one that is not whole only names are looked at: of the
    command and its options. Nothing is run."""
    words = shlex.split(re.sub(r" [\[|] ?|\](?= |$)", " ", command), comments=True)
    node: Any = COMMANDS
    path: list[str] = []
    while words and getattr(node, "commands", None):
        path.append(words.pop(0))
        if path[-1] not in node.commands:
            return f"there is no command mudg {' '.join(path)}"
        node = node.commands[path[-1]]
    known = {name for option in node.params for name in (*option.opts, *option.secondary_opts)}
    unknown = [word for word in words if re.match("--?[a-z]", word) and word.split("=")[0] not in known]
    if unknown:
        return f"mudg {' '.join(path)} has no option {unknown[0]}"
    try:
        if whole:
            node.make_context(path[-1], words)
    except Exception as error:
        return f"mudg {command}: {getattr(error, 'message', error)}"
    return ""


@pages
def test_commands_exist_with_their_options(page: Path) -> None:
    faults = [fault(*command) for command in commands(page.read_text())]
    assert [found for found in faults if found] == []


@pytest.mark.parametrize(
    "command",
    [
        "nonsense",
        "target nonsense x.yaml",
        "target run",
        "target run x.yaml --nonsense",
        "dataset export dataset/3fa9 ./out --to parquet",
        "plan --paper --devices many",
    ],
)
def test_a_wrong_command_is_noticed(command: str) -> None:
    assert fault(command)


def test_wrong_names_are_noticed_in_a_usage_too() -> None:
    ((command, whole),) = commands("    text\n\n    mudg target run SPEC [--out FOLDER] [--nonsense]\n")
    assert not whole and "--nonsense" in fault(command, whole)
    ((command, whole),) = commands("what `mudg target nonsense` says")
    assert not whole and "nonsense" in fault(command, whole)


@pytest.mark.parametrize(
    "line",
    [
        "    mudg gc --dry-run",
        "    find . | mudg predict animals - --csv",
        "    mudg plan \\\n      --paper  # so much",
        "    docker compose run --rm prefect-worker mudg target list",
    ],
)
def test_right_commands_are_found_and_pass(line: str) -> None:
    ((command, whole),) = commands(f"text\n\n{line}\n\ntext")
    assert whole and not fault(command)


# -- what the examples would do ---------------------------------------------------------------------------

WRITES = re.compile(r"mudg (?:target run .*--out|(?:model|dataset) export \S+) +(\S+)")
EXTRAS = re.compile(r"pip install [^`\n)]*\[([a-z,]+)\]")


def written(text: str) -> list[str]:
    """Folders that the commands of a page write, one after the other."""
    return [found[1] for line in code(text) if (found := WRITES.search(line)) and "--force" not in line]


@pages
def test_no_page_writes_a_folder_twice(page: Path) -> None:
    """The second command would be refused, as the folder is not empty."""
    folders = written(page.read_text())
    assert [folder for folder in set(folders) if folders.count(folder) > 1] == []


def test_a_folder_that_is_written_twice_is_noticed() -> None:
    text = "text\n\n    mudg target run a.yaml --out ./a\n    mudg model export a ./a\n"
    assert written(text) == ["./a", "./a"]


@pages
def test_specs_that_are_tried_on_the_demo_world_find_its_images(page: Path) -> None:
    for block in FENCED.findall(page.read_text()):
        if "evaluation: demo:" in block:
            target = parse_target(block.encode())
            assert next(Source.of(target, Settings().evaluate).listed("test"))


def test_the_quick_start_measures_a_classifier_of_its_own() -> None:
    assert "evaluation: demo:" in (ROOT / "docs/quick-start.md").read_text()


def installs(text: str) -> list[set[str]]:
    return [set(extras.split(",")) for extras in EXTRAS.findall(text)]


def test_whoever_installs_an_extra_gets_faiss_too() -> None:
    """It comes with the extras cpu and gpu only, of which everybody needs one; and no registry has mudg."""
    texts = {
        path: path.read_text()
        for path in (*PAGES, *(ROOT / "mudg").rglob("*.py"), *(ROOT / "mudg_core").rglob("*.py"))
    }
    found = {path: installs(text) for path, text in texts.items()}
    assert sum(map(len, found.values())) > 5
    assert [path for path, many in found.items() if any(not one & {"cpu", "gpu"} for one in many)] == []
    assert [path for path, text in texts.items() if re.search(r"pip install '?mudg", text)] == []
    assert installs("(`pip install 'mudg[stack]'`)") == [{"stack"}]


# -- settings ---------------------------------------------------------------------------------------------


def known_settings() -> set[str]:
    def walk(model: type[BaseModel], before: str) -> Iterator[str]:
        for name, info in model.model_fields.items():
            yield before + name
            if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
                yield from walk(info.annotation, f"{before}{name}.")

    return set(walk(Settings, ""))


def settings_named(text: str) -> set[str]:
    """`area.name` between backticks (with or without a value), `--set area.name=…`, and MUDG_AREA__NAME."""
    areas = "|".join(name for name in Settings.model_fields if name != "profile")
    inline = " ".join(f" {piece} " for piece in INLINE.findall(FENCED.sub("", text)))
    quoted = re.findall(rf"(?<![\w./-])((?:{areas})\.[a-z_]+)(?![\w./(])", inline)
    given = re.findall(r"--set +([\w.]+)=", text)
    environment = [name.lower().replace("__", ".") for name in re.findall(r"MUDG_([A-Z_]+__[A-Z_]+)", text)]
    return {*quoted, *given, *environment} - NO_SETTINGS - {"area.name"}


@pages
def test_settings_exist(page: Path) -> None:
    assert settings_named(page.read_text()) - known_settings() == set()


def test_a_setting_that_is_not_there_is_noticed() -> None:
    text = "`index.cellz`, `--set gc.nope=1`, `index.cells=4`, MUDG_TRAIN__X=1, `tasks/index.py`, `index.md`"
    named = settings_named(text)
    assert named == {"index.cellz", "gc.nope", "index.cells", "train.x", "index.md"}
    assert named - known_settings() == {"index.cellz", "gc.nope", "train.x", "index.md"}


# -- figures ----------------------------------------------------------------------------------------------

COMMIT = re.compile(r"<!--=(\S+) (?:commit|measured_at/\S+)-->")
LINKED = re.compile(r"benchmarks/results/([\w-]+)\.json")


def quoted_files(text: str) -> set[str]:
    return {mark[2] for mark in quoted.MARK.finditer(text)} | {rows[1] for rows in quoted.ROWS.finditer(text)}


@pages
def test_figures_are_those_of_the_results(page: Path) -> None:
    """`python -m benchmarks.quoted` fills them in."""
    text = page.read_text()
    assert quoted.filled(text) == text


@pages
def test_every_mark_is_read_and_rendered(page: Path) -> None:
    """One at the beginning of a line would make the line HTML, in which Markdown is not rendered."""
    text = page.read_text()
    assert text.count("<!--=") == len(quoted.MARK.findall(text))
    assert text.count("<!--rows") == len(quoted.ROWS.findall(text))
    assert not re.search(r"^\s*<!--=", text, re.MULTILINE)


@pages
def test_figures_come_with_their_commit(page: Path) -> None:
    """And a page that names a file of results takes its figures from there."""
    text = page.read_text()
    assert quoted_files(text) == set(COMMIT.findall(text))
    assert set(LINKED.findall(text)) <= quoted_files(text)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("<!--=x line/ratio-->1.0 times", "<!--=x line/ratio-->2.3 times"),
        ("<!--=x line/ratio-->**1**, and", "<!--=x line/ratio-->**2**, and"),
        ("<!--=x line/ratio * 1000-->7, 8", "<!--=x line/ratio * 1000-->2,346, 8"),
        ("<!--=x line/ratio - 3-->+1.00", "<!--=x line/ratio - 3-->−0.65"),
        ("<!--=x line/ratio + 1-->+1", "<!--=x line/ratio + 1-->+3"),
        ("<!--=x list/*/b / 2-->0.0", "<!--=x list/*/b / 2-->2.5"),
        ("<!--=x list/name=second/b-->0", "<!--=x list/name=second/b-->6"),
        ("<!--=x commit-->0000000.", "<!--=x commit-->01b16b3-dirty."),
    ],
)
def test_figures_are_filled_in(text: str, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results(monkeypatch)
    assert quoted.filled(text) == filled and quoted.filled(filled) == filled


def test_rows_of_a_table_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    results(monkeypatch)
    top = "<!--rows x\n| [list/name={}/b .1f] ± [line/ratio * 100 .0f] % |\n-->\n\n"
    top += "| a | b | c |\n|---|---|---|\n"
    assert quoted.filled(f"{top}| x | `second` y | 0 |\n") == f"{top}| x | `second` y | 6.0 ± 235 % |\n"
    with pytest.raises(ValueError, match="no name"):
        quoted.filled(f"{top}| x | y | 0 |\n")


def results(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {
        "commit": "01b16b3057d05-dirty",
        "line": {"ratio": 2.3456},
        "list": [{"name": "first", "b": 4}, {"name": "second", "b": 6}],
    }
    monkeypatch.setattr(quoted, "_results", {"x": body}.__getitem__)


# -- tables and the site ----------------------------------------------------------------------------------


def test_tables_of_the_plan_are_as_printed() -> None:
    printed = set(CliRunner().invoke(app, ["plan", "--paper"]).stdout.splitlines())
    quoted = {
        page.relative_to(ROOT).as_posix(): block.splitlines()
        for page in PAGES
        for block in FENCED.findall(page.read_text())
        if re.match(r"stage +FLOP", block)
    }
    assert {"docs/scale.md"} <= quoted.keys()
    assert {name: [line for line in lines if line not in printed] for name, lines in quoted.items()} == {
        name: [] for name in quoted
    }


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    sources = [*(ROOT / "docs").rglob("*.md"), ROOT / "docs/infra.md"]
    wanted = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in sources}
    assert wanted <= {path.relative_to(tmp_path) for path in tmp_path.rglob("*.html")}
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]* src=\"https?://|<link[^>]* href=\"https?://|url\(https?://"
    )
    for path in tmp_path.rglob("*"):
        if path.suffix in {".html", ".css"}:
            assert not loaded.search(path.read_text()), path.name


def test_faults_are_listed_with_their_tests() -> None:
    """`python -m tests.support.fault_list` writes them."""
    page = fault_list.PAGE.read_text()
    assert page == fault_list.with_tests(page)


def test_every_number_of_a_test_is_a_listed_fault() -> None:
    listed = [
        int(row[2]) for line in fault_list.PAGE.read_text().split("\n") if (row := fault_list.ROW.match(line))
    ]
    assert listed == list(range(1, 101))
    assert set(fault_list.tests_by_fault()) <= set(listed)


# -- the architecture ---------------------------------------------------------------------------------------

ARCHITECTURE = ROOT / "docs/architecture.md"
ROW = re.compile(r"^\| `(\w+)/` \|(.+)", re.MULTILINE)
ANSWER = re.compile(r"`([\w/]+\.py)`, `(\w+)`")


def missing_paths(text: str) -> list[str]:
    """Files and folders that do not exist. A table row names those of the folder in its first cell."""
    named = [name for name in INLINE.findall(FENCED.sub("", text)) if re.fullmatch(r"\w+/[\w/]+\.?\w*", name)]
    missing = [name for name in named if not (ROOT / name).exists()]
    for folder, cells in ROW.findall(text):
        base = next(base for base in (ROOT, ROOT / "mudg_core") if (base / folder).exists()) / folder
        inside = re.findall(r"`(\w+(?:/|\.py))`", cells)
        missing += [f"{folder}/{name}" for name in inside if not (base / name).exists()]
    return missing


def missing_symbols(text: str) -> list[str]:
    """Answers whose file does not define what they name."""
    return [
        f"{path}: {name}"
        for path, name in ANSWER.findall(text)
        if not re.search(rf"^ *(?:def|class) {name}\b", (ROOT / path).read_text(), re.MULTILINE)
    ]


def test_the_architecture_names_what_exists() -> None:
    text = ARCHITECTURE.read_text()
    assert missing_paths(text) == []
    assert missing_symbols(text) == []
    assert len(ANSWER.findall(text)) >= 10


def test_a_file_that_moved_is_noticed() -> None:
    assert missing_paths("`tasks/run.py` and `tasks/ran.py`\n| `index/` | x | `kmeans.py`, `means.py` |") == [
        "tasks/ran.py",
        "index/means.py",
    ]
    assert missing_symbols("`tasks/run.py`, `Run` and `tasks/run.py`, `Ran`") == ["tasks/run.py: Ran"]
