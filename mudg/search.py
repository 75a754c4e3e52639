"""A sentence in, the nearest images of an index out. Needs no server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from mudg.pictures import contact_sheet, gallery
from mudg_core.corpus.shard_reader import ShardImages, open_images
from mudg_core.corpus.takedowns import read_takedowns
from mudg_core.encode.shard import EmbeddingShard, gather_metadata
from mudg_core.errors import DataError, InputError
from mudg_core.index.model_names import check_named_model, resolved_model
from mudg_core.index.routing import Probing
from mudg_core.index.version import IndexVersion, open_searcher
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore

if TYPE_CHECKING:
    from PIL import Image

MOST_CHARACTERS = 1000


@dataclass(frozen=True)
class Hit:
    """One image that was found. `facts` has all that the corpus knows of it."""

    row: int
    cosine: float
    caption: str
    url: str
    facts: Json = field(repr=False)


@dataclass(frozen=True)
class Hits(Sequence[Hit]):
    """What a search has found, best first; a notebook shows it as pictures."""

    query: str
    hits: tuple[Hit, ...]
    store: ArtifactStore = field(repr=False)
    version: IndexVersion = field(repr=False)

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Hit]: ...
    def __getitem__(self, place: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[place]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def images(self) -> dict[int, bytes]:
        """Encoded images by row, of those that lie in the corpus: published embeddings come without."""
        links: Any = {hit.row: hit.facts for hit in self.hits}
        shards = self.version.shards
        return ShardImages(lambda number: open_images(self.store, shards[number]), links).read(links)

    def sheet(self) -> Image.Image:
        """All images on one, line by line."""
        images = self.images()
        if not images:
            raise DataError(
                what="no image of these results lies in the corpus",
                fix="look at them by their links: published embeddings come without images",
            )
        return contact_sheet([images[hit.row] for hit in self.hits if hit.row in images])

    def save(self, path: str | Path) -> None:
        """The sheet as a file, of the kind that its name says."""
        self.sheet().save(path)

    def _repr_html_(self) -> str:
        images = self.images()
        shown = ((images.get(hit.row), f"{hit.cosine:.3f} {hit.caption}") for hit in self.hits)
        return gallery(self.query, shown)


def search(
    store: ArtifactStore,
    version: IndexVersion,
    settings: Settings,
    text: str,
    neighbors: int,
    probes: int | None = None,
) -> Hits:
    """The nearest images of a text. The model is compared with the index before it is loaded."""
    if not text.strip() or len(text) > MOST_CHARACTERS:
        raise InputError(
            what=f"the text to look for is empty or longer than {MOST_CHARACTERS} characters",
            fix="describe an image in a few words",
        )
    model = resolved_model(store, settings.encode.model)
    check_named_model(store, version, model)
    from mudg_core.encode.models import load_text_encoder  # torch takes longer than all else here

    how = Probing(settings.index.probes, settings.index.mass, settings.index.gain)
    if probes:
        how = replace(how, probes=probes)
    query = load_text_encoder(model).encode_texts([text])
    found = open_searcher(store, version).search(query, neighbors, how, settings.index.rerank).hits
    rows = found.rows[0][found.rows[0] >= 0]
    shards = [EmbeddingShard.open(store.folder(ref)) for ref in version.embeddings]
    metadata = gather_metadata(shards, rows)
    gone = read_takedowns(store).matches(metadata)  # a version from before may have them
    hits = tuple(
        Hit(facts["row"], round(float(cosine), 4), facts["caption"], facts["url"], facts)
        for facts, cosine, taken_down in zip(metadata.to_pylist(), found.cosines[0], gone, strict=False)
        if not taken_down
    )
    return Hits(text, hits, store, version)
