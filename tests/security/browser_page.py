"""A page of another origin, in the browser in which the owner of the stack is signed in."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from mudg.ops.stack.running import Stack
from tasks.executors.guarded_api import login_url
from tests.security import rebound
from tests.security.intruder_requests import EVIL, FETCH, FORM, PEEK, SOCKET, SOCKETS, Call, calls
from tests.security.owner import Owner
from tests.security.results import NotTried, Result, attempt
from tests.stack.browser import page

SECONDS = 20_000


def attacks(stack: Stack, folder: Path) -> Iterator[Result]:
    owner = Owner(stack)
    before = owner.belongings()
    with _foreign(folder) as site:
        yield from _foreign_page(owner, site)
    yield from rebound.attacks(owner)
    yield attempt("a link with a wrong password replaces the owner's", 99, partial(_wrong_link, stack))
    yield attempt("all of that left anything on the server", 79, partial(_left, owner, before))


def _left(owner: Owner, before: dict[str, list[Any]]) -> str:
    assert owner.events(EVIL) == 0, "an event is on the server"
    return owner.same(before)


def _foreign_page(owner: Owner, site: str) -> Iterator[Result]:
    with page() as seen:
        seen.set_default_timeout(SECONDS)
        _sign_in(seen, owner)
        for what, call in calls(owner).items():
            yield attempt(what, 79, partial(_fetch, seen, owner, site, call))
        for what, call in calls(owner).items():
            blind = partial(_fetch, seen, owner, site, call, blind=True)
            yield attempt("the same blind: sent without leave, answer not seen (no-cors)", 79, blind, what)
        yield from _sockets(seen, owner, site)
        yield attempt("guess a password", 79, partial(_guess, seen, owner, site))
        yield attempt("create a work pool by a form", 79, partial(_form, seen, owner, site))
        yield attempt("show the UI in a frame", 79, partial(_frame, seen, owner, site))
        yield attempt("read the owner's password out of a window", 79, partial(_peek, seen, owner, site))
        _check_owner(seen, owner)


def _sign_in(seen: Page, owner: Owner) -> None:
    """To the end: Prefect's UI signs out whoever leaves its page while it still asks for the version."""
    seen.goto(owner.stack.login_url)
    seen.wait_for_url("**/dashboard*")
    seen.get_by_text("Active Work Pools").wait_for()


def _fetch(seen: Page, owner: Owner, site: str, call: Call, blind: bool = False) -> str:
    method, path, body = call
    how: dict[str, Any] = {"method": method, "mode": "no-cors" if blind else "cors", "credentials": "include"}
    if blind and method not in ("GET", "POST"):
        how["method"] = "POST"  # a page can send no other without asking first
    if how["method"] != "GET":
        how |= {"body": json.dumps(body)} | (
            {} if blind else {"headers": {"Content-Type": "application/json"}}
        )
    before = owner.belongings()
    seen.goto(site)
    status = seen.evaluate(FETCH, [f"{owner.stack.api_url}/{path}", how])
    assert status in ("refused by the browser", 0, 400, 401, 403), f"the page was answered {status}"
    return f"{status or 'an answer that the page cannot see'}; {owner.same(before)}"


def _sockets(seen: Page, owner: Owner, site: str) -> Iterator[Result]:
    token = json.dumps({"type": "auth", "token": "mudg:wrong"})
    said: dict[str, tuple[list[str], list[str]]] = {
        "plain": ([], [owner.event(EVIL)]),
        "as Prefect's own client": (["prefect"], [owner.event(EVIL)]),
        "with a wrong password": (["prefect"], [token, owner.event(EVIL)]),
    }
    for path in SOCKETS:
        for how, (protocols, first) in said.items():
            attack = partial(_socket, seen, owner, site, path, protocols, first)
            yield attempt(f"a websocket to {path}", 79, attack, how)


