"""Every call into the pipeline that these benchmarks make: where stages change, this file follows."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from distributed import Client
from PIL import Image

from deployments.on_prefect import call
from flows.build_index import plan_shards
from mudg_core.corpus.shards import read_shard
from mudg_core.encode.weights import locate
from mudg_core.settings import DEMO_MODEL, Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Recipe, layout
from tasks.code import CODE
from tasks.corpus import draw_shard
from tasks.embed import embed
from tasks.executors.clusters import DASK
from tasks.executors.in_process import ThreadHost
from tasks.executors.session import session as session  # for the command: it calls nothing else of ours
from tasks.flow import flow
from tasks.policy import build_batch
from tasks.run import Run

if TYPE_CHECKING:
    import torch

    from mudg_core.encode.models import Clip

WORKER_SECONDS = 300


def settings_for(home: Path, rows: int, rows_per_shard: int, **areas: dict[str, Any]) -> Settings:
    """The defaults, with a store in `home`; the developer's own environment has no say."""
    corpus = {"source": "demo", "rows": rows, "rows_per_shard": rows_per_shard} | areas.pop("corpus", {})
    storage = {"url": f"file://{home.absolute()}", "cache_dir": str(home.absolute() / "cache")}
    encode = {"model": DEMO_MODEL} | areas.pop("encode", {})
    tree = {"corpus": corpus, "storage": storage, "encode": encode, **areas}
    return load_settings(overrides=tree, environ={})


# -- drawn shards, and stores to embed them into ----------------------------------------------------------


def shard_recipes(settings: Settings) -> list[Recipe]:
    planned = plan_shards(settings)
    return [draw_shard.recipe(settings, {"first_row": first, "rows": rows}) for first, rows in planned]


def known_shards(settings: Settings) -> list[ArtifactRef] | None:
    """The corpus shards, if all of them were drawn before."""
    store = ArtifactStore(settings.storage)
    found = [store.find(recipe) for recipe in shard_recipes(settings)]
    shards = [ref for ref in found if ref is not None]
    return shards if len(shards) == len(found) else None


@contextmanager
def fresh_store(settings: Settings) -> Iterator[Settings]:
    """A store beside the one given that has the same drawn shards and nothing else: whatever is asked of it
    has to be made. Gone after use."""
    home = Path(settings.storage.url.removeprefix("file://"))
    drawn = Path(layout.manifest(draw_shard.name, "0" * 64)).parents[1]
    with TemporaryDirectory(prefix="fresh-", dir=home.parent, ignore_cleanup_errors=True) as folder:
        (Path(folder) / drawn).parent.mkdir(parents=True)
        (Path(folder) / drawn).symlink_to(home / drawn)
        storage = {"url": f"file://{folder}", "cache_dir": f"{folder}/cache"}
        yield settings.replace({"storage": storage})


def tar_of(settings: Settings, shard: ArtifactRef) -> Path:
    return ArtifactStore(settings.storage).file(shard, "shard.tar")


def model_folder(settings: Settings) -> Path:
    path, _ = locate(settings.encode.model)
    return Path(path.removeprefix("local-dir:"))


def folder_of(settings: Settings, embedding: ArtifactRef) -> Path:
    return ArtifactStore(settings.storage).folder(embedding)


# -- as a flow, on a cluster ------------------------------------------------------------------------------


def warm(ready: Settings) -> None:
    """All workers up, with their libraries loaded and a model tried: what a long run pays once."""
    with Client(ready.compute.dask_address) as client:  # type: ignore[no-untyped-call]
        client.submit(bool).result(WORKER_SECONDS)  # the first task starts the workers
        client.wait_for_workers(ready.compute.workers, timeout=WORKER_SECONDS)
        client.run(_try_model, ready)


def _try_model(settings: Settings) -> None:
    load(settings)


def draw_all(ready: Settings) -> list[ArtifactRef]:
    return call(_draw_flow, ready)


def embed_all(ready: Settings, shards: Sequence[ArtifactRef]) -> tuple[list[ArtifactRef], float]:
    """Embeddings, and the wall time of the stage."""
    return call(_embed_flow, ready, list(shards))


@flow("bench-draw", "Draws shards.", run_name=lambda settings: "bench-draw")
def _draw_flow(settings: Settings) -> list[ArtifactRef]:
    jobs = [draw_shard.job(first_row=first, rows=rows) for first, rows in plan_shards(settings)]
    return draw_shard.map(Run(settings), jobs)


@flow("bench-embed", "Embeds shards.", run_name=lambda settings, shards: "bench-embed")
def _embed_flow(settings: Settings, shards: list[ArtifactRef]) -> tuple[list[ArtifactRef], float]:
    started = time.monotonic()
    jobs = [embed.job(shard=shard) for shard in shards]
    run = Run(settings)
    refs = embed.map(run, jobs, per_task=run.shards_per_task(len(jobs)))
    return refs, time.monotonic() - started


def rows_of(settings: Settings, refs: Sequence[ArtifactRef]) -> int:
    store = ArtifactStore(settings.storage)
    return sum(int(str(store.manifest(ref).facts["rows"])) for ref in refs)


def seconds_inside(settings: Settings, refs: Sequence[ArtifactRef]) -> float:
    """What workers have spent in the stage's own function."""
    store = ArtifactStore(settings.storage)
    return sum(store.manifest(ref).circumstances.seconds for ref in refs)


# -- in one process, without orchestration ----------------------------------------------------------------


def worker_environment() -> dict[str, str]:
    """What a worker of a local cluster is started with: one thread, and our way with freed memory."""
    with dask.config.set(DASK):  # and read in it: the same dictionary is set back behind it
        found = dask.config.get("distributed.nanny.pre-spawn-environ")
        return {name: str(value) for name, value in found.items()}


def draw_here(settings: Settings) -> list[ArtifactRef]:
    return _made("tasks.corpus:draw_shard", settings, shard_recipes(settings))


def embed_here(settings: Settings, shards: Sequence[ArtifactRef]) -> list[ArtifactRef]:
    """As a worker does it, store included: so many shards with one model as a task has."""
    recipes = [embed.recipe(settings, {"shard": shard}) for shard in shards]
    size = settings.compute.shards_per_task
    groups = [recipes[first : first + size] for first in range(0, len(recipes), size)]
    return [ref for group in groups for ref in _made("tasks.embed:embed", settings, group)]


def models_loaded(settings: Settings, shards: Sequence[ArtifactRef]) -> int:
    """How often `embed_here` loads the model."""
    return -(-len(shards) // settings.compute.shards_per_task)


def _made(where: str, settings: Settings, recipes: list[Any]) -> list[ArtifactRef]:
    return build_batch(where, settings, recipes, "", CODE, ThreadHost())


def load(settings: Settings) -> Clip:
    from mudg_core.encode.models import load_clip

    return load_clip(settings.encode.model, settings.compute.device)


def batch_size(settings: Settings, clip: Clip) -> int:
    return settings.encode.batch_size or clip.batch_size


def tensors(settings: Settings, clip: Clip, shard: ArtifactRef) -> tuple[torch.Tensor, torch.Tensor]:
    """All that a forward pass takes: normalised pixels, and captions as tokens at full length."""
    pixels, captions = [], []
    for sample in read_shard(tar_of(settings, shard)):
        with Image.open(io.BytesIO(sample.image or b"")) as image:
            pixels.append(clip.pixels(image))
        captions.append(sample.caption)
    return clip.normalise(np.stack(pixels)).contiguous(), clip.tokens(captions)
