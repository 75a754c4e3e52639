"""DNS rebinding: a page of a name that is made to point to this machine.

To the browser, page and server are of one origin: only the Host gives it away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from playwright.sync_api import Page

from mudg.ops.stack.running import Stack
from tests.security.intruder_requests import DASK_LOGS, EVIL, FETCH, SOCKET, Call, calls
from tests.security.owner import Owner
from tests.security.results import Result, attempt
from tests.stack.browser import page

NAME = "rebound.example"
SECONDS = 20_000


def attacks(owner: Owner) -> Iterator[Result]:
    name = f"{NAME}:{owner.stack.state.ports['prefect']}"
    with page(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as seen:
        seen.set_default_timeout(SECONDS)
        yield attempt("DNS rebinding: load the page", 79, partial(_load, seen, name))
        for what, call in calls(owner).items():
            yield attempt("DNS rebinding: ask the API", 79, partial(_ask, seen, name, call), what)
        yield attempt("DNS rebinding: a websocket", 79, partial(_listen, seen, name, owner))
        yield attempt("DNS rebinding: read logs of Dask", 79, partial(_dask_pages, seen, owner.stack))


def _load(seen: Page, name: str) -> str:
    reply = seen.goto(f"http://{name}/")
    assert reply is not None and reply.status == 400, f"answered {reply and reply.status}"
    return "400"


def _ask(seen: Page, name: str, call: Call) -> str:
    method, path, body = call
    how = {"method": method} | ({"body": json.dumps(body)} if method != "GET" else {})
    status = seen.evaluate(FETCH, [f"http://{name}/api/{path}", how])
    assert status == 400, f"answered {status}"
    return "400"


def _listen(seen: Page, name: str, owner: Owner) -> str:
    answer = seen.evaluate(SOCKET, [f"ws://{name}/api/events/in", ["prefect"], [owner.event(EVIL)]])
    assert answer["heard"] == [] and answer["closed"] and not owner.events(EVIL), answer
    return f"closed with code {answer['closed']}"


def _dask_pages(seen: Page, stack: Stack) -> str:
    """They have no password, and no Host that they would not answer to."""
    reply = seen.goto(f"http://{NAME}:{stack.state.ports['dask-http']}{DASK_LOGS}")
    assert reply is not None and reply.status >= 400, f"answered {reply and reply.status}"
    return str(reply.status)
