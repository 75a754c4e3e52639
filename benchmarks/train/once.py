"""A few steps of one side in a process of their own, whose memory is nobody else's.

    python -m benchmarks.train.once ours|naive CASE STEPS

The last line printed: seconds of each step, and the most memory (GB) above the loaded model and in all. The
parent has malloc give back what is freed, so that the peak is of what was in use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.train.case import Case

GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
RESET_PEAK = "5"


def measured(side: str, case: Case, steps: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.train.once", side, json.dumps(asdict(case)), str(steps)]
    done = subprocess.run(command, env=os.environ | GIVE_BACK, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    from benchmarks.train.sides import SIDES, time_steps

    side, case, steps = sys.argv[1], Case(**json.loads(sys.argv[2])), int(sys.argv[3])
    clip = case.clip()
    inputs = case.inputs(clip.image_size)
    clip.encode_images(inputs[0][:1])  # libraries load what they need on first use
    clip.encode_texts(inputs[2][0][:1])
    _load_optimiser()
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    before = memory("VmRSS")
    seconds = time_steps(SIDES[side], case, clip, inputs, steps).wall
    peak = memory("VmHWM")
    figures = {"seconds": seconds, "extra_gb": (peak - before) / 1e9, "peak_gb": peak / 1e9}
    sys.stdout.write(json.dumps(figures) + "\n")


def _load_optimiser() -> None:
    """torch imports 70 MB of modules with the first optimiser, which are no part of a step."""
    import torch

    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter])
    parameter.sum().backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def memory(name: str) -> int:
    """Bytes of this process: now (VmRSS) or at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
