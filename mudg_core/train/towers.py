"""open_clip's towers, cut where training begins: blocks below run without a graph, blocks above learn.

Of what leaves the last block of a ViT only the class token is used, and of a text only its end token. So the
last block computes these alone, with all tokens as keys: the same features for a sixth of its work. Prompts
begin alike (start token, soft prompt, "a"), and in a causal tower what they begin with is the same in all of
them: it goes through the blocks once, and the other tokens see its keys and values. Attention is computed
here, as torch's module copies its input into another order of tokens and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mudg_core.encode.models import open_clip
from mudg_core.errors import ModelError

ViT = open_clip.transformer.VisionTransformer
ResNet = open_clip.modified_resnet.ModifiedResNet
TextTransformer = open_clip.transformer.TextTransformer
PlainBlock = open_clip.transformer.ResidualAttentionBlock
KeysValues = tuple[Tensor, Tensor]
FIX = "use a model of open_clip with its own ViT or ResNet and text transformer, such as ViT-B-16 or RN50"


class Vision(Protocol):
    """Names are those of the whole network's parameters."""

    names: list[str]  # of blocks, first to last
    ends: tuple[str, ...]  # how the names of the final norm and projection begin

    def lower(self, images: Tensor, first: int) -> Tensor:
        """The input of block `first`."""
        ...

    def upper(self, hidden: Tensor, first: int) -> Tensor:
        """Features, from the input of block `first`."""
        ...


class VisionBlocks:
    """A vision transformer."""

    ends: tuple[str, ...] = ("visual.ln_post.", "visual.proj")

    def __init__(self, visual: Any) -> None:
        self.visual = visual
        self.names = [f"visual.transformer.resblocks.{i}." for i in range(len(visual.transformer.resblocks))]

    def lower(self, images: Tensor, first: int) -> Tensor:
        return _through(self.visual.transformer.resblocks[:first], self.visual._embeds(images))

    def upper(self, hidden: Tensor, first: int) -> Tensor:
        visual, last = self.visual, self.visual.transformer.resblocks[-1]
        x = _through(visual.transformer.resblocks[first:-1], hidden)
        short = visual.pool_type == "tok" and _plain(last)
        pooled = visual._pool(_only(last, x, x[:, :1]) if short else last(x))[0]
        return _projected(pooled, visual.proj)


class Bottlenecks:
    """A ResNet: its blocks are the bottlenecks of all layers in a row, its attention pool is the projection.
    Batch norms keep their statistics, because the student is never in training mode."""

    ends: tuple[str, ...] = ("visual.attnpool.",)

    def __init__(self, visual: Any) -> None:
        self.visual = visual
        self.names = [f"visual.layer{n}.{i}." for n in range(1, 5) for i in range(len(self._layer(n)))]

    def lower(self, images: Tensor, first: int) -> Tensor:
        return _through(self._blocks()[:first], self.visual.stem(images))

    def upper(self, hidden: Tensor, first: int) -> Tensor:
        features: Tensor = self.visual.attnpool(_through(self._blocks()[first:], hidden))
        return features

    def _layer(self, number: int) -> Any:
        return getattr(self.visual, f"layer{number}")

    def _blocks(self) -> list[nn.Module]:
        return [block for number in range(1, 5) for block in self._layer(number)]


class Text:
    """A text transformer, in the network itself or under `text.`."""

    def __init__(self, part: Any, prefix: str, pool: str, end: int) -> None:
        self.part, self.pool, self.end_token = part, pool, end
        self.names = [f"{prefix}transformer.resblocks.{i}." for i in range(len(part.transformer.resblocks))]
        self.ends = (f"{prefix}ln_final.", f"{prefix}text_projection")

    def embed(self, tokens: Tensor) -> Tensor:
        embedded: Tensor = self.part.token_embedding(tokens)
        return embedded

    def end(self, tokens: Tensor) -> Tensor:
        """The place in each text whose feature stands for the text."""
        if self.pool == "argmax":
            return tokens.argmax(dim=1)
        if self.pool == "eos":
            return torch.eq(tokens, self.end_token).int().argmax(dim=1)
        return torch.full_like(tokens[:, 0], 0 if self.pool == "first" else tokens.shape[1] - 1)

    def features(self, tokens: Tensor, soft: Tensor) -> Tensor:
        """`soft` stands for the tokens after the first. In a causal tower no token sees a later one, so
        nothing after the last end is computed."""
        part, end, rows = self.part, self.end(tokens), torch.arange(len(tokens), device=tokens.device)
        mask, length = part.attn_mask, tokens.shape[1]
        if mask is not None:
            length = max(int(end.max()), len(soft)) + 1
            mask = mask[:length, :length]
        x = self.embed(tokens[:, :length])
        x = torch.cat([x[:, :1], soft.expand(len(x), -1, -1), x[:, 1 + len(soft) :]], dim=1)
        x = x + part.positional_embedding[:length]
        if all(map(_plain, part.transformer.resblocks)):
            x = self._at_end(x, end, mask, 0 if mask is None else _shared(tokens, len(soft), int(end.min())))
        else:
            x = _through(part.transformer.resblocks, x, attn_mask=mask)[rows, end]
        return _projected(part.ln_final(x), part.text_projection)

    def _at_end(self, x: Tensor, end: Tensor, mask: Tensor | None, shared: int) -> Tensor:
        """What the last block gives for the end token; all texts have the same first `shared` tokens."""
        *blocks, last = self.part.transformer.resblocks
        places = torch.arange(x.shape[1], device=x.device)
        later = None if mask is None else places > end[:, None]
        before, x = _through_shared(blocks, last, x, shared, mask)
        wanted = x[torch.arange(len(x), device=x.device), end - shared][:, None]
        return _only(last, x, wanted, later, before)[:, 0]


