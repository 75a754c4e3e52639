"""The store's inbox → submissions → events, each exactly once (`mudg_core/target/inbox.py` says how)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from mudg_core.target.inbox import Watched, Watcher
from mudg_core.target.submissions import Submission
from tasks.flow import dated, flow

Announce = Callable[[Submission], None]
Look = Callable[[Sequence[Submission]], dict[str, bool]]


@flow(
    name="watch-inbox",
    description="Turns specs in the store's inbox into runs of build-classifier, each once.",
    run_name=lambda settings, announce, look: dated("watch-inbox"),
)
def watch_inbox(settings: Settings, announce: Announce, look: Look) -> Watched:
    """inbox → submissions → events. `look` says which submissions have a run, and whether it is lost."""
    objects, allowed = ArtifactStore(settings.storage).objects, settings.target.allowed_paths
    return Watcher(objects, announce, look, allowed=allowed).watch()
