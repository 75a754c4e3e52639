"""The command `clip-retrieval`, with a model of ours beside those that it knows.

python -m benchmarks.embed.peers.run_clip_retrieval MODEL_FOLDER inference --clip_model open_clip:mudg/local …

Its open_clip is older than ours and knows no `local-dir:`, so the folder's configuration and weights are made
known under a name. A program and not a `sitecustomize`: processes that it starts anew import it again, and
those that need no torch do not wait for it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import mudg_core.encode.open_clip_support  # noqa: F401  (before open_clip is imported)
from benchmarks.embed.peers import NAME, TAG


def main() -> None:
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    _register(folder, json.loads((folder / "open_clip_config.json").read_text()))
    from clip_retrieval.cli import main as command

    sys.argv = ["clip-retrieval", *arguments]
    command()


def _register(folder: Path, config: dict[str, Any]) -> None:
    """The tag carries mean and deviation of the pixels: a bare path to weights would get those of OpenAI."""
    from open_clip import add_model_config
    from open_clip.pretrained import _PRETRAINED

    with tempfile.TemporaryDirectory() as known:
        (Path(known) / f"{NAME}.json").write_text(json.dumps(config["model_cfg"]))
        add_model_config(known)
    weights = str(folder / "open_clip_model.safetensors")
    _PRETRAINED[NAME] = {TAG: {"file": weights, **config["preprocess_cfg"]}}


if __name__ == "__main__":
    main()
