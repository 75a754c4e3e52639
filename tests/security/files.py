"""Files of strangers: lying headers, tars, pictures, settings, and texts that steer a terminal."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from mudg_core.corpus.shards import read_members
from mudg_core.corpus.sources import registry, tables
from mudg_core.errors import DataError, SettingsError
from mudg_core.settings import StorageSettings, load_settings
from mudg_core.storage import ArtifactStore
from mudg_core.yaml_text import load
from tests.core.corpus import test_decode as pictures
from tests.core.corpus import test_shards as shards
from tests.core.corpus.sources import making
from tests.core.corpus.sources.test_lying_headers import BOMBED, LIES, bomb
from tests.core.test_yaml_text import HOSTILE
from tests.mudg import test_terminal as terminal
from tests.security.results import NotTried, Result, attempt
from tests.support import raw_tar
from tests.support.hostile import Hostile
from tests.support.hostile_tars import TarCase, stopping_tails, tar_cases

PICTURES = {
    67: "pictures that unpack to too many pixels",
    68: "pictures that are none, or not whole",
    82: "pictures that decode slowly",
}
MEMORY = 300 << 20
SECONDS = 120
MARKS = 'name: "\\x1b[2J\\x9b\\u202e"\n"\\x1b]0;x\\x07": 1\n'
# What prints captions and links, run as `mudg search` runs it.
CAPTIONS = (
    "from mudg.cli.terminal import guard_terminal; guard_terminal()\n"
    "from mudg.cli.output import console, show, table_of\n"
    f"bad = {terminal.HOSTILE!r}\n"
    "show({}, table_of([(bad, bad)], ('caption', 'url')), False); show({'caption': bad}, '', True)\n"
    "console.print(bad, markup=False); print(bad); raise ValueError(bad)"
)


def attacks(folder: Path) -> Iterator[Result]:
    for case, (data, words) in LIES.items():
        for side in ("img_emb", "text_emb"):
            lie = partial(_lying_npy, folder / f"npy-{side}-{case}", side, data, words)
            yield attempt(".npy whose header lies, or that holds objects", 83, lie, f"{case}, {side}")
    yield from _parquets(folder)
    yield from _tars(folder)
    for case, hostile in pictures.HOSTILE.items():
        fault = 67 if hostile.reason.endswith("pixels") else 82 if hostile.reason.endswith("scans") else 68
        what = PICTURES[fault]
        yield attempt(what, fault, partial(_picture, hostile), case)
    for case, text in HOSTILE.items():
        yield attempt(
            "settings that cost more than their text is long", 88, partial(_yaml_bomb, folder, text), case
        )
    yield from _terminal(folder)


def _lying_npy(folder: Path, side: str, data: bytes, words: str) -> str:
    store = ArtifactStore(StorageSettings(url=f"file://{folder}/store", cache_dir=str(folder / "cache")))
    source = making.embeddings(folder / "source", {0: 3})
    (source / side / f"{side}_0.npy").write_bytes(data)
    try:
        registry.inspect(str(source), store, 100)
    except DataError as error:
        assert words in str(error), f"refused for another reason: {error}"
        assert not registry.refs(store), "and yet it was added"
        return words
    raise AssertionError("it was taken")


def _parquets(folder: Path) -> Iterator[Result]:
    what = "parquet that unpacks to gigabytes"
    for text, words in ((1 << 20, "4096 without address"), (60_000, "unpack to more than 32 MB")):
        yield attempt(what, 87, partial(_parquet_bomb, folder, text, words), f"texts of {text} bytes")
    yield attempt("parquet that claims more rows than it can hold", 87, partial(_too_many_rows, folder))
    for kind in (pa.list_(pa.string()), pa.binary(4)):
        yield attempt("parquet with columns that hold more than texts", 87, partial(_wide, kind), str(kind))


def _parquet_bomb(folder: Path, text: int, words: str) -> str:
    path = bomb(folder / f"bomb-{text}.parquet", 4096, text)
    command = [sys.executable, "-c", BOMBED, str(path), str(folder / "bomb-store")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if process.returncode:
        raise AssertionError(f"the reader died with {process.returncode}: {process.stderr[-200:]}")
    grown, _, outcome = process.stdout.partition(" ")
    memory = int(grown) * (1 if sys.platform == "darwin" else 1024)
    assert words in outcome and memory < MEMORY, f"{memory >> 20} MB: {outcome}"
    return f"{outcome}; {memory >> 20} MB of memory"


def _too_many_rows(folder: Path) -> str:
    flags = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000_000, pa.int32()), ["x"])
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"url": flags, "caption": flags}), path)
    store = ArtifactStore(StorageSettings(url=f"file://{folder}/rows", cache_dir=str(folder / "cache")))
    try:
        registry.inspect(str(path), store, 100)
    except DataError as error:
        return error.what
    raise AssertionError("it was taken")


def _wide(kind: pa.DataType) -> str:
    stored = io.BytesIO()
    pq.write_table(pa.table({"url": pa.array([None], kind), "caption": ["y"]}), stored)
    table = tables.open_table(pa.BufferReader(stored.getvalue()), stored.tell(), "here")
    try:
        list(tables.batches(table, ["url", "caption"], "here"))
    except DataError as error:
        return error.what
    raise AssertionError("it was read")


def _tars(folder: Path) -> Iterator[Result]:
    place = folder / "tars"
    place.mkdir()
    for case in tar_cases(shards.JPEG):
        out = case.reason.startswith("tar:")
        what = "tar members that lead out, links, devices" if out else "tar members with hostile texts"
        yield attempt(what, 71, partial(_member, place, case), f"{case.key[:40]} {case.reason}")
    for name, tail in stopping_tails(shards.JPEG).items():
        yield attempt("tars that are torn, or claim to be endless", 71, partial(_torn_tar, place, tail), name)
    yield attempt("any of them wrote a file", 71, partial(_check_folder, place, "a.tar"))


def _member(folder: Path, case: TarCase) -> str:
    outcomes = shards.between_neighbours(folder / "a.tar", case.data)
    assert outcomes == [("a", None), (case.key, case.reason), ("b", None)], outcomes
    return case.reason


def _torn_tar(folder: Path, tail: bytes) -> str:
    path, good = folder / "a.tar", shards.JPEG
    path.write_bytes(raw_tar.sample("a", good) + raw_tar.sample("b", good) + tail)
    *before, last = shards.reasons(path)
    assert before == [("a", None), ("b", None)] and last[1] == "tar: cut short", last
    assert read_members(path, ["a", "b", "torn"]) == {"a": good, "b": good}
    return last[1]


def _check_folder(folder: Path, name: str) -> str:
    names = [path.name for path in folder.rglob("*")]
    assert names == [name], f"there are {names}"
    return "nothing was unpacked"


def _picture(hostile: Hostile) -> str:
    reason = pictures.reason(hostile.data)
    assert reason == hostile.reason, f"{reason}, and not {hostile.reason}"
    return hostile.reason


def _yaml_bomb(folder: Path, text: str) -> str:
    file = folder / "bomb.yaml"
    file.write_text(text)
    started = time.process_time()
    for read in (partial(load, text), partial(load_settings, [file], environ={})):
        try:
            read()
        except (yaml.YAMLError, SettingsError) as error:
            message = str(error)
        else:
            raise AssertionError("it was read")
    took = time.process_time() - started
    assert took < 3, f"refused after {took:.1f} s"
    return message


def _terminal(folder: Path) -> Iterator[Result]:
    (folder / "bad.yaml").write_text(MARKS)
    (folder / "hostile.yaml").write_text('train: {prompt_tokens: "\\e[2J\\x9b\\u202eowned"}\n')
    start = "import sys; sys.argv = ['mudg', *{!r}]\nfrom mudg.cli import main; main()"
    codes = {name: start.format(words) for name, words in terminal.COMMANDS.items()}
    for case, code in (codes | {"captions and links": CAPTIONS}).items():
        yield attempt("control characters reach the terminal", 86, partial(_printed, folder, code), case)


def _printed(folder: Path, code: str) -> str:
    text = terminal.on_a_terminal(code, folder)
    if len(text) <= 20:
        raise NotTried(f"the command printed nothing: {text!r}")
    terminal.check(text)
    return "written out, and not acted upon"
