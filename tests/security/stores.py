"""What somebody without keys can try at the stack's store: S3, its filer, master and volumes, and gRPC."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped, unused-ignore]
import httpx
from botocore.auth import S3SigV4Auth  # type: ignore[import-untyped, unused-ignore]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped, unused-ignore]
from botocore.credentials import Credentials  # type: ignore[import-untyped, unused-ignore]

from mudg.ops.stack.running import BUCKET, Stack
from tests.security.results import NotTried

KEY = "store/precious/object"
CONTENT = b"what nobody else may read or change"
POLICY = (
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"*"}]}'
)
IAM = "Action={}&Version=2010-05-08&UserName=evil"
# By what they do: method, path below the address, body.
REQUESTS = {
    "list buckets": ("GET", "/", ""),
    "list objects": ("GET", f"/{BUCKET}?list-type=2", ""),
    "get": ("GET", f"/{BUCKET}/{KEY}", ""),
    "put": ("PUT", f"/{BUCKET}/{KEY}", "mine"),
    "put new": ("PUT", f"/{BUCKET}/store/inbox/evil.yaml", "name: evil\nclasses: [cat, dog]\n"),
    "delete": ("DELETE", f"/{BUCKET}/{KEY}", ""),
    "delete the bucket": ("DELETE", f"/{BUCKET}", ""),
    "make a bucket": ("PUT", "/evil", ""),
    "begin an upload in parts": ("POST", f"/{BUCKET}/{KEY}?uploads=", ""),
    "open the bucket to all": ("PUT", f"/{BUCKET}?policy=", POLICY),
    "read the policy": ("GET", f"/{BUCKET}?policy=", ""),
    "list users": ("POST", "/", IAM.format("ListUsers")),
    "make an access key": ("POST", "/", IAM.format("CreateAccessKey")),
}


@dataclass(frozen=True)
class Try:
    """One thing for the intruder to do."""

    tried: str
    fault: int
    verb: str
    arguments: list[Any]
    case: str = ""


@dataclass
class Precious:
    """An object of the owner's, and all that lies beside it."""

    stack: Stack
    before: list[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.client = _client(self.stack, self.stack.keys.secret)
        self.client.put_object(Bucket=BUCKET, Key=KEY, Body=CONTENT)
        self.before = self._listed()

    def same(self) -> str:
        assert self.client.get_object(Bucket=BUCKET, Key=KEY)["Body"].read() == CONTENT, "it was changed"
        now = self._listed()
        assert now == self.before, f"other objects: {set(now) ^ set(self.before)}"
        buckets = [one["Name"] for one in self.client.list_buckets()["Buckets"]]
        assert buckets == [BUCKET], f"buckets: {buckets}"
        return f"the object is as it was, and so are all {len(now)}"

    def _listed(self) -> list[tuple[str, str]]:
        objects = self.client.list_objects_v2(Bucket=BUCKET)["Contents"]
        return [(item["Key"], item["ETag"]) for item in objects]


def tries(stack: Stack) -> Iterator[Try]:
    """Answers to the same requests with the right keys are looked at first: else all could be refused for
    being no requests of S3."""
    _check_right_keys(stack)
    signers = {
        "without keys": None,
        "with keys of one's own": Credentials("evil", "evil"),
        "with the right name and a wrong key": Credentials(stack.keys.access, "0" * 40),
    }
    for how, keys in signers.items():
        for what, request in REQUESTS.items():
            yield Try(f"S3 {how}", 80, "request", signed(stack, keys, *request), what)
    for what, url in _links(stack).items():
        yield Try("S3 by a signed link that is not for this", 80, "request", ["GET", url, {}, ""], what)
    yield from _other_http(stack)


def _check_right_keys(stack: Stack) -> None:
    keys = Credentials(stack.keys.access, stack.keys.secret)
    for what in ("list buckets", "list objects", "get"):
        method, url, headers, body = signed(stack, keys, *REQUESTS[what])
        reply = httpx.request(method, url, headers=headers, content=body, timeout=10, trust_env=False)
        if reply.status_code != httpx.codes.OK:
            raise NotTried(f"{what} with the right keys: {reply.status_code} {reply.text[:200]}")


def signed(stack: Stack, keys: Any, method: str, path: str, body: str) -> list[Any]:
    """A request as the intruder sends it: method, address, headers, body."""
    request = AWSRequest(method=method, url=f"{stack.s3_url}{path}", data=body.encode())
    if body.startswith("Action="):
        request.headers["Content-Type"] = "application/x-www-form-urlencoded"
    if keys is not None:
        S3SigV4Auth(keys, "s3", "us-east-1").add_auth(request)
    return [method, request.url, dict(request.headers.items()), body]


def _links(stack: Stack) -> dict[str, str]:
    """A link opens one object, for a while."""
    client = _client(stack, stack.keys.secret)
    good = client.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "ready"})
    old = client.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": KEY}, ExpiresIn=1)
    time.sleep(2.5)
    return {"another object": good.replace("/ready?", f"/{KEY}?"), "too late": old}


def _other_http(stack: Stack) -> Iterator[Try]:
    """The master signed whatever anybody asked for."""
    port = stack.state.ports
    places = {
        "s3-filer": (f"/buckets/{BUCKET}/{KEY}", f"/buckets/{BUCKET}/", "/"),
        "s3-master": (
            "/dir/assign",
            "/dir/lookup?volumeId=1",
            "/vol/grow",
            f"/col/delete?collection={BUCKET}",
            "/submit",
        ),
        "s3-volume": ("/1,01637037d6", "/2,01637037d6", "/stats/disk", "/ui/index.html"),
    }
    for name, paths in places.items():
        for path in paths:
            for method in ("GET", "PUT", "POST", "DELETE"):
                url, body = f"http://127.0.0.1:{port[name]}{path}", "" if method == "GET" else "mine"
                what = f"SeaweedFS' {name.removeprefix('s3-')} by HTTP"
                yield Try(what, 80, "request", [method, url, {}, body], f"{method} {path}")


def unix_sockets(stack: Stack) -> list[Path]:
    """SeaweedFS makes them where everybody can see them; gRPC has its ports plus 10000."""
    ports = [number for name, number in stack.state.ports.items() if name.startswith("s3")]
    ends = tuple(f"-{number + more}.sock" for number in ports for more in (0, 10_000))
    return [path for path in Path("/tmp").glob("seaweedfs-*.sock") if path.name.endswith(ends)]


def _client(stack: Stack, secret: str) -> Any:
    session = boto3.session.Session()
    keys = {"aws_access_key_id": stack.keys.access, "aws_secret_access_key": secret}
    return session.client("s3", endpoint_url=stack.s3_url, region_name="us-east-1", **keys)
