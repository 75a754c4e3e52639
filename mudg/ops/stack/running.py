"""A stack for those who use it: where it is, which parts live, and the environment that leads to it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mudg.ops.stack import FOLDER
from mudg.ops.stack.credentials import Keys, certificate_of, keys_of, write_private
from mudg.ops.stack.processes import is_alive, listens
from mudg.ops.stack.state import Process, State, read_state, write_state
from mudg_core.settings import ENV_PREFIX, Settings, load_settings
from tasks.executors.guarded_api import login_url

BUCKET = POOL = "mudg"
LOCAL = "http://127.0.0.1"
# Variables of the user's shell that parts do not inherit: settings are handed on by name, and a stack has its
# own Prefect and keys. `mudg` itself has silenced Dask for the terminal.
NOT_INHERITED = (ENV_PREFIX, "PREFECT_", "DASK_LOGGING", "AWS_")
INHERITED_ANYWAY = ("PREFECT_SERVER_ANALYTICS_ENABLED",)
# Settings that a stack answers itself. A shell that has sourced a stack's environment names them too.
OWN_SETTINGS = tuple(
    f"{ENV_PREFIX}STORAGE__{name}" for name in ("URL", "ENDPOINT_URL", "BROWSE_URL", "CACHE_DIR")
)
OWN_SETTINGS += (f"{ENV_PREFIX}COMPUTE__DASK_ADDRESS",)


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
            **self._dask_certificate(),
            "AWS_ACCESS_KEY_ID": self.keys.access,
            "AWS_SECRET_ACCESS_KEY": self.keys.secret,
            "AWS_SESSION_TOKEN": "",
            "AWS_ENDPOINT_URL_S3": self.s3_url,  # for `aws s3 cp SPEC.yaml s3://mudg/store/inbox/`
        }

    def _dask_certificate(self) -> dict[str, str]:
        """Whoever lacks it can neither submit code nor be a worker: Dask's TLS is mutual."""
        (cert, key), prefix = certificate_of(self.folder), "DASK_DISTRIBUTED__COMM__"
        variables = {f"{prefix}REQUIRE_ENCRYPTION": "true", f"{prefix}TLS__CA_FILE": str(cert)}
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            variables |= {f"{prefix}TLS__{role}__CERT": str(cert), f"{prefix}TLS__{role}__KEY": str(key)}
        return variables

    def process(self, name: str) -> Process | None:
        return next((process for process in self.state.processes if process.name == name), None)

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
        others = [other for other in self.state.processes if other.name != process.name]
        self.change(processes=(*others, process))

    def forget(self, name: str) -> None:
        self.change(processes=tuple(other for other in self.state.processes if other.name != name))

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


def settings_environment(settings: Settings) -> dict[str, str]:
    """The variables that give another process these settings, wherever they came from: file, shell or flags.
    Only what differs from the defaults, so that a list of them can be read."""
    defaults = load_settings(overrides={"profile": settings.profile}, environ={}).model_dump(mode="json")
    variables: dict[str, str] = (
        {} if settings.profile == "mudg" else {f"{ENV_PREFIX}PROFILE": settings.profile}
    )
    for area, values in settings.model_dump(mode="json").items():
        if isinstance(values, dict):
            changed = {name: value for name, value in values.items() if value != defaults[area][name]}
            variables |= {f"{ENV_PREFIX}{area}__{name}".upper(): scalar(v) for name, v in changed.items()}
    return variables


def scalar(value: Any) -> str:
    """As the settings read it back. Not JSON: YAML takes 1e-05 for text."""
    text = yaml.safe_dump(value, default_flow_style=True, width=2**31, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def settings_for_stack(settings: Settings) -> dict[str, str]:
    """The user's settings for all that runs in a stack, with paths that hold in any folder."""
    from mudg_core.target.paths import absolute_settings

    tree = settings.model_dump(mode="json", exclude={"profile"}, exclude_none=True)
    absolute = settings.replace(absolute_settings(tree), where="settings")
    variables = settings_environment(absolute)
    return {name: value for name, value in variables.items() if name not in OWN_SETTINGS}


def inherited() -> dict[str, str]:
    """This shell's environment without what would lead a part elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED_ANYWAY or not name.startswith(NOT_INHERITED)
    }


def as_script(environment: Mapping[str, str]) -> str:
    """What a shell can `source`."""
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    return "# Makes `mudg` use this stack: source this file. It holds a secret.\n" + "".join(lines)