def vision(network: Any) -> Vision:
    """The vision tower of a network, or an error for one that cannot be cut."""
    visual = getattr(network, "visual", None)
    if isinstance(visual, ResNet):
        return Bottlenecks(visual)
    if isinstance(visual, ViT) and visual.attn_pool is None and visual.pool_type != "none":
        return VisionBlocks(visual)
    raise ModelError(what=f"a vision tower of this kind cannot be trained: {_kind(visual)}", fix=FIX)


def text(network: Any) -> Text:
    """The same of the text tower."""
    if isinstance(network, open_clip.CLIP):
        return Text(network, "", network.text_pool_type, network.text_eos_id)
    part = getattr(network, "text", None)
    plain = isinstance(part, TextTransformer) and part.cls_emb is None and not part.use_pad_mask
    if part is not None and plain and part.pool_type != "none":
        return Text(part, "text.", part.pool_type, part.eos_id)
    raise ModelError(what=f"a text tower of this kind cannot be trained: {_kind(part)}", fix=FIX)


def _kind(tower: Any) -> str:
    return "there is none" if tower is None else type(tower).__name__


def _projected(x: Tensor, projection: Any) -> Tensor:
    if projection is None:
        return x
    out: Tensor = projection(x) if isinstance(projection, nn.Linear) else x @ projection
    return out


def _through(blocks: Sequence[Any], x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    for block in blocks:
        if _plain(block):
            x, _ = _block(block, x, attn_mask)
        else:
            x = block(x) if attn_mask is None else block(x, attn_mask=attn_mask)
    return x


def _through_shared(
    blocks: Sequence[Any], last: Any, x: Tensor, shared: int, mask: Tensor | None
) -> tuple[KeysValues | None, Tensor]:
    """What tokens after the first `shared` are given by the last block; and its keys and values of those."""
    if not shared or mask is None:
        return None, _through(blocks, x, mask)
    first, x = x[:1, :shared], x[:, shared:]
    for block in blocks:
        first, before = _block(block, first, mask[:shared, :shared])
        x, _ = _block(block, x, mask[shared:], before)
    return _keys_values(last.attn, last.ln_1(first)), x


def _shared(tokens: Tensor, soft: int, most: int) -> int:
    """With how many tokens all texts begin; the soft prompt stands in for those after the first."""
    same = (tokens == tokens[:1]).all(dim=0)
    same[1 : 1 + soft] = True
    return min(int(same.cumprod(dim=0).sum()), most) if len(tokens) > 1 else 0


def _plain(block: Any) -> bool:
    """Whether it is open_clip's usual block around torch's usual attention."""
    attn = getattr(block, "attn", None)
    if type(block) is not PlainBlock or not isinstance(attn, nn.MultiheadAttention):
        return False
    return attn.in_proj_bias is not None and attn.bias_k is None and not hasattr(block, "ln_1_kv")


def _block(
    block: Any, x: Tensor, mask: Tensor | None, before: KeysValues | None = None
) -> tuple[Tensor, KeysValues]:
    """A block's output, and its keys and values. `before` are those of earlier tokens, the same for all."""
    attn = block.attn
    joined = F.linear(block.ln_1(x), attn.in_proj_weight, attn.in_proj_bias)
    queries, keys, values = (_heads(attn, part) for part in joined.chunk(3, dim=-1))
    seen = _attention(attn, queries, _after(before, (keys, values)), mask)
    x = x + block.ls_1(seen)
    return x + block.ls_2(block.mlp(block.ln_2(x))), (keys, values)


def _only(
    block: Any,
    x: Tensor,
    wanted: Tensor,
    unseen: Tensor | None = None,
    before: KeysValues | None = None,
) -> Tensor:
    """A block's output for the `wanted` tokens of `x` alone; `unseen` marks tokens that they may not see."""
    attn, dim = block.attn, block.attn.embed_dim
    queries = F.linear(block.ln_1(wanted), attn.in_proj_weight[:dim], attn.in_proj_bias[:dim])
    known = _after(before, _keys_values(attn, block.ln_1(x)))
    seen = _attention(attn, _heads(attn, queries), known, None if unseen is None else ~unseen[:, None, None])
    wanted = wanted + block.ls_1(seen)
    out: Tensor = wanted + block.ls_2(block.mlp(block.ln_2(wanted)))
    return out


def _keys_values(attn: nn.MultiheadAttention, x: Tensor) -> KeysValues:
    dim = attn.embed_dim
    keys, values = F.linear(x, attn.in_proj_weight[dim:], attn.in_proj_bias[dim:]).chunk(2, dim=-1)
    return _heads(attn, keys), _heads(attn, values)


def _after(before: KeysValues | None, own: KeysValues) -> KeysValues:
    if before is None:
        return own
    keys, values = (
        torch.cat([one.expand(len(two), -1, -1, -1), two], dim=2)
        for one, two in zip(before, own, strict=True)
    )
    return keys, values


def _attention(
    attn: nn.MultiheadAttention, queries: Tensor, known: KeysValues, mask: Tensor | None
) -> Tensor:
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(queries.dtype)
    seen = F.scaled_dot_product_attention(queries, *known, attn_mask=mask)
    out: Tensor = attn.out_proj(seen.transpose(1, 2).flatten(2))
    return out


def _heads(attn: nn.MultiheadAttention, x: Tensor) -> Tensor:
    """(texts, heads, tokens, dim of a head)"""
    return x.view(*x.shape[:2], attn.num_heads, -1).transpose(1, 2)
