"""Model folders of strangers: names of hubs, absurd sizes, pickles, files that are none."""

from __future__ import annotations

import json
import shutil
import socket
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import torch
from safetensors.torch import save_file

from mudg_core.encode.models import load_clip, open_clip
from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE
from mudg_core.errors import ModelError
from tests.core.encode.test_check_model import HUB, SIZES, Change, change
from tests.core.encode.tiny import MODEL, PREPROCESS
from tests.security.results import NotTried, Result, attempt

Spoil = Callable[[Path], None]
MEMORY = 200_000_000
GUARDED: list[tuple[Any, str]] = [(socket.socket, "connect"), (socket.socket, "connect_ex")]
GUARDED += [(socket, "getaddrinfo"), (torch, "load")]
PICKLE = b"\x80\x04cposix\nsystem\n(X\x02\x00\x00\x00idtR."
CONFIGURATIONS = {
    "nested": "[" * 100_000,
    "a number": '{"model_cfg": 3}',
    "nothing": '{"x": 1}',
    "2 MB of spaces": " " * (1 << 21),
    "torn": "{",
    "a list": "[]",
}
HUGE = (1 << 62).to_bytes(8, "little")
WEIGHTS = {
    "empty": b"",
    "garbage": b"garbage" * 100,
    "a header of 4 EB": HUGE + b"{}",
    "a header that is no JSON": (4).to_bytes(8, "little") + b"{{{{",
    "a pickle": PICKLE,
}


def attacks(folder: Path) -> Iterator[Result]:
    good = _tiny(folder / "tiny")
    _check_good(good)
    copies = (shutil.copytree(good, folder / f"model-{number}") for number in range(1000))
    for what, fault, cases in _kinds():
        for case, spoil in cases.items():
            yield attempt(what, fault, partial(_refused, next(copies), spoil), case)
    yield attempt("a pickle beside the weights is opened", 72, partial(_beside, next(copies)))


def _kinds() -> Iterator[tuple[str, int, dict[str, Spoil]]]:
    """(what, fault, what is done to a good folder by case)."""
    yield "a model folder that names a hub or another path", 85, _changes(HUB)
    yield "a model folder of absurd sizes", 85, _changes(SIZES)
    files: dict[str, tuple[str, Mapping[str, str | bytes]]] = {
        "configurations": (CONFIG_FILE, CONFIGURATIONS),
        "weights": (WEIGHTS_FILE, WEIGHTS),
    }
    for name, (file, contents) in files.items():
        cases: dict[str, Spoil] = {case: partial(_write, file, content) for case, content in contents.items()}
        yield f"malformed {name}", 73, cases
    yield "torn weights", 73, {"four bytes": _torn}
    yield "a model folder with nothing but a pickle", 72, {"": _pickle_only}


def _changes(listed: list[tuple[str, Change]]) -> dict[str, Spoil]:
    return {f"{part} {values}": partial(_change, part, values) for part, values in listed}


def _change(part: str, values: Change, folder: Path) -> None:
    change(folder, part, values)


def _write(file: str, content: str | bytes, folder: Path) -> None:
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())


def _torn(folder: Path) -> None:
    data = (folder / WEIGHTS_FILE).read_bytes()
    (folder / WEIGHTS_FILE).write_bytes(data[:-4])


def _pickle_only(folder: Path) -> None:
    (folder / WEIGHTS_FILE).unlink()
    (folder / "open_clip_pytorch_model.bin").write_bytes(PICKLE)


def _refused(folder: Path, spoil: Spoil) -> str:
    """Before any request, and before any memory was taken."""
    spoil(folder)
    reached: list[object] = []
    tracemalloc.start()
    try:
        with _alone(reached):
            load_clip(f"local-dir:{folder}")
    except ModelError as error:
        peak = tracemalloc.get_traced_memory()[1]
        assert not reached, f"refused, but only after it asked for {reached}"
        assert peak < MEMORY, f"refused, but it took {peak >> 20} MB"
        return error.what
    finally:
        tracemalloc.stop()
        shutil.rmtree(folder)
    raise AssertionError("it was loaded")


@contextmanager
def _alone(reached: list[object]) -> Iterator[None]:
    """Without a network and without pickles: whoever asks for either is noted."""

    def refuse(*address: object, **_: object) -> NoReturn:
        reached.append(address)
        raise OSError("no network here")

    with ExitStack() as stack:
        for where, name in GUARDED:
            stack.enter_context(mock.patch.object(where, name, refuse))
        yield


def _beside(folder: Path) -> str:
    for name in ("open_clip_pytorch_model.bin", "aaa.pth", "pytorch_model.bin"):
        (folder / name).write_bytes(PICKLE)
    reached: list[object] = []
    with _alone(reached):
        load_clip(f"local-dir:{folder}")
    assert not reached, "it was opened"
    return "the weights are loaded, and the pickle is left alone"


def _tiny(folder: Path) -> Path:
    folder.mkdir()
    save_file(open_clip.CLIP(**MODEL).state_dict(), folder / WEIGHTS_FILE)
    (folder / CONFIG_FILE).write_text(json.dumps({"model_cfg": MODEL, "preprocess_cfg": PREPROCESS}))
    return folder


def _check_good(folder: Path) -> None:
    try:
        load_clip(f"local-dir:{folder}")
    except ModelError as error:
        raise NotTried(f"not even a good folder is loaded: {error}") from error
