"""What a person is told while a student trains, and what TensorBoard reads afterwards."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event

from mudg_core.train.finetune import EVENTS, TrainingLog


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, line: str, *values: Any) -> None:
        self.lines.append(line % values)


def scalars(file: Path) -> dict[str, dict[int, float]]:
    """Records are a length, its checksum, an event and its checksum."""
    data, found = file.read_bytes(), dict[str, dict[int, float]]()
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + size])
        data = data[16 + size :]
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = round(value.simple_value, 4)
    return found


def test_scalars_and_lines(tmp_path: Path) -> None:
    now, log, shares = [100.0], Lines(), list[float]()
    with TrainingLog(tmp_path / "tensorboard", 5, log, lambda: now[0], shares.append) as watch:
        watch(1, 3.0, None)  # of an earlier run
        for step in (2, 3, 4, 5):
            watch(step, 3 - step / 4, 64.0 * step)
            now[0] += 6
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert [file.name for file in (tmp_path / "tensorboard").iterdir()] == [EVENTS]
    assert scalars(watch.file) == {
        "loss": {1: 3.0, 2: 2.5, 3: 2.25, 4: 2.0, 5: 1.75},
        "images_per_second": {2: 128.0, 3: 192.0, 4: 256.0, 5: 320.0},
    }
    assert log.lines == [  # the first step, then at most every ten seconds, and the last step
        "step 2 of 5: loss 2.5000, 128.0 images/s",
        "step 4 of 5: loss 2.0000, 256.0 images/s",
        "step 5 of 5: loss 1.7500, 320.0 images/s",
    ]
