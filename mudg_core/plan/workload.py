"""How much of everything a run has: settings, four numbers that no setting says, and the towers' sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from mudg_core.encode.models import model_config, open_clip
from mudg_core.errors import InputError, ModelError
from mudg_core.settings import DEMO_MODEL, INDEX_MODEL, AugmentSettings, Settings
from mudg_core.target.descriptor_pool import built_in, read_pool
from mudg_core.target.prompts import WAFFLES

USUAL_CLASSES = 10
# Floats that a block keeps for each token and channel when it is trained: two norms, query, key, value,
# attention and its projection, four of the hidden layer before and after its activation, two residual sums.
FLOATS_KEPT = 16


@dataclass(frozen=True)
class Tower:
    """A transformer of equal blocks. FLOP are those of one image or text, forward."""

    layers: int
    width: int
    flop: int
    block_flop: int
    parameters: int
    block_bytes: int  # float32 activations of one block for one image or text


@dataclass(frozen=True)
class Towers:
    """Both towers of a model, which meet in `dim` dimensions."""

    dim: int
    image_size: int
    image: Tower
    text: Tower

    @property
    def parameters(self) -> int:
        return self.image.parameters + self.text.parameters


def towers(config: Mapping[str, Any], name: str = "") -> Towers:
    """The towers that open_clip builds for a `model_cfg`: a ViT and a text transformer of its own.

    Built with one block each and without memory (torch's `meta` device), whatever a configuration asks for.
    """
    try:
        dim, vision, text = int(config["embed_dim"]), dict(config["vision_cfg"]), dict(config["text_cfg"])
        other = vision.get("timm_model_name") or text.get("hf_model_name")
        if other or not isinstance(vision.get("layers", 12), int):
            raise ModelError(
                what=f"no estimate for {other or 'a convolutional vision tower'}",
                where=name,
                fix="plan with a ViT of open_clip of about that size, such as ViT-B-16/openai",
            )
        one_block = {"layers": 1}
        with torch.device("meta"):
            vision_cfg = vision | one_block | {"pos_embed_type": "learnable"}  # other positions need memory
            network = open_clip.CustomTextCLIP(dim, vision_cfg, text | one_block)
            image = torch.empty(1, 3, *network.visual.image_size)
            tokens = torch.zeros(1, network.text.context_length, dtype=torch.long)
        return Towers(
            dim,
            min(network.visual.image_size),
            _count(network.visual, image, int(vision.get("layers", 12))),
            _count(network.text, tokens, int(text.get("layers", 12))),
        )
    except ModelError:
        raise
    except Exception as error:  # whatever a constructor makes of values that make no sense
        raise ModelError(
            what=f"not a configuration of open_clip: {type(error).__name__} {error}",
            where=name,
            fix="give a folder written by open_clip",
        ) from error


def _count(network: Any, example: torch.Tensor, layers: int) -> Tower:
    """Of a tower with one block. Matrix products are counted exactly, a multiply-add as two FLOP; norms,
    activations and the softmax are not. Attention is counted in full, also under a causal mask: that is what
    open_clip computes."""
    with FlopCounterMode(display=False) as counter:
        network(example)
    block = f"{type(network).__name__}.transformer.resblocks.0"
    block_flop = sum(counter.get_flop_counts()[block].values())
    block_parameters = sum(tensor.numel() for tensor in network.transformer.resblocks.parameters())
    tokens, width = network.positional_embedding.shape
    return Tower(
        layers=layers,
        width=width,
        flop=counter.get_total_flops() + (layers - 1) * block_flop,
        block_flop=block_flop,
        parameters=sum(tensor.numel() for tensor in network.parameters()) + (layers - 1) * block_parameters,
        block_bytes=4 * FLOATS_KEPT * tokens * width,
    )


@dataclass(frozen=True)
class Workload:
    """A corpus that is indexed once and one target that is searched for in it."""

    settings: Settings
    encoder: Towers  # f_index
    student: Towers
    rows: int
    pairs: int  # texts that the centroids are trained on
    pair_images: int  # searched for q(p)
    cells: int
    block: int  # rows that are in memory at once where shards stream by
    batch: int  # images or texts in one forward pass of f_index
    workers: int
    queries: int
    classes: int
    pool: int  # descriptors to choose from
    hits: int
    candidates: int  # images among the hits, at most: no two queries share one
    picks: int
    held_out: int  # images that the gate judges by, at most: candidates that are not trained on
    tested: int  # evaluation images

    @property
    def dim(self) -> int:
        return self.encoder.dim


def workload(
    settings: Settings,
    queries: int | None = None,
    pair_images: int | None = None,
    pool: int | None = None,
    tested: int | None = None,
) -> Workload:
    """`pair_images` defaults to the whole corpus, which is what the index build searches for q(p); `tested`
    to as many as the demo has for each class in a domain."""
    rows, gate, per_class = settings.corpus.rows, settings.gate, queries_per_class(settings)
    if pair_images is not None and pair_images > rows:
        raise InputError(
            what=f"q(p) over {pair_images} images of a corpus of {rows}",
            fix="search at most the corpus, or raise corpus.rows",
        )
    queries = queries or USUAL_CLASSES * per_class
    classes = -(-queries // per_class)
    hits = queries * settings.dataset.neighbors
    candidates = min(rows, hits)
    picks = min(candidates, classes * settings.dataset.per_class)
    held_out = classes * max(1, min(gate.per_class, gate.images // classes))
    if settings.encode.model == INDEX_MODEL:  # before there is an index
        settings = settings.replace({"encode": {"model": DEMO_MODEL}})
    return Workload(
        settings=settings,
        encoder=towers(model_config(settings.encode.model), settings.encode.model),
        student=towers(model_config(settings.train.model), settings.train.model),
        rows=rows,
        pairs=min(rows, settings.index.training_texts),
        pair_images=pair_images or rows,
        cells=settings.index.cells,
        block=min(rows, settings.corpus.rows_per_shard),
        batch=settings.encode.batch(settings.compute.device),
        workers=settings.compute.workers,
        queries=queries,
        classes=classes,
        pool=pool or _pool(settings.augment),
        hits=hits,
        candidates=candidates,
        picks=picks,
        held_out=min(candidates - picks, held_out),
        tested=classes * settings.evaluate.demo_images if tested is None else tested,
    )


def queries_per_class(settings: Settings) -> int:
    method = settings.augment.method
    if method == "none":
        return 1
    return WAFFLES if method.startswith("waffle") else settings.augment.count


def _pool(settings: AugmentSettings) -> int:
    descriptors = len(read_pool(settings.descriptors) if settings.descriptors else built_in())
    return min(descriptors, settings.pool or descriptors)
