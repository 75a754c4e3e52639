"""`mudg predict` beside bare forward passes, in one process, taking turns.

Ours reads files, decodes JPEGs, classifies and formats lines. The bare loop has its tensors in memory and
does nothing but forward passes of the image tower: once with one caller whose layers use all cores, and once
with as many callers as ours has threads; the faster of the two counts. The model is a ViT-B-32 with random
weights.
"""

from __future__ import annotations

import io
import json
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.embed.raw import untrained
from mudg_core.processes import usable_cpus

HOME = Path(".mudg/bench-train")
CLASSES = 1000
WEB = (640, 480)  # pixels, as images of the web and of most datasets have them
PHOTO = (4032, 3024)  # as cameras make them
DIFFERENT = 8
NOISE = 8.0  # of 255, which gives JPEGs of the usual bytes for their pixels


@dataclass(frozen=True)
class Seconds:
    """Of one turn: on the wall, and of all cores together, which other work on the machine disturbs less."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Round:
    ours: Seconds
    bare: tuple[Seconds, ...]

    @property
    def ratio(self) -> float:
        return min(one.wall for one in self.bare) / self.ours.wall

    @property
    def cpu_ratio(self) -> float:
        return min(one.cpu for one in self.bare) / self.ours.cpu


def measure(
    images: int = 256, photos: int = 64, rounds: int = 3, model: str | None = None
) -> dict[str, float]:
    """Images a second of ours over those of the bare loop: medians over the rounds."""
    folder = classifier(model or untrained(HOME / "vit-b-32", "ViT-B-32"), HOME / "classifier")
    figures: dict[str, float] = {}
    for name, size, count in (("", WEB, images), ("_12_megapixels", PHOTO, photos)):
        taken = turns(folder, drawn(HOME / f"images{name}", size, count), rounds)
        seconds = statistics.median(one.ours.wall for one in taken)
        figures[f"predict_over_raw{name}"] = statistics.median(one.ratio for one in taken)
        figures[f"predict_over_raw_cpu{name}"] = statistics.median(one.cpu_ratio for one in taken)
        figures[f"predict_images_per_second{name}"] = count / seconds
    return figures


def turns(folder: Path, files: list[Path], rounds: int) -> list[Round]:
    from mudg_core.predict.model import MAX_THREADS, model_threads, open_model, pixels_of, predict
    from mudg_core.predict.write import write_all

    model = open_model(folder)
    size, cores = model.clip.batch_size, usable_cpus()
    pixels = np.stack([pixels_of(model.clip, file) for file in files])
    ready = model.clip.normalise(pixels)
    batches = [ready[first : first + size] for first in range(0, len(ready), size)]

    def forward(batch: object) -> None:
        import torch

        with torch.inference_mode():
            model.clip.network.encode_image(batch, normalize=True)

    def ours() -> None:
        stream = io.StringIO()
        for _ in write_all(predict(model, files), stream, "table", model.classes, 1):
            pass

    def bare(callers: int) -> None:
        with model_threads(max(1, cores // callers)), ThreadPoolExecutor(callers) as pool:
            list(pool.map(forward, batches))

    ways = sorted({1, min(cores, MAX_THREADS)})
    forward(batches[0])  # the first of everything is slower
    return [Round(timed(ours), tuple(timed(partial(bare, n)) for n in ways)) for _ in range(rounds)]


def timed(work: Callable[[], None]) -> Seconds:
    wall, cpu = time.monotonic(), time.process_time()
    work()
    return Seconds(time.monotonic() - wall, time.process_time() - cpu)


# -- what is classified, and by what ----------------------------------------------------------------------


def classifier(model: str, folder: Path) -> Path:
    """A folder as `mudg model export` writes it, of classes that nobody has named."""
    import torch
    from safetensors.torch import save_file

    from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE, locate
    from mudg_core.train.export import CLASSES_FILE, CLASSIFIER_FILE

    source = Path(locate(model)[0].removeprefix("local-dir:"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        shutil.copyfile(source / name, folder / name)
    dim = json.loads((folder / CONFIG_FILE).read_text())["model_cfg"]["embed_dim"]
    features = torch.randn(CLASSES, dim, generator=torch.Generator().manual_seed(0))
    save_file({"single": torch.nn.functional.normalize(features, dim=-1)}, folder / CLASSIFIER_FILE)
    facts = {"classes": [f"class {n}" for n in range(CLASSES)], "temperature": {"single": 25.0}}
    (folder / CLASSES_FILE).write_text(json.dumps(facts))
    return folder


def drawn(folder: Path, size: tuple[int, int], count: int) -> list[Path]:
    """JPEGs with slopes and grain, drawn once. Eight are enough: decoders do not get used to a picture."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{size[0]}-{number:05d}.jpg" for number in range(count)]
    for number, file in enumerate(files):
        if file.is_file():
            continue
        if number < DIFFERENT:
            picture(size, number).save(file, quality=90)
        else:
            shutil.copyfile(files[number % DIFFERENT], file)
    return files


def picture(size: tuple[int, int], seed: int) -> Image.Image:
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), dtype=np.float32)
    grain = random.standard_normal(smooth.shape, dtype=np.float32) * NOISE
    return Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
