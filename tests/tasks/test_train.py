"""The training stage: what it leaves, what decides its key, and a SIGTERM in the midst of it."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PIL import Image

from mudg_core.dataset.training_set import read_training_set, read_whole_images
from mudg_core.encode.models import load_clip
from mudg_core.evaluate.classifier import image_features
from mudg_core.storage import ArtifactRef, ArtifactStore
from mudg_core.train.finetune import EVENTS
from tests.support import training_sets
from tests.tasks.training import built, prepared, settings_at

ROOT = Path(__file__).parents[2]
STEPS = 50


def test_same_seed_same_digest_though_events_tell_the_time(tmp_path: Path) -> None:
    refs = []
    for name in ("one", "two"):
        settings = settings_at(tmp_path / name, iterations=3)
        refs.append(built(settings, prepared(settings)))
    assert refs[0] == refs[1]
    store = ArtifactStore(settings.storage)
    manifest = store.manifest(refs[1])
    assert [entry.name for entry in manifest.files if entry.volatile] == [f"tensorboard/{EVENTS}"]
    losses = json.loads(store.file(refs[1], "losses.json").read_text())
    assert manifest.facts == {"images": 10, "initial_share": 0.125, "last_loss": losses[2]}


def test_crops_are_cut_from_the_whole_stored_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that differ at their left edge alone, far outside the square in their middle, train other
    models."""

    def losses(name: str, edge: tuple[int, int, int]) -> list[float]:
        def picture(number: int) -> bytes:
            image, stored = Image.new("RGB", (192, 64), (number * 20, 100, 50)), io.BytesIO()
            image.paste(edge, (0, 0, 48, 64))
            image.save(stored, "PNG")
            return stored.getvalue()

        monkeypatch.setattr(training_sets, "picture", picture)
        settings = settings_at(tmp_path / name, iterations=3)
        file = ArtifactStore(settings.storage).file(built(settings, prepared(settings)), "losses.json")
        return list(json.loads(file.read_text()))

    red, again, blue = losses("red", (250, 0, 0)), losses("again", (250, 0, 0)), losses("blue", (0, 0, 250))
    assert red == again != blue


def test_evaluation_and_gate_look_at_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same pictures: another edge changes neither features nor what a held-out set shows."""
    clip, images = load_clip("demo:student"), []
    for edge in ((250, 0, 0), (0, 0, 250)):
        image = Image.new("RGB", (192, 64), (20, 100, 50))
        image.paste(edge, (0, 0, 48, 64))
        images.append(image)
    shown = SimpleNamespace(labels={"photo": [0, 0]}, images=lambda domain: iter(images))
    first, second = image_features(clip, cast(Any, shown), 2)["photo"]
    assert (first == second).all()
    stored = io.BytesIO()
    images[0].save(stored, "PNG")
    monkeypatch.setattr(training_sets, "picture", lambda number: stored.getvalue())
    settings = settings_at(tmp_path)
    dataset = prepared(settings).parents["dataset"]
    assert isinstance(dataset, ArtifactRef)
    folder = ArtifactStore(settings.storage).folder(dataset)
    pixels, _ = read_training_set(folder, clip)
    whole, _ = read_whole_images(folder, clip)
    assert (pixels == clip.pixels(images[1])).all() and not (whole[0] == clip.whole(images[1])).all()


def test_checkpoints_are_no_part_of_the_key_and_chunks_are(tmp_path: Path) -> None:
    key = prepared(settings_at(tmp_path)).key
    assert prepared(settings_at(tmp_path, checkpoint_every=7, checkpoint_seconds=9)).key == key
    for change in ({"image_chunk": 7}, {"text_chunk": 7}, {"loss": "cross-entropy"}, {"vision_from": 1}):
        assert prepared(settings_at(tmp_path, **change)).key != key


def test_f08_sigterm_checkpoints_and_the_next_run_goes_on(tmp_path: Path) -> None:
    """The signal comes after the first step; far too soon for a checkpoint that is kept by the way."""
    whole, killed = (settings_at(tmp_path / name, iterations=STEPS) for name in ("whole", "killed"))
    expected, recipe = built(whole, prepared(whole)), prepared(killed)
    command = [
        sys.executable,
        "-m",
        "tests.tasks.training",
        killed.model_dump_json(),
        recipe.model_dump_json(),
    ]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith("step 1 of") for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
    assert process.returncode == 5, said
    told = re.search(rf"did after step (\d+) of {STEPS}\n  to do: run again", said)
    assert told is not None, said
    found = ArtifactStore(killed.storage).checkpoints(recipe).latest()
    assert found is not None and found.step == int(told[1]) < STEPS
    assert ArtifactStore(killed.storage).find(recipe) is None
    assert built(killed, recipe) == expected
    assert ArtifactStore(killed.storage).checkpoints(recipe).latest() is None
