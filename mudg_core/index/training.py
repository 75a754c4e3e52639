"""What each variant's centroids are trained on, as shards that can be loaded wherever there is room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mudg_core.index.coarse import Centring
from mudg_core.index.kmeans import Clustering, PairShard, cut, initial
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
        if self.variant == "kmeans":
            return self.pairs.gallery
        return self.pairs.images[: len(self.pairs.images) - held_out(len(self.pairs.images))]

    def shards(self, most: int) -> list[slice]:
        return cut(len(self.images), most)

    def load(self, part: slice) -> PairShard:
        images = self.centring.images(normalised(self.images[part]))
        if self.variant == "kmeans":
            return PairShard(images, images)
        texts = normalised(self.samples.vectors[self.samples.counts.part("training")][part])
        return PairShard(images, self.centring.texts(texts))

    def start(self, cells: int, seed: int) -> Clustering:
        """Random images."""
        chosen: Float32 = normalised(np.asarray(self.images[initial(self.images, cells, seed)]))
        return Clustering(self.centring.images(chosen), ())
