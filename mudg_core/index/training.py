"""What each variant's centroids are trained on, as shards that can be loaded wherever there is room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mudg_core.index.coarse import Centring
from mudg_core.index.kmeans import SAMPLED, Clustering, PairShard, cut, initial
from mudg_core.index.pairs import Pairs, held_out
from mudg_core.index.samples import Samples
from mudg_core.index.vectors import Float16, Float32, normalised


@dataclass(frozen=True)
class TrainingPairs:
    """The pairs of one variant, still on disk: nothing is loaded but the shard that is asked for."""

    variant: str
    pairs: Pairs
    samples: Samples

    @property
    def centring(self) -> Centring:
        """Only the variants that centre do; for the others nothing is taken away."""
        found = self.pairs.centring
        return found if self.variant == "centred" else Centring(found.image * 0, found.text * 0)

    @property
    def images(self) -> Float16:
        """Plain k-means learns from images as the corpus has them, the paired ones from those texts find. The
        last texts are left for the router, which must not be judged on what shaped its cells."""
        return self.pairs.gallery if self.variant == "kmeans" else self.paired

    @property
    def paired(self) -> Float16:
        return self.pairs.images[: len(self.pairs.images) - held_out(len(self.pairs.images))]

    def shards(self, most: int) -> list[slice]:
        return cut(len(self.images), most)

    def load(self, part: slice) -> PairShard:
        images = self.centring.images(normalised(self.images[part]))
        if self.variant == "kmeans":
            return PairShard(images, images, self._sample(part))
        return PairShard(images, self.centring.texts(normalised(self._texts(part))))

    def _sample(self, part: slice) -> tuple[Float32, Float32]:
        """Plain k-means trains on no texts; those of as many pairs tell whether queries find their cell."""
        some = slice(part.start, min(part.stop, len(self.paired)), SAMPLED)
        return normalised(self.paired[some]), normalised(self._texts(some))

    def _texts(self, part: slice) -> Float16:
        texts: Float16 = self.samples.vectors[self.samples.counts.part("training")][part]
        return texts

    def start(self, cells: int, seed: int) -> Clustering:
        """Random images."""
        chosen: Float32 = normalised(np.asarray(self.images[initial(self.images, cells, seed)]))
        return Clustering(self.centring.images(chosen), ())
