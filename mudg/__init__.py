"""Class names in, a finetuned CLIP classifier out, fed by an image pool that is indexed once.

    store = mudg.open("pool")
    store.add("photos/")
    index = store.build_index()
    index.search("a red boat", 12)
    classifier = store.classify(["shoe", "boot"], evaluation="labelled/")
    classifier.predict("new/")

Names are loaded when they are first used: the command line imports this package too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mudg.classifier import Classifier, Dataset, Model, Prediction, load
    from mudg.search import Hit, Hits
    from mudg.store import Index, Source, Store, open
    from mudg_core import __version__
    from mudg_core.errors import MudgError

_HOMES = {
    "mudg.classifier": ("Classifier", "Dataset", "Model", "Prediction", "load"),
    "mudg.search": ("Hit", "Hits"),
    "mudg.store": ("Index", "Source", "Store", "open"),
    "mudg_core.errors": ("MudgError",),
    "mudg_core": ("__version__",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Classifier",
    "Dataset",
    "Hit",
    "Hits",
    "Index",
    "Model",
    "MudgError",
    "Prediction",
    "Source",
    "Store",
    "__version__",
    "load",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mudg' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
