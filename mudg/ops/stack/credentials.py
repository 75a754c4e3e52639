"""What only the owner of a stack has: keys, a password, and a certificate by which its parts know each other
(SeaweedFS by gRPC, and Dask). Created once; whoever lacks them is refused."""

from __future__ import annotations

import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from tasks.executors.guarded_api import new_password

KEYS_FILE, TLS_FOLDER = "keys.json", "tls"
LIFETIME = timedelta(days=3650)  # as long as any stack; only its own parts trust the certificate


class Keys(BaseModel):
    """Those of S3, what SeaweedFS signs its own requests with, and Prefect's user and password."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    access: str
    secret: str
    internal: str
    prefect: str


def keys_of(folder: Path) -> Keys:
    """The same for as long as the folder lives: its data can be read with no others."""
    path = folder / KEYS_FILE
    stored = json.loads(path.read_bytes()) if path.exists() else {}
    new = {name: secrets.token_hex(size) for name, size in (("access", 10), ("secret", 20), ("internal", 20))}
    keys = Keys.model_validate(new | {"prefect": new_password()} | stored)  # an older release's lack some
    if keys.model_dump() != stored:
        write_private(path, keys.model_dump_json() + "\n")
    return keys


def write_private(path: Path, text: str) -> None:
    """Readable by nobody else, and either whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    new.replace(path)


class Certificate(NamedTuple):
    """Files. The certificate is its own authority, as it vouches for nobody else."""

    cert: Path
    key: Path


def certificate_of(folder: Path) -> Certificate:
    return Certificate(folder / TLS_FOLDER / "cert.pem", folder / TLS_FOLDER / "key.pem")


def make_certificate(folder: Path) -> Certificate:
    files = certificate_of(folder)
    if not (files.cert.exists() and files.key.exists()):
        files.cert.parent.mkdir(mode=0o700, exist_ok=True)
        cert, key = _self_signed()
        write_private(files.key, key)
        write_private(files.cert, cert)
    return files


def _self_signed() -> tuple[str, str]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mudg stack")])
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    cert = builder.add_extension(hosts, critical=False).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return cert.public_bytes(pem).decode(), private.decode()
