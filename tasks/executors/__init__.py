"""Who runs stages: this process, processes of this machine, or Prefect on Dask. All make the same artifacts.

`in_process` and `processes` (with `report_socket`) import neither Prefect nor Dask. Everything else here is
Prefect on Dask and what it needs: its servers, its cluster, what it shows. Prefect reads its environment when
it is first imported, so its defaults are set here. A value that the user has set stays.
"""

import os

_DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # seconds: deployments/automations/dead-run.yaml listens
    "NO_ALBUMENTATIONS_UPDATE": "1",
}
for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)
# A proxy for the outside world cannot reach servers on this machine, in whose name it would answer.
_NAMES = ("NO_PROXY", "no_proxy")
_direct = [_host for _name in _NAMES for _host in os.environ.get(_name, "").split(",") if _host]
os.environ.update(dict.fromkeys(_NAMES, ",".join(dict.fromkeys([*_direct, "127.0.0.1", "localhost"]))))
