"""An exported model in an environment that has open_clip and nothing of ours: the same logits as here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.peer_environment import ONE_THREAD, environment, run
from mudg_core.encode.models import load_clip
from mudg_core.predict.model import open_model, predict
from tests.interop.conftest import PEERS
from tests.support.exported import exported, pictures

pytestmark = [pytest.mark.interop, pytest.mark.timeout(2400)]  # its environment is made on the way

HERE = Path(__file__).parent
SECONDS = 300.0
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


@pytest.fixture(scope="module")
def python() -> Path:
    return environment(HERE / "peers" / "open_clip.txt", PEERS)


@pytest.mark.parametrize("number", range(3))
def test_open_clip_alone_gives_our_logits(python: Path, tmp_path: Path, number: int) -> None:
    folder = exported(load_clip("demo:student"), tmp_path / "model")
    image = pictures(tmp_path, suffix="jpg")[number].rename(folder / "image.jpg")
    out = tmp_path / "found.json"
    program = HERE / "programs" / "classify.py"
    run("open_clip", [python, "-I", program, folder, out], SECONDS, {**ONE_THREAD, **OFFLINE})
    theirs = json.loads(out.read_text())
    model = open_model(folder)
    (ours,) = predict(model, [image], top=3)
    assert len(theirs["cosines"]) == len(model.classes) == len(ours.guesses)
    for guess in ours.guesses:
        logit = model.temperature * theirs["cosines"][guess.label]
        assert model.temperature * guess.cosine == pytest.approx(logit, abs=1e-3)
        assert guess.probability == pytest.approx(theirs["probabilities"][guess.label], abs=1e-4)
