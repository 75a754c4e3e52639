"""The student: a CLIP model of which the last blocks of both towers and a soft prompt are trained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mudg_core.encode.models import Clip
from mudg_core.errors import ModelError

_BLOCK = re.compile(r"^(visual\.)?transformer\.resblocks\.(\d+)\.")
_ALWAYS = ("visual.ln_post.", "visual.proj", "ln_final.", "text_projection")


def trainable_names(network: nn.Module, blocks: int) -> list[str]:
    """Names of the trained parameters: last `blocks` of each tower, their final norms and projections."""
    names = [name for name, _ in network.named_parameters()]
    depth: dict[str, int] = {}
    for name in names:
        if match := _BLOCK.match(name):
            tower = match[1] or ""
            depth[tower] = max(depth.get(tower, 0), int(match[2]) + 1)
    if set(depth) != {"visual.", ""}:
        raise ModelError(
            what="the student needs transformer blocks in both towers",
            fix="use a ViT model of open_clip with its own text tower, such as ViT-B-16",
        )

    def trained(name: str) -> bool:
        match = _BLOCK.match(name)
        return int(match[2]) >= depth[match[1] or ""] - blocks if match else name.startswith(_ALWAYS)

    return [name for name in names if trained(name)]


class Student(nn.Module):
    """CLIP with a shared soft prompt.

    The prompt's vectors stand in for the words it starts from ("a photo of") where a text begins with them,
    and go in front of any other text, so that before training nothing has changed for usual templates.
    """

    def __init__(self, clip: Clip, blocks: int, prompt: str) -> None:
        super().__init__()
        self.clip = clip
        self.prompt = prompt
        self.network: Any = clip.network
        trained = set(trainable_names(self.network, blocks))
        for name, parameter in self.network.named_parameters():
            parameter.requires_grad_(name in trained)
        with torch.no_grad():
            self._words = torch.tensor(clip.tokenizer.encode(prompt), device=clip.device)
            start = self.network.token_embedding(self._words)
        self.soft_prompt = nn.Parameter(start.clone())

    def trained_parameters(self) -> dict[str, nn.Parameter]:
        """By name, in a fixed order; the soft prompt first."""
        named = dict(self.network.named_parameters())
        return {"soft_prompt": self.soft_prompt} | {n: p for n, p in named.items() if p.requires_grad}

    def tokens(self, texts: Sequence[str]) -> Tensor:
        """Token ids with room for the soft prompt right after the start token."""
        ids, words = self.clip.tokens(texts), len(self._words)
        fits = (ids[:, 1 : 1 + words] == self._words.cpu()).all(dim=1).tolist()
        pairs = zip(texts, fits, strict=True)
        longer = self.clip.tokens([text if fit else f"{self.prompt} {text}" for text, fit in pairs])
        return longer.to(self.clip.device)

    def text_features(self, tokens: Tensor) -> Tensor:
        """Unit-norm features of texts whose first words are the soft prompt."""
        net, first, after = self.network, 1, 1 + len(self.soft_prompt)
        x = net.token_embedding(tokens)
        soft = self.soft_prompt.expand(len(tokens), -1, -1)
        x = torch.cat([x[:, :first], soft, x[:, after:]], dim=1) + net.positional_embedding
        x = net.ln_final(net.transformer(x, attn_mask=net.attn_mask))
        x = x[torch.arange(len(tokens), device=tokens.device), tokens.argmax(dim=-1)]
        projection = net.text_projection
        x = projection(x) if isinstance(projection, nn.Linear) else x @ projection
        return F.normalize(x, dim=-1)

    def image_features(self, images: Tensor) -> Tensor:
        """Unit-norm features; frozen blocks build no graph, because nothing in them wants a gradient."""
        features: Tensor = self.network.encode_image(images, normalize=True)
        return features
