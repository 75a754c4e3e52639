"""The code of a model card, run where there is open_clip and nothing of ours; what it found goes to a file.

python -I classify.py FOLDER OUT

FOLDER has the card (README.md), the model and `image.jpg`. Started by its path and not as a module, and
isolated (-I), so that nothing of this repository can be imported by mistake.
"""

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import torch


def main() -> None:
    assert importlib.util.find_spec("mudg_core") is None, "there is a trace of us"
    library = torchvision_beside_cpu_torch()
    folder, out = (Path(word).absolute() for word in sys.argv[1:3])
    os.chdir(folder)
    (code,) = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(), re.DOTALL)
    names: dict[str, torch.Tensor] = {}
    exec(code, names)
    found = {name: names[name].flatten().tolist() for name in ("cosines", "probabilities")}
    out.write_text(json.dumps(found | {"patched": library is not None}))


def torchvision_beside_cpu_torch() -> object:
    """PyPI's torchvision links CUDA, and beside a CPU build of torch its import fails for want of two
    operators that nobody calls. Users who install both from one index do not meet this."""
    spec = importlib.util.find_spec("torchvision")
    assert spec is not None and spec.origin is not None
    try:
        torch.ops.load_library(str(Path(spec.origin).with_name("_C.so")))
        return None
    except OSError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library


if __name__ == "__main__":
    main()
