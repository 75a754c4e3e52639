"""A process that dies by SIGKILL at one exact point of a commit: arguments SETTINGS making|before|after."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Facts
from tests.core.storage.making import maker, recipe


def dying_make(folder: Path) -> Facts:
    maker()(folder)
    os.kill(os.getpid(), signal.SIGKILL)
    return Facts()


def main() -> None:
    store = ArtifactStore(StorageSettings.model_validate_json(sys.argv[1]))
    put_new = store.objects.put_new

    def dying_put(path: str, data: bytes) -> str:
        if sys.argv[2] == "after":
            put_new(path, data)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    store.objects.put_new = dying_put  # type: ignore[method-assign]
    store.build(recipe(), dying_make if sys.argv[2] == "making" else maker())


if __name__ == "__main__":
    main()
