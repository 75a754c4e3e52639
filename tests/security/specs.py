"""Specs and parameters of runs that want the worker to read, fetch or run what is not theirs.

They take the way of everybody who may upload a spec: the inbox of the real store, and the real deployments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mudg_core.storage import ArtifactStore
from mudg_core.target.spec import parse_target
from mudg_core.target.submissions import Submissions
from tests.core.target.test_submitted_paths import NAMED
from tests.core.test_yaml_text import HOSTILE, SPECS
from tests.security.results import NotTried, Result, attempt
from tests.stack.team import Team
from tests.stack.test_stack import watch_inbox

MARKER = "5ec7e7-a-line-of-the-workers-own-file"
HEAD = "name: {name}\nclasses: [cat, dog]\n"
SAME = {"case": ("cat", "CAT"), "accents": ("caf\u00e9", "cafe\u0301"), "sharp s": ("STRASSE", "stra\u00dfe")}
SETTINGS: dict[str, dict[str, Any]] = {
    "a program": {"download": {"command": "/bin/sh"}},
    "another store": {"storage": {"url": "file:///tmp/evil"}},
    "inner networks": {"download": {"allow_networks": ["127.0.0.0/8"]}},
}
SECONDS = 180.0


def attacks(team: Team, folder: Path) -> Iterator[Result]:
    secret = folder / "secret.txt"
    secret.write_text(f"{MARKER}\n")
    store = team.store
    specs = dict(_specs(secret))
    places = {name: f"inbox/{number:03d}.yaml" for number, name in enumerate(specs)}
    for name, spec in specs.items():
        store.objects.put_new(places[name], spec.encode("utf-8", "surrogatepass"))
    watch_inbox(team)
    refused = _reasons(store)
    for name, place in places.items():
        what, _, case = name.partition(": ")
        yield attempt(what, _fault(what), partial(_refused, store, refused, place), case)
    yield from _parameter_attacks(team, secret)
    yield attempt("any of that brought the worker's file into the store", 81, partial(_check_store, store))


def _specs(secret: Path) -> Iterator[tuple[str, str]]:
    """By what they try, and the case of it."""
    head = HEAD.format(name="evil")
    paths = {"absolute": str(secret), "by the parent folder": f"{secret.parent}/x/../{secret.name}"}
    paths |= {"file://": f"file://{secret}", "relative": "../../../etc/passwd"}
    for where, line in NAMED.items():
        for how, path in paths.items():
            yield (
                f"a spec that names a file of the worker: {where}, {how}",
                head + line.format(path) + "\n",
            )
    for area, values in SETTINGS.items():
        yield f"a spec that names settings of the worker: {area}", f"{head}settings: {json.dumps(values)}\n"
    yield "a spec that reads its classes from a file of the worker: ", f"name: evil\nclasses_from: {secret}\n"
    for name, text in (HOSTILE | SPECS).items():
        yield f"a spec that costs more than its text is long: {name}", head + text
    yield "a spec of one line of 1 MB: ", f"{head}description: {'x' * (1 << 20)}\n"
    yield "a spec of 5 MB: ", f"{head}# {'x' * (5 << 20)}\n"
    for name, (first, second) in SAME.items():
        yield f"class names that are one name: {name}", f"name: evil\nclasses: ['{first}', '{second}']\n"
    for char in ("\\x1b[2J", "\\x07", "\\u202e", "\\0", "\\n"):
        yield f"control characters in class names: {char}", f'name: evil\nclasses: [cat, "d{char}og"]\n'
    yield "a name that leads out of its folder: ", HEAD.format(name="../../evil")
    yield "a YAML tag that makes objects: ", head + "description: !!python/object/apply:os.system ['id']\n"


def _fault(what: str) -> int:
    words = {"one name": 90, "costs": 88, "MB": 88, "control": 86, "tag": 88}
    return next((fault for word, fault in words.items() if word in what), 81)


def _reasons(store: ArtifactStore) -> dict[str, str]:
    """Why each spec was refused, by the place in the inbox that it came from."""
    reasons = {}
    for path in store.objects.list("inbox-refused/"):
        if path.endswith(".reason.txt") and (read := store.objects.read(path)):
            place, _, reason = read[0].decode().partition("\n")
            reasons[place] = " ".join(reason.split())
    return reasons


def _refused(store: ArtifactStore, reasons: dict[str, str], place: str) -> str:
    if place not in reasons and store.objects.exists(place):
        raise NotTried("nobody has looked at it")
    assert place in reasons, "it was taken for a submission"
    return reasons[place]


def _parameter_attacks(team: Team, secret: Path) -> Iterator[Result]:
    """Of runs of the real deployment, all at once; each ends before it looks for its submission."""
    settings = SETTINGS | {"a file": {"augment": {"descriptors": str(secret)}}}
    runs = {what: _start(team, "none", "0" * 16, values) for what, values in settings.items()}
    mine = _plant(team.store, secret)
    for what, run in runs.items():
        yield attempt(
            "parameters of a run that name what is the worker's", 81, partial(_failed, team, run), what
        )
    run = _start(team, "planted", mine, {})
    yield attempt("a submission that was written past the inbox", 81, partial(_failed, team, run))


def _plant(store: ArtifactStore, secret: Path) -> str:
    spec = HEAD.format(name="planted").encode()
    target = parse_target(spec).model_copy(update={"settings": {"augment": {"descriptors": str(secret)}}})
    return Submissions(store.objects).add(target, spec, "command").id


def _start(team: Team, name: str, submission: str, settings: dict[str, Any]) -> str:
    body = {"parameters": {"name": name, "submission": submission, "settings": settings}}
    (deployment,) = team.ask("deployments/filter", flows={"name": {"any_": ["build-classifier"]}})
    run: Any = team.ask(f"deployments/{deployment['id']}/create_flow_run", **body)
    return str(run["id"])


def _failed(team: Team, run: str) -> str:
    ended = team.ended(run, SECONDS)
    message = str(ended["state"]["message"])
    if ended["state_type"] == "CRASHED":
        raise NotTried(f"the run never came to its parameters: {message}")
    assert ended["state_type"] == "FAILED" and "worker" in message, f"{ended['state_type']}: {message[:300]}"
    return message


def _check_store(store: ArtifactStore) -> str:
    paths = list(store.objects.list(""))
    holding = [path for path in paths if MARKER.encode() in (store.objects.read(path) or (b"", ""))[0]]
    assert not holding, f"it is in {holding}"
    return f"in none of {len(paths)} objects"
