"""What people call things: one reading of names for every command and for the API.

A name is a target's (`animals`), that of a pointer (`index-current`, or `current` for short), a reference
(`dataset/3fa9`, or `3fa9` where only one kind fits), or a URI of the store. Of a target its latest classifier
is meant, or what that was made from: its dataset, its model, its index.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from mudg_core.errors import InputError, MissingArtifactError
from mudg_core.index.version import CURRENT
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest, layout
from mudg_core.storage.browse import artifacts, lineage_of

CLASSIFIER, DATASET, INDEX = "classifier", "dataset", "index"
KEY = re.compile(r"[0-9a-f]{4,64}")
LISTS = {CLASSIFIER: "mudg model list", DATASET: "mudg dataset list", INDEX: "mudg index list"}
SHOWN = 10


def find(store: ArtifactStore, name: str, kind: str | None = None) -> ArtifactRef:
    """The artifact that a name means, of a kind if one is wanted."""
    name = name.strip()
    if "/" in name:
        return _of_kind(store, store.resolve(name), kind)
    pointer_name = CURRENT if name == "current" else name
    pointer = store.pointer(pointer_name) if layout.NAME.fullmatch(pointer_name) else None
    if pointer is not None and kind in (None, pointer.ref.stage):
        return pointer.ref
    from mudg_core.train.classifiers import target_of  # slow to import

    classifiers = {target_of(manifest): manifest for manifest in artifacts(store, CLASSIFIER)}  # latest wins
    if name in classifiers:
        return _made_for(store, classifiers[name], kind)
    if kind is not None and KEY.fullmatch(name):
        return store.resolve(f"{kind}/{name}")
    raise _unknown(store, name, kind, list(classifiers))


def did_you_mean(name: str, known: list[str]) -> str:
    """`did you mean animals?`, or all names where none is like it; nothing if there are none."""
    lowered = {one.lower(): one for one in known}
    like = [lowered[one] for one in get_close_matches(name.lower(), lowered, n=3)]
    if like:
        return f"did you mean {' or '.join(like)}?"
    more = ", …" if len(known) > SHOWN else ""
    return f"names are {', '.join(sorted(known)[:SHOWN])}{more}" if known else ""


def _of_kind(store: ArtifactStore, ref: ArtifactRef, kind: str | None) -> ArtifactRef:
    """A reference to a classifier stands for its dataset too, as its target's name does."""
    if kind in (None, ref.stage):
        return ref
    if ref.stage == CLASSIFIER:
        return _made_for(store, store.manifest(ref), kind)
    raise InputError(
        what=f"{ref} is not {'an' if kind == INDEX else 'a'} {kind}",
        where=store.url,
        fix=f"`{_list(kind)}` shows what there is",
    )


def _made_for(store: ArtifactStore, classifier: Manifest, kind: str | None) -> ArtifactRef:
    """What the classifier names itself comes before what its parents name: scores have datasets of other
    seeds."""
    if kind in (None, CLASSIFIER):
        return classifier.ref
    own = [ref for ref in classifier.recipe.all_parents() if ref.stage == kind]
    further = (one.ref for one in lineage_of(store, classifier.ref).ancestors() if one.recipe.stage == kind)
    found = own[0] if own else next(further, None)
    if found is None:
        what = f"the {kind} of {classifier.ref} is not in the store any more"
        raise MissingArtifactError(what=what, where=store.url, fix="run its target again")
    return found


def _unknown(store: ArtifactStore, name: str, kind: str | None, targets: list[str]) -> MissingArtifactError:
    known = [*targets, *(["current"] if kind in (None, INDEX) else [])]
    words = [did_you_mean(name, known), f"`{_list(kind)}` shows what there is"]
    fix = "; ".join(word for word in words if word)
    what = f"nothing in the store is called {name[:100]!r}" + (f" and has a {kind}" if kind else "")
    return MissingArtifactError(what=what, where=store.url, fix=fix)


def _list(kind: str | None) -> str:
    return LISTS.get(kind or CLASSIFIER, LISTS[CLASSIFIER])
