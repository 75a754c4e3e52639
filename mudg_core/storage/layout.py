"""Where everything lies in a store; the only place that builds paths and URIs.

    artifacts/<stage>/<key>/manifest.json
    artifacts/<stage>/<key>/attempts/<attempt>/<file name>
    checkpoints/<stage>/<key>/<0 or 1>            (only while the artifact is being made)
    pointers/<name>.json
    models/<sha256 of weights>.json               (the name that an index was built under with them)
    leases/<run>.json                             (only while the run goes on)
    inbox/<anything>.yaml                         (target specs that people upload; mudg only takes them away)
    inbox-refused/<id>/<file name>                and   <file name>.reason.txt
    submissions/<target>/<id>.json                (what was asked for, and which run has it)
    gc/condemned.json                             (what garbage collection is about to delete)
    quarantine/<stage>/<key>/<id>/manifest.json   and   reason.json
    probes/<id>                                   (only while `check` runs)

Paths are relative to the root of the store, with `/` between parts, on every kind of store. Names are
validated here and nowhere else, so a class called `../../x` cannot reach outside, whoever passes it.
"""

from __future__ import annotations

import re

from mudg_core.errors import InputError

NAME = re.compile(r"[a-z0-9-]{1,100}")
HEX = re.compile(r"[0-9a-f]{64}")
TOKEN = re.compile(r"[0-9a-f]{8,64}")
ARRAY_NAME = re.compile(r"(?!__)[A-Za-z0-9_./-]{1,200}")  # `__metadata__` is safetensors' own
FILE_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")

SLOTS = (0, 1)
ARTIFACTS, CHECKPOINTS, POINTERS, QUARANTINE, LEASES, PROBES = (
    f"{folder}/" for folder in ("artifacts", "checkpoints", "pointers", "quarantine", "leases", "probes")
)
INBOX, REFUSED, SUBMISSIONS = "inbox/", "inbox-refused/", "submissions/"
CONDEMNED = "gc/condemned.json"

_PLACE = rf"{NAME.pattern}/{HEX.pattern}"
_FILE = FILE_PART.pattern
_OWN = re.compile(
    rf"artifacts/{_PLACE}/(manifest\.json|attempts/{TOKEN.pattern}/({_FILE}/)*{_FILE})"
    rf"|checkpoints/{_PLACE}/[{SLOTS[0]}{SLOTS[-1]}]"
    rf"|pointers/{NAME.pattern}\.json"
    rf"|models/{HEX.pattern}\.json"
    rf"|leases/{TOKEN.pattern}\.json"
    rf"|inbox-refused/{TOKEN.pattern}/{_FILE}"
    rf"|submissions/{NAME.pattern}/{TOKEN.pattern}\.json"
    rf"|quarantine/{_PLACE}/{TOKEN.pattern}/({_FILE}/)*{_FILE}"
    rf"|probes/{TOKEN.pattern}"
)


def is_own(path: str) -> bool:
    """Whether a path is one that we write. Anybody may put a file beside, and consoles of S3 leave empty
    objects that stand for folders."""
    return _OWN.fullmatch(path) is not None


def check_name(name: str, what: str = "name") -> str:
    """A stage or pointer name."""
    return _check(NAME, name, what, "use lower-case letters, digits and '-' only")


def check_hex(text: str, what: str = "key") -> str:
    """A key or digest: 64 lower-case hexadecimal digits."""
    return _check(HEX, text, what, "give all 64 hexadecimal digits")


def check_file_name(name: str) -> str:
    """The name of a file in an artifact; it may lie in folders (`img_emb/img_emb_0.npy`)."""
    for part in name.split("/"):
        fix = "use letters, digits, '.', '_' and '-'; folders are separated by '/'; no leading '.'"
        _check(FILE_PART, part, f"file name {name!r}: part", fix)
    return name


def check_token(text: str) -> str:
    """What tells attempts, runs and the like apart: a random number that we draw."""
    return _check(TOKEN, text, "identifier", "give 8 to 64 hexadecimal digits")


def check_array_name(name: str) -> str:
    """The name of an array in a checkpoint; it may be as long as those of a network's weights are."""
    return _check(
        ARRAY_NAME, name, "array name", "use letters, digits, '.', '_', '/' and '-'; no leading '__'"
    )


def manifest(stage: str, key: str) -> str:
    return f"{_artifact(stage, key)}/manifest.json"


def attempt_file(stage: str, key: str, attempt: str, name: str) -> str:
    return f"{attempt_folder(stage, key, attempt)}/{check_file_name(name)}"


def attempt_folder(stage: str, key: str, attempt: str) -> str:
    return f"{_artifact(stage, key)}/attempts/{check_token(attempt)}"


def checkpoint(stage: str, key: str, slot: int) -> str:
    """Apart from the artifacts: whoever lists those has no use for unfinished ones."""
    if slot not in SLOTS:
        raise InputError(what=f"there is no checkpoint slot {slot}", fix=f"the slots are {SLOTS}")
    return f"checkpoints/{check_name(stage, 'stage')}/{check_hex(key)}/{slot}"


def pointer(name: str) -> str:
    return f"pointers/{check_name(name, 'pointer name')}.json"


def model(digest: str) -> str:
    return f"models/{check_hex(digest, 'digest of weights')}.json"


def lease(run: str) -> str:
    return f"leases/{check_token(run)}.json"


def submission(target: str, token: str) -> str:
    """By target, so that all that was ever asked for under one name is found without reading the others."""
    return f"{SUBMISSIONS}{check_name(target, 'target')}/{check_token(token)}.json"


def refused(token: str, path: str) -> str:
    """Where an object of the inbox goes that cannot be used. Strangers choose its name: only plain characters
    of the last part are kept."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", path.rpartition("/")[2])[-100:]
    return f"{REFUSED}{check_token(token)}/{check_file_name(f'_{name}' if name[:1] in '.-' else name)}"


def quarantine(stage: str, key: str, token: str, name: str) -> str:
    place = f"{check_name(stage, 'stage')}/{check_hex(key)}"
    return f"quarantine/{place}/{check_token(token)}/{check_file_name(name)}"


def probe(token: str) -> str:
    return f"probes/{check_token(token)}"


def artifacts(stage: str, key_prefix: str = "") -> str:
    """What the paths of a stage's artifacts begin with; for people who search, not for decisions."""
    return f"artifacts/{check_name(stage, 'stage')}/{key_prefix}"


def uri(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}"


def parse(text: str, root: str = "") -> tuple[str, str] | None:
    """(stage, key or its beginning) from `stage/key`, or from any path or URI inside an artifact."""
    rest = text.removeprefix(root).strip("/").removeprefix("artifacts/")
    parts = rest.split("/")
    if len(parts) < 2 or not NAME.fullmatch(parts[0]) or not re.fullmatch(r"[0-9a-f]{1,64}", parts[1]):
        return None
    return parts[0], parts[1]


def _artifact(stage: str, key: str) -> str:
    return f"artifacts/{check_name(stage, 'stage')}/{check_hex(key)}"


def _check(pattern: re.Pattern[str], text: str, what: str, fix: str) -> str:
    if not pattern.fullmatch(text):
        raise InputError(what=f"{what} {text[:120]!r} is not allowed in a store", fix=fix)
    return text
