"""Evaluation images as users have them: DOMAIN/CLASS/*, or CLASS/* for a single domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mudg_core.errors import InputError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
MAX_IMAGES = 2_000_000


def read_folder(root: str | Path, classes: Sequence[str]) -> Iterator[tuple[str, int, Path]]:
    """(domain, label, file) of every image, in a fixed order. Folders are named as the classes are."""
    root = Path(root)
    if not root.is_dir():
        raise InputError(what="the evaluation folder does not exist", where=str(root))
    wanted = {_plain(name): label for label, name in enumerate(classes)}
    single = any(_plain(folder.name) in wanted for folder in root.iterdir() if folder.is_dir())
    domains = [root] if single else sorted(path for path in root.iterdir() if path.is_dir())
    count = 0
    for domain in domains:
        for folder in sorted(path for path in domain.iterdir() if path.is_dir()):
            if (label := wanted.get(_plain(folder.name))) is None:
                continue
            for file in sorted(folder.iterdir()):
                if file.suffix.lower() in SUFFIXES and file.is_file():
                    count += 1
                    if count > MAX_IMAGES:
                        raise InputError(what=f"more than {MAX_IMAGES} evaluation images", where=str(root))
                    yield domain.name, label, file
    if count == 0:
        raise InputError(
            what="no evaluation image found",
            where=str(root),
            fix="use DOMAIN/CLASS/*.jpg or CLASS/*.jpg with folders named as the target's classes",
        )


def _plain(name: str) -> str:
    """Folder names and class names are compared without case, and `_` or `-` as spaces."""
    return " ".join(name.replace("_", " ").replace("-", " ").casefold().split())
