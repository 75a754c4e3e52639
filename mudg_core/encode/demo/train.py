"""Trains the demo world's two CLIP models: `python -m mudg_core.encode.demo.train index|student`.

They see pairs of the demo world drawn with seeds of their own: no row of the corpus, no evaluation image,
and no image in a style that the corpus lacks. `f_index` sees more pairs with wider towers than `f_student`,
so that there is something to learn from retrieval, as with ViT-L/14 and ViT-B/16 in the paper.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.lib.format import open_memmap
from rich.console import Console
from rich.progress import track
from safetensors.torch import save_file

from mudg_core.corpus.demo.world import DemoWorld
from mudg_core.encode.models import Pixels, open_clip
from mudg_core.encode.weights import CONFIG_FILE, DEMO_MODELS, WEIGHTS_FILE

SIZE = 64
# What the towers were brought up on: more drawings than the corpus has, but none of the styles it lacks.
STYLE_MIX = {"photo": 0.4, "clipart": 0.2, "cartoon": 0.14, "watercolor": 0.08, "sketch": 0.12, "pixel": 0.06}
MEAN = STD = (0.5, 0.5, 0.5)
console = Console(stderr=True)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a model, shipped beside its weights."""

    pairs: int
    epochs: int
    embed_dim: int
    vision_width: int
    vision_layers: int
    text_width: int
    text_layers: int
    patch: int = 8
    context: int = 24
    batch: int = 256
    rate: float = 1.5e-3
    weight_decay: float = 0.1
    warmup: int = 200
    patch_dropout: float = 0.5
    seed: int = 1_000_003

    def config(self) -> dict[str, Any]:
        vision = {
            "image_size": SIZE,
            "patch_size": self.patch,
            "width": self.vision_width,
            "layers": self.vision_layers,
            "head_width": 32,
        }
        text = {
            "context_length": self.context,
            "vocab_size": 49408,
            "width": self.text_width,
            "heads": self.text_width // 16,
            "layers": self.text_layers,
        }
        model = {"embed_dim": self.embed_dim, "vision_cfg": vision, "text_cfg": text}
        return {"model_cfg": model, "preprocess_cfg": {"mean": MEAN, "std": STD}}


RECIPES = {
    "index": Recipe(
        pairs=60_000,
        epochs=5,
        embed_dim=128,
        vision_width=128,
        vision_layers=5,
        text_width=64,
        text_layers=3,
    ),
    "student": Recipe(
        pairs=30_000,
        epochs=6,
        embed_dim=96,
        vision_width=96,
        vision_layers=5,
        text_width=48,
        text_layers=4,
        seed=2_000_003,
    ),
}


def render(recipe: Recipe, cache: Path) -> tuple[Pixels, list[str]]:
    """All training pairs, drawn once on every core and kept on disk: drawing costs more than an epoch."""
    images, captions = (
        cache / f"{recipe.seed}-{recipe.pairs}.npy",
        cache / f"{recipe.seed}-{recipe.pairs}.json",
    )
    if not captions.exists():
        cache.mkdir(parents=True, exist_ok=True)
        array = open_memmap(images, mode="w+", dtype=np.uint8, shape=(recipe.pairs, SIZE, SIZE, 3))
        texts = []
        rows = ((recipe.seed, index) for index in range(recipe.pairs * 2))
        with multiprocessing.get_context("spawn").Pool() as pool:
            drawn = (pair for pair in pool.imap(_draw, rows, chunksize=256) if pair is not None)
            for i in track(range(recipe.pairs), "drawing", console=console):
                array[i], text = next(drawn)
                texts.append(text)
            pool.terminate()
        array.flush()
        captions.write_text(json.dumps(texts))
    return np.load(images, mmap_mode="r"), json.loads(captions.read_text())


def _draw(row: tuple[int, int]) -> tuple[Pixels, str] | None:
    seed, index = row
    pair = DemoWorld(seed=seed, style_weights=STYLE_MIX).row(index)
    return None if pair.image is None else (np.asarray(pair.image.convert("RGB")), pair.caption)


