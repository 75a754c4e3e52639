"""The student: a CLIP model of which the last blocks of both towers and a soft prompt are trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mudg_core.encode.models import Clip
from mudg_core.errors import ModelError
from mudg_core.train import towers


def trainable_names(network: nn.Module, blocks: int, vision_from: int | None = None) -> list[str]:
    """Names of the trained parameters: last `blocks` of each tower, their final norms and projections."""
    vision, text = towers.vision(network), towers.text(network)
    trained = (
        *vision.names[first_trained(vision, blocks, vision_from) :],
        *vision.ends,
        *text.names[-blocks:],
        *text.ends,
    )
    return [name for name, _ in network.named_parameters() if name.startswith(trained)]


def first_trained(vision: towers.Vision, blocks: int, vision_from: int | None) -> int:
    """The vision block where training begins: at least the last `blocks` are trained."""
    last = max(0, len(vision.names) - blocks)
    return last if vision_from is None else min(last, vision_from)


class Student(nn.Module):
    """CLIP with a shared soft prompt.

    The prompt's vectors stand in for the words it starts from ("a photo of") where a text begins with them,
    and go in front of any other text, so that before training nothing has changed for usual templates.
    It stays in evaluation mode while it learns: CLIP has no dropout, and batch norms must not drift.
    """

    def __init__(self, clip: Clip, blocks: int, prompt: str, vision_from: int | None = None) -> None:
        super().__init__()
        self.clip = clip
        self.prompt = prompt
        self.network: Any = clip.network.eval()
        self._vision, self._text = towers.vision(self.network), towers.text(self.network)
        self._first = first_trained(self._vision, blocks, vision_from)
        trained = set(trainable_names(self.network, blocks, vision_from))
        for name, parameter in self.network.named_parameters():
            parameter.requires_grad_(name in trained)
        self._words = torch.tensor(_words(clip, prompt), device=clip.device)
        with torch.no_grad():
            start = self._text.embed(self._words)
        self.soft_prompt = nn.Parameter(start.clone())

    def trained_parameters(self) -> dict[str, nn.Parameter]:
        """By name, in a fixed order; the soft prompt first."""
        named = dict(self.network.named_parameters())
        return {"soft_prompt": self.soft_prompt} | {n: p for n, p in named.items() if p.requires_grad}

    def vision_parameters(self) -> dict[str, nn.Parameter]:
        """The trained ones of the vision tower, by the names that they have in this module."""
        named = dict(self.named_parameters())
        return {n: p for n, p in named.items() if p.requires_grad and n.startswith("network.visual.")}

    def tokens(self, texts: Sequence[str]) -> Tensor:
        """Token ids with room for the soft prompt right after the start token."""
        ids, words = self.clip.tokens(texts), len(self._words)
        fits = (ids[:, 1 : 1 + words] == self._words.cpu()).all(dim=1).tolist()
        pairs = zip(texts, fits, strict=True)
        longer = self.clip.tokens([text if fit else f"{self.prompt} {text}" for text, fit in pairs])
        return longer.to(self.clip.device)

    def ends(self, tokens: Tensor) -> Tensor:
        """How long texts are: their features take time by the longest of a batch."""
        return self._text.end(tokens)

    def text_features(self, tokens: Tensor) -> Tensor:
        """Unit-norm features of texts whose first words are the soft prompt."""
        return F.normalize(self._text.features(tokens, self.soft_prompt), dim=-1)

    @torch.no_grad()
    def hidden(self, images: Tensor) -> Tensor:
        """The input of the first trained block of the vision tower: the same for student and teacher."""
        return self._vision.lower(images, self._first)

    def forward(self, hidden: Tensor) -> Tensor:
        """Unit-norm image features from there on."""
        return F.normalize(self._vision.upper(hidden, self._first), dim=-1)

    def image_features(self, images: Tensor) -> Tensor:
        """Unit-norm features; frozen blocks build no graph."""
        features: Tensor = self(self.hidden(images))
        return features


def _words(clip: Clip, prompt: str) -> list[int]:
    """Tokens of the prompt. It has its place after a start token, which other tokenizers may lack."""
    tokenizer = clip.tokenizer
    if not hasattr(tokenizer, "encode") or not hasattr(tokenizer, "sot_token_id"):
        what = f"the soft prompt needs a start token before it, which {type(tokenizer).__name__} has not"
        raise ModelError(what=what, where=clip.name, fix="use a model with CLIP's own tokenizer")
    return list(tokenizer.encode(prompt))


def initial_student(clip: Clip, prompt: str) -> Student:
    """The student before any training; `clip` becomes its own."""
    return Student(clip, 1, prompt).requires_grad_(False).eval()


@torch.no_grad()
def interpolate(initial: Student, tuned: Student, alpha: float) -> Student:
    """(1 - alpha) initial + alpha finetuned weights; both stay as they are. The tokenizer, which has no
    weights and takes longer to copy than they do, is shared."""
    tokenizer = tuned.clip.tokenizer
    mixed = copy.deepcopy(tuned, {id(tokenizer): tokenizer})
    start = dict(initial.named_parameters())
    for name, parameter in mixed.named_parameters():
        parameter.copy_(torch.lerp(start[name], parameter, alpha))
    return mixed
