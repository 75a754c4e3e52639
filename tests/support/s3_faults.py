"""Faults on the wire between boto3 and a real S3 server, placed exactly: which request, which time.

botocore asks its `before-send` handlers for an answer before it sends; what they raise or return goes the
same way as what a socket would have given, retries included.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError
from botocore.httpsession import URLLib3Session

Fault = Callable[[Any], Any]


@dataclass
class Wire:
    """Does `fault` to the first `times` requests whose URL contains `only`, and notes all such requests."""

    fault: Fault | None = None
    times: int = 1_000_000
    only: str = ""
    seen: list[str] = field(default_factory=list)

    def hook(self, client: Any, operation: str = "*") -> Wire:
        client.meta.events.register(f"before-send.s3.{operation}", self._before_send)
        return self

    def _before_send(self, request: Any, **_: Any) -> Any:
        if self.only not in request.url:
            return None
        self.seen.append(request.url)
        return self.fault(request) if self.fault and len(self.seen) <= self.times else None


def _send(request: Any) -> Any:
    """Sends for real, and reads the whole reply before the connection goes."""
    session = URLLib3Session()
    reply = session.send(request)
    assert reply.content is not None
    session.close()
    return reply


class _Body(io.BytesIO):
    """As much of a urllib3 response as botocore looks at."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()


def answer(status: int, code: str) -> Fault:
    """The server says no."""
    text = f"<Error><Code>{code}</Code><Message>test</Message></Error>".encode()
    headers = {"content-type": "application/xml", "content-length": str(len(text))}
    return lambda request: AWSResponse(request.url, status, headers, _Body(text))


def lost_reply(request: Any) -> Any:
    """The request arrives and takes effect; its reply does not."""
    _send(request)
    raise ConnectionClosedError(endpoint_url=request.url)


def reset(request: Any) -> Any:
    """The connection breaks before the request arrives."""
    raise ConnectionClosedError(endpoint_url=request.url)


def cut_short(request: Any) -> Any:
    """The reply claims its full length, and ends before."""
    reply = _send(request)
    return AWSResponse(request.url, reply.status_code, reply.headers, _Body(reply.content[:-3]))


def flipped(request: Any) -> Any:
    """The reply has its full length, one bit of it wrong, and no checksum of the server's to tell."""
    reply = _send(request)
    headers = {name: value for name, value in reply.headers.items() if "checksum" not in name.lower()}
    wrong = reply.content[:-1] + bytes([reply.content[-1] ^ 1])
    return AWSResponse(request.url, reply.status_code, headers, _Body(wrong))