def _socket(seen: Page, owner: Owner, site: str, path: str, protocols: list[str], first: list[str]) -> str:
    seen.goto(site)
    address = f"{owner.stack.api_url.replace('http', 'ws')}/{path}"
    found = seen.evaluate(SOCKET, [address, protocols, first])
    assert found["heard"] == [] and found["closed"], f"it was not closed, or spoke: {found}"
    assert owner.events(EVIL) == 0, "the event is on the server"
    return f"closed with code {found['closed']}, nothing was sent, no event of it is there"


def _guess(seen: Page, owner: Owner, site: str) -> str:
    """From the UI's own origin too, where no rule of the browser is in the way."""
    word = "Basic " + base64.b64encode(b"mudg:wrong").decode()
    how = {
        "method": "POST",
        "body": "{}",
        "headers": {"Authorization": word, "Content-Type": "application/json"},
    }
    found = []
    for origin in (site, f"{owner.stack.ui_url}/mudg/login"):
        seen.goto(origin)
        found.append(seen.evaluate(FETCH, [f"{owner.stack.api_url}/flow_runs/filter", how]))
    assert found == ["refused by the browser", 401], found
    return "the browser refuses; 401 where it does not"


def _form(seen: Page, owner: Owner, site: str) -> str:
    """A form needs no leave of the server that it is sent to."""
    before = owner.belongings()
    seen.goto(site)
    with seen.expect_response("**/work_pools/") as answer:
        seen.evaluate(
            FORM, [f"{owner.stack.api_url}/work_pools/", json.dumps({"name": EVIL, "type": "process"})]
        )
    assert answer.value.status == 401, answer.value.status
    return f"{answer.value.status}; {owner.same(before)}"


def _frame(seen: Page, owner: Owner, site: str) -> str:
    seen.goto(site)
    for address in (owner.stack.ui_url, f"{owner.stack.ui_url}/dashboard", owner.stack.login_url):
        seen.evaluate(
            "url => { const f = document.createElement('iframe'); f.src = url; document.body.append(f); }",
            address,
        )
    seen.wait_for_timeout(3000)
    inside = [frame for frame in seen.frames if frame != seen.main_frame]
    if len(inside) != 3:
        raise NotTried(f"{len(inside)} frames instead of 3")
    shown = [frame.url for frame in inside if not frame.url.startswith("chrome-error:")]
    assert shown == [], f"shown in a frame: {shown}"
    return "three frames, all blocked by frame-ancestors 'none'"


def _peek(seen: Page, owner: Owner, site: str) -> str:
    seen.goto(site)
    found = seen.evaluate(PEEK, owner.stack.ui_url)
    assert found == "SecurityError", "it was read" if found else f"there was none: {found}"
    return str(found)


def _check_owner(seen: Page, owner: Owner) -> None:
    """In the same browser: else attacks may have failed for want of a server, or of somebody signed in."""
    seen.goto(f"{owner.stack.ui_url}/dashboard")
    kept = seen.evaluate("localStorage.getItem('prefect-password')")
    with seen.expect_response("**/api/flow_runs/**") as answer:
        seen.reload()
    if base64.b64decode(kept).decode() != owner.stack.keys.prefect or answer.value.status != 200:
        raise NotTried("the owner was not signed in, so nothing was shown by all of this")


def _wrong_link(stack: Stack) -> str:
    """Somebody has the owner open a link of theirs, so that what is typed later goes to another stack."""
    with page() as seen:
        seen.set_default_timeout(SECONDS)
        _sign_in(seen, Owner(stack))
        seen.goto(login_url(stack.ui_url, "mudg:wrong"))
        seen.get_by_text("another stack").wait_for()
        kept = base64.b64decode(seen.evaluate("localStorage.getItem('prefect-password')")).decode()
    assert kept == stack.keys.prefect, "the owner's password was replaced"
    return "the page says so, and keeps the password that it had"


@contextmanager
def _foreign(folder: Path) -> Iterator[str]:
    """A page of another origin: another port of the same machine, which shares cookies with all others."""
    (folder / "index.html").write_text("<!DOCTYPE html><title>evil</title><body>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}/"
        site.shutdown()
