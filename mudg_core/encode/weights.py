"""Which model a name means, and the digest of its weights, without loading it.

A model is named as the user would write it: `local-dir:PATH` (a folder with `open_clip_config.json` and
`open_clip_model.safetensors`), `ARCHITECTURE/TAG` (a hub tag of open_clip, such as `ViT-B-16/openai`),
`ARCHITECTURE/FILE.safetensors` (weights on disk), or `demo:index` and `demo:student`, the two small models
that come with the project.

A run that finds all its artifacts made needs no more than this, so open_clip is imported for hub tags only.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

from mudg_core.errors import InputError, ModelError
from mudg_core.settings import INDEX_MODEL

DEMO_MODELS = Path(__file__).parent / "demo"
DEMO_NAMES = ("index", "student")
CONFIG_FILE = "open_clip_config.json"
WEIGHTS_FILE = "open_clip_model.safetensors"
PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl")


def locate(name: str) -> tuple[str, str | None]:
    """What open_clip wants for a name: (model or `local-dir:` path, hub tag or file or nothing)."""
    if name.startswith("demo:"):
        return f"local-dir:{DEMO_MODELS / _demo(name)}", None
    if name.startswith("local-dir:"):
        return name, None
    if name == INDEX_MODEL:
        raise ModelError(
            what="the model of the current index is not known by name: an earlier release built it",
            where="encode.model",
            fix="name it once more, with the next build: `mudg index build --set encode.model=…`",
        )
    architecture, _, tag = name.partition("/")
    if not tag:
        raise ModelError(
            what="a hub model needs its tag",
            where=name,
            fix="write ARCHITECTURE/TAG, for example ViT-B-16/openai",
        )
    if tag.endswith(PICKLES):
        raise ModelError(
            what="a pickled checkpoint can run code when it is loaded, so it is not",
            where=name,
            fix="convert it to safetensors, on a machine that you can spare",
        )
    return architecture, tag


def _demo(name: str) -> str:
    """One of the two: `demo:/data/x` would be a folder anywhere."""
    model = name.removeprefix("demo:")
    if model not in DEMO_NAMES:
        raise ModelError(
            what="there is no such demo model", where=name, fix="take demo:index or demo:student"
        )
    return model


def path_in(name: str) -> str | None:
    """The path that a model's name holds. Only what cannot be one counts as none."""
    if name == INDEX_MODEL or name in {f"demo:{model}" for model in DEMO_NAMES}:
        return None
    if name.startswith("local-dir:"):
        return name.removeprefix("local-dir:")
    if re.fullmatch(r"[\w.+-]+/[\w+-]+", name, re.ASCII):
        return None  # ARCHITECTURE/TAG of the hub
    return name.partition("/")[2] or name


def absolute(name: str) -> str:
    """The same model for a process that works in another folder."""
    if name.startswith("local-dir:"):
        return f"local-dir:{absolute_path(name.removeprefix('local-dir:'))}"
    architecture, _, file = name.partition("/")
    if file.endswith(".safetensors"):
        return f"{architecture}/{absolute_path(file)}"
    return name


def absolute_path(text: str) -> Path:
    """A path that somebody wrote, who may have named a home folder that nobody has."""
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise InputError(what=f"the home folder cannot be found: {error}", where=text[:200]) from error


def local_files(name: str, path: str) -> list[Path]:
    """The files of a `local-dir:` model. Without weights open_clip would take pickles or random numbers."""
    folder = Path(path.removeprefix("local-dir:"))
    files = [folder / CONFIG_FILE, folder / WEIGHTS_FILE]
    for file in files:
        if not file.is_file():
            raise ModelError(
                what=f"no {file.name} there", where=name, fix="give a folder written by open_clip"
            )
    return files


def vision_width(name: str) -> int | None:
    """Of a model's vision tower, from its configuration; nothing where that cannot be told without loading
    the model. Whoever needs the model itself will say what is wrong with it."""
    try:
        config = json.loads(_config_file(*locate(name)).read_text())
    except (ModelError, OSError, ValueError):
        return None
    return width_in(config)


def width_in(config: Any) -> int | None:
    """Of the vision tower that a configuration of open_clip describes, if it says so."""
    try:
        width = config.get("model_cfg", config)["vision_cfg"]["width"]
    except (KeyError, TypeError, AttributeError):
        return None
    return width if isinstance(width, int) else None


def _config_file(path: str, pretrained: str | None) -> Path:
    if pretrained is None:
        return Path(path.removeprefix("local-dir:")) / CONFIG_FILE
    package = importlib.util.find_spec("open_clip")  # found, and not imported: that takes seconds
    return Path(str(package and package.origin)).parent / "model_configs" / f"{path}.json"


def weights_digest(name: str) -> str:
    """sha256 of a model's configuration and weight file: what a content key needs to know of it."""
    path, pretrained = locate(name)
    digest = hashlib.sha256()
    if pretrained is None:
        files = local_files(name, path)
    else:
        from mudg_core.encode.models import open_clip

        files = [_weight_file(name, path, pretrained)]
        digest.update(json.dumps(open_clip.get_model_config(path), sort_keys=True).encode())
    for file in files:
        facts = file.stat()
        digest.update(_file_digest(file, facts.st_size, facts.st_mtime_ns))
    return digest.hexdigest()


@functools.lru_cache(maxsize=64)
def _file_digest(file: Path, size: int, changed: int) -> bytes:
    """sha256 of a file, read once for as long as its size and time of change stay."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _weight_file(name: str, architecture: str, tag: str) -> Path:
    if not tag.endswith(".safetensors"):
        return _downloaded(name, architecture, tag)
    if not Path(tag).is_file():
        raise ModelError(
            what="no such file of weights", where=name, fix="write ARCHITECTURE/FILE.safetensors"
        )
    return Path(tag)


@functools.lru_cache(maxsize=32)
def _downloaded(name: str, architecture: str, tag: str) -> Path:
    from mudg_core.encode.models import open_clip
    from mudg_core.encode.open_clip_support import load_hub

    try:
        load_hub()
        facts = open_clip.get_pretrained_cfg(architecture, tag)
        if not facts:
            raise ValueError("open_clip does not know this tag")
        return Path(open_clip.download_pretrained(facts))
    except Exception as error:  # the hub's client raises whatever its transport raises
        raise ModelError(
            what=f"the weights cannot be fetched: {error}",
            where=name,
            fix="check the name and the network, or give local-dir:PATH",
        ) from error
