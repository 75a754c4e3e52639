"""Can the store be reached, does it take our credentials, and does it keep its promises?"""

from __future__ import annotations

from mudg.ops.doctor.finding import Case, Finding, fault, ok
from mudg_core.errors import MudgError
from mudg_core.storage import ArtifactStore

SECONDS = 10.0


def storage(case: Case) -> list[Finding]:
    """As every run asks before it works, but without patience."""
    settings = case.settings.storage.model_copy(update={"retries": 0, "timeout_seconds": SECONDS})
    where = settings.url + (f" at {settings.endpoint_url}" if settings.endpoint_url else "")
    try:
        ArtifactStore(settings).check()
    except MudgError as error:
        return [fault("storage", f"{where}: {error.what}", error.fix or "see storage.* in `mudg settings`")]
    return [ok("storage", f"{where} takes files, and honours conditional puts")]
