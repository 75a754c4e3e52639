"""Python as on a system that is not Linux: calls that macOS does not have are taken away."""

from __future__ import annotations

import os
from pathlib import Path

LINUX_ONLY = {
    "copy_file_range", "epoll", "eventfd", "fdatasync", "getrandom", "getxattr", "listxattr", "memfd_create",
    "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "prctl", "removexattr", "sched_getaffinity",
    "sched_getparam", "sched_getscheduler", "sched_setaffinity", "sched_setparam", "sched_setscheduler",
    "setns", "setxattr", "splice", "timerfd_create", "unshare", "O_DIRECT", "O_NOATIME", "O_PATH",
    "O_TMPFILE", "POSIX_FADV_DONTNEED", "RUSAGE_THREAD", "sigtimedwait", "sigwaitinfo",
}  # fmt: skip

# A process that leaves no file has not read it.
HOOK = f"""
import ctypes, os, resource, select, signal
for module in (os, resource, select, signal):
    for name in {sorted(LINUX_ONLY)}:
        if hasattr(module, name):
            delattr(module, name)
found = ctypes.CDLL.__getattr__
def there(library, name):
    if name == "prctl":
        raise AttributeError(name)
    return found(library, name)
ctypes.CDLL.__getattr__ = there
open(os.path.join(os.path.dirname(__file__), f"process-{{os.getpid()}}"), "w").close()
"""


def without_linux(folder: Path) -> dict[str, str]:
    """An environment in which every Python starts like that, and leaves a file in `folder`."""
    (folder / "sitecustomize.py").write_text(HOOK)
    earlier = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *([earlier] if earlier else [])])}
