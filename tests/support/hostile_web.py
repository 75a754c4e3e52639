"""A web of strangers on 127.0.0.2, each path with a trick of its own, and a canary on 127.0.0.1.

Whoever reaches the canary has been led inside. Tests let the guard pass 127.0.0.2, and nothing else.
"""

from __future__ import annotations

import datetime
import gzip
import io
import ipaddress
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from PIL import Image

HOST = "127.0.0.2"
DRIP_SECONDS = 0.05
_PIECE = b"x" * 65_536


@cache
def picture(color: str = "red", kind: str = "JPEG", size: tuple[int, int] = (64, 48), turn: int = 1) -> bytes:
    """One colour, but for a black left half, so that it shows which way up it is."""
    image = Image.new("RGB", size, color)
    image.paste("black", (0, 0, size[0] // 2, size[1]))
    exif = Image.Exif()
    exif[274] = turn
    stored = io.BytesIO()
    image.save(stored, kind, exif=exif)
    return stored.getvalue()


HTML = b"<html><body>please log in</body></html>"
MANY_PIXELS = picture("white", "PNG", size=(4000, 4000))


class HostileWeb(ThreadingHTTPServer):
    """`hits` counts requests by path, `seen` keeps the last request's headers of each; `stored` has what
    is found below /stored/."""

    request_queue_size = 512

    def __init__(self, address: tuple[str, int], canary: str = "", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(address, _Stranger)
        self.canary, self.scheme = canary, "https" if tls else "http"
        self.hits: Counter[str] = Counter()
        self.seen: dict[str, Any] = {}
        self.stored: dict[str, bytes] = {}
        self.stopping = threading.Event()
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.server_address[0]!s}:{self.port}"

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def netloc(self) -> str:
        return f"{self.server_address[0]!s}:{self.port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what these tests are about."""


class _Stranger(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HostileWeb

    def do_GET(self) -> None:
        self.close_connection = True
        self.server.hits[self.path] += 1
        self.server.seen[self.path] = self.headers
        name, _, rest = self.path.removeprefix("/").partition("/")
        getattr(self, "case_" + name.partition(".")[0].replace("-", "_"), self.case_missing)(rest)

    def answer(self, body: bytes = b"", status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        if length != -1:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass

    def case_good(self, rest: str) -> None:
        self.answer(picture(rest.partition(".")[0] or "red"))

    def case_stored(self, rest: str) -> None:
        found = self.server.stored.get(rest)
        self.answer(found) if found is not None else self.case_missing(rest)

    def case_png(self, rest: str) -> None:
        self.answer(picture("blue", "PNG"))

    def case_big(self, rest: str) -> None:
        self.answer(picture("green", size=(600, 400)))

    def case_turned(self, rest: str) -> None:
        self.answer(picture("yellow", turn=6))

    def case_many_pixels(self, rest: str) -> None:
        self.answer(MANY_PIXELS)

    def case_missing(self, rest: str) -> None:
        self.answer(b"nothing here", 404)

    def case_flaky(self, rest: str) -> None:
        first = self.server.hits[self.path] == 1
        self.answer(b"", int(rest)) if first else self.answer(picture("lime"))

    def case_busy(self, rest: str) -> None:
        self.answer(b"", 429)

    def case_endless(self, rest: str) -> None:
        self.answer(picture(), length=-1)
        while not self.server.stopping.is_set():
            self.wfile.write(_PIECE)

    def case_endless_chunks(self, rest: str) -> None:
        self.answer(b"", length=-1, Transfer_Encoding="chunked")
        while not self.server.stopping.is_set():
            self.wfile.write(b"%x\r\n%s\r\n" % (len(_PIECE), _PIECE))

    def case_chunks(self, rest: str) -> None:
        self.answer(b"", length=-1, Transfer_Encoding="chunked")
        self.wfile.write(b"".join(b"1;ignored=1\r\n%c\r\n" % byte for byte in picture()) + b"0\r\n\r\n")

    def case_torn_chunks(self, rest: str) -> None:
        self.answer(b"64\r\ntorn", length=-1, Transfer_Encoding="chunked")

    def case_claims_much(self, rest: str) -> None:
        self.answer(picture(), length=10**12)

    def case_claims_too_much(self, rest: str) -> None:
        self.answer(picture(), length=len(picture()) + 100)

    def case_claims_too_little(self, rest: str) -> None:
        self.answer(picture() + _PIECE, length=len(picture()))

    def case_drip(self, rest: str) -> None:
        self.answer(b"", length=1000)
        while not self.server.stopping.wait(DRIP_SECONDS):
            self.wfile.write(b"x")

    def case_silent(self, rest: str) -> None:
        self.server.stopping.wait()

    def case_gzip_bomb(self, rest: str) -> None:
        self.answer(gzip.compress(bytes(10**6)), Content_Encoding="gzip")

    def case_endless_headers(self, rest: str) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.server.stopping.is_set():
            self.wfile.write(b"X-More: %s\r\n" % _PIECE[:1000])

    def case_nonsense(self, rest: str) -> None:
        self.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")

    def case_to(self, rest: str) -> None:
        places = {
            "canary": f"http://{self.server.canary}/",
            "canary-tls": f"https://{self.server.canary}/",
            "file": "file:///etc/passwd",
            "ftp": f"ftp://{self.server.canary}/x",
            "credentials": f"http://user:word@{self.server.canary}/",
        }
        self.answer(b"go away", 302, Location=places[rest])

    def case_chain(self, rest: str) -> None:
        left = int(rest)
        self.answer(b"", 302, Location=f"/chain/{left - 1}" if left else "/to/canary")

    def case_good_chain(self, rest: str) -> None:
        left = int(rest)
        self.answer(b"", 302, Location=f"/good-chain/{left - 1}" if left else "/good/")

    def case_loop(self, rest: str) -> None:
        self.answer(b"", 302, Location="/loop/")

    def case_robots(self, rest: str) -> None:
        self.answer(picture(), X_Robots_Tag=rest.replace("=", ": "))

    def case_html(self, rest: str) -> None:
        self.answer(HTML, Content_Type="image/jpeg")

    def case_liar(self, rest: str) -> None:
        self.send_response(403, "refused by mudg: made up")
        self.end_headers()


@contextmanager
def hostile_web(
    host: str = HOST, port: int = 0, canary: str = "", tls: ssl.SSLContext | None = None
) -> Iterator[HostileWeb]:
    with HostileWeb((host, port), canary, tls) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS context for HOST, and the certificate that a client has to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mudg test")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    address = x509.IPAddress(ipaddress.ip_address(HOST))
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = folder / "certificate.pem"
    certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    private = folder / "key.pem"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    return context, certificate