def augment(pixels: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Shifts, flips, brightness, sometimes no colour; for a batch (n, 3, h, w) in [0, 1]."""
    n = len(pixels)
    flip = torch.rand(n, generator=generator) < 0.5
    pixels = torch.where(flip.view(-1, 1, 1, 1), pixels.flip(3), pixels)
    down, right = (int(torch.randint(0, 9, (1,), generator=generator)) for _ in range(2))
    pixels = F.pad(pixels, (4, 4, 4, 4), mode="replicate")[:, :, down : down + SIZE, right : right + SIZE]
    gain = 1 + 0.3 * (torch.rand(n, 3, 1, 1, generator=generator) - 0.5)
    pixels = (pixels * gain).clamp(0, 1)
    grey = torch.rand(n, 1, 1, 1, generator=generator) < 0.1
    return torch.where(grey, pixels.mean(dim=1, keepdim=True), pixels)


def train(name: str, cache: Path, out: Path) -> float:
    """Contrastive training with AdamW and a cosine schedule; returns the mean loss of the last epoch."""
    recipe = RECIPES[name]
    images, captions = render(recipe, cache)
    torch.set_num_threads(1)  # the same bits on any machine; train both models side by side instead
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    config = recipe.config()
    model = open_clip.CLIP(**config["model_cfg"])
    model.visual.patch_dropout = open_clip.transformer.PatchDropout(recipe.patch_dropout)
    tokens = open_clip.SimpleTokenizer(context_length=recipe.context)(captions)
    decay = [p for p in model.parameters() if p.ndim >= 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decay, "weight_decay": recipe.weight_decay}, {"params": rest, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))
    per_epoch = recipe.pairs // recipe.batch
    total, step = per_epoch * recipe.epochs, 0
    losses: list[float] = []
    target = torch.arange(recipe.batch)
    for epoch in range(recipe.epochs):
        if epoch == recipe.epochs - 1:
            model.visual.patch_dropout = torch.nn.Identity()  # the last epoch sees whole images, as users do
        order = torch.randperm(recipe.pairs, generator=generator)
        losses = []
        for i in track(range(per_epoch), f"epoch {epoch + 1}/{recipe.epochs}", console=console):
            rows = order[i * recipe.batch : (i + 1) * recipe.batch].sort().values
            batch = torch.from_numpy(images[rows.numpy()]).permute(0, 3, 1, 2).float() / 255
            batch = (augment(batch, generator) - MEAN[0]) / STD[0]
            logits, logits_t = model.get_logits(batch, tokens[rows])
            loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits_t, target)) / 2
            warm, cosine = min(1.0, (step + 1) / recipe.warmup), 0.5 * (1 + math.cos(math.pi * step / total))
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate * warm * cosine
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            model.logit_scale.data.clamp_(0, math.log(100))
            losses.append(loss.item())
            step += 1
        scale = model.logit_scale.exp().item()
        console.log(
            f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, last {losses[-1]:.3f}, scale {scale:.1f}"
        )
        save(out / name, model, config, recipe, float(np.mean(losses)))
    return float(np.mean(losses))


def save(folder: Path, model: torch.nn.Module, config: dict[str, Any], recipe: Recipe, loss: float) -> None:
    """Half precision: the word table is most of the file and loses nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")
    (folder / "recipe.json").write_text(json.dumps(asdict(recipe) | {"final_loss": loss}, indent=2) + "\n")
    save_file({k: v.half().contiguous() for k, v in model.state_dict().items()}, folder / WEIGHTS_FILE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("--cache", type=Path, default=Path(".mudg/demo-training"))
    parser.add_argument("--out", type=Path, default=DEMO_MODELS)
    arguments = parser.parse_args()
    train(arguments.name, arguments.cache, arguments.out)


if __name__ == "__main__":
    main()
