"""A stack for those who use it: where it is, what lives of it, and the environment that leads to it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mudg.ops.stack import FOLDER
from mudg.ops.stack.certificates import certificate_of
from mudg.ops.stack.environment import as_script
from mudg.ops.stack.processes import is_alive, listens
from mudg.ops.stack.state import Keys, Process, State, keys_of, read_state, write_private, write_state
from tasks.executors.guarded_api import login_url

BUCKET = POOL = "mudg"
LOCAL = "http://127.0.0.1"


class Stack:
    """One stack. What changes is in `state`, and on disk as soon as it has changed."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder, self.state = folder.absolute(), state
        self.keys: Keys = keys_of(self.folder)

    @property
    def api_url(self) -> str:
        return f"{self.ui_url}/api"

    @property
    def ui_url(self) -> str:
        return f"{LOCAL}:{self.state.ports['prefect']}"

    @property
    def login_url(self) -> str:
        """Opens the UI in a browser and signs in there, once for all later links. It holds the password."""
        return login_url(self.ui_url, self.keys.prefect)

    @property
    def auth(self) -> tuple[str, str]:
        """User and password of Prefect's API."""
        user, _, password = self.keys.prefect.partition(":")
        return user, password

    @property
    def s3_url(self) -> str:
        return f"{LOCAL}:{self.state.ports['s3']}"

    @property
    def dask_address(self) -> str:
        return f"tls://127.0.0.1:{self.state.ports['dask']}"

    def environment(self) -> dict[str, str]:
        """What leads a process to this stack, with the settings that the stack was started with. An empty
        session token, as one from elsewhere would spoil the keys."""
        return {
            **self.state.settings,
            "PREFECT_API_URL": self.api_url,
            "PREFECT_API_AUTH_STRING": self.keys.prefect,
            "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
            "MUDG_STORAGE__URL": f"s3://{BUCKET}/store",
            "MUDG_STORAGE__ENDPOINT_URL": self.s3_url,
            "MUDG_STORAGE__BROWSE_URL": "null",  # links are signed: nobody reads without the keys
            "MUDG_STORAGE__CACHE_DIR": str(self.folder / "cache"),
            "MUDG_COMPUTE__DASK_ADDRESS": self.dask_address,
            "MUDG_COMPUTE__WORKERS": str(self.state.workers),
            **self._dask_keys(),
            "AWS_ACCESS_KEY_ID": self.keys.access,
            "AWS_SECRET_ACCESS_KEY": self.keys.secret,
            "AWS_SESSION_TOKEN": "",
            "AWS_ENDPOINT_URL_S3": self.s3_url,  # for `aws s3 cp SPEC.yaml s3://mudg/store/inbox/`
        }

    def _dask_keys(self) -> dict[str, str]:
        """Whoever lacks them can neither submit code nor be a worker: Dask's TLS is mutual."""
        files, prefix = certificate_of(self.folder), "DASK_DISTRIBUTED__COMM__"
        keys = {f"{prefix}REQUIRE_ENCRYPTION": "true", f"{prefix}TLS__CA_FILE": str(files.ca)}
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            keys[f"{prefix}TLS__{role}__CERT"] = str(files.cert)
            keys[f"{prefix}TLS__{role}__KEY"] = str(files.key)
        return keys

    def process(self, name: str) -> Process | None:
        return next((one for one in self.state.processes if one.name == name), None)

    def is_alive(self, name: str) -> bool:
        process = self.process(name)
        return process is not None and is_alive(process)

    def listens(self, name: str) -> bool:
        """Whether a part has the ports under which others look for it."""
        process = self.process(name)
        return process is not None and listens(process)

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def record(self, process: Process) -> None:
        others = [one for one in self.state.processes if one.name != process.name]
        self.change(processes=(*others, process))

    def forget(self, names: Iterable[str]) -> None:
        gone = set(names)
        self.change(processes=tuple(one for one in self.state.processes if one.name not in gone))

    def change(self, **values: object) -> None:
        self.state = self.state.model_copy(update=values)
        write_state(self.folder, self.state)

    def write_environment(self) -> Path:
        path = self.folder / "env"
        write_private(path, as_script(self.environment()))
        return path


def find_stack(folder: Path | None = None) -> Stack | None:
    """The stack of a folder if anything of it is running, or else None."""
    folder = (folder or FOLDER).expanduser()
    state = read_state(folder)
    if state is None or not any(is_alive(process) for process in state.processes):
        return None
    return Stack(folder, state)


def use_stack(folder: Path | None = None) -> Stack | None:
    """The stack that this command is to use, with its environment set: none if the user has named a Prefect
    server of their own. To be called before Prefect is imported, which reads its environment only once."""
    stack = find_stack(folder)
    if stack is not None and not os.environ.get("PREFECT_API_URL"):
        os.environ.update(stack.environment())
    return stack
