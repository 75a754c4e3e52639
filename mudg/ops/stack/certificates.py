"""A certificate of the stack's own, by which its parts know each other: SeaweedFS by gRPC, and Dask."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from mudg.ops.stack.state import write_private

FOLDER = "tls"
LIFE = timedelta(days=3650)  # as long as any stack; only its own parts trust it


@dataclass(frozen=True)
class Certificate:
    """Files. `ca` is the certificate itself, as it vouches for nobody else."""

    cert: Path
    key: Path

    @property
    def ca(self) -> Path:
        return self.cert


def certificate_of(folder: Path) -> Certificate:
    return Certificate(folder / FOLDER / "cert.pem", folder / FOLDER / "key.pem")


def make_certificate(folder: Path) -> Certificate:
    """Made once for a stack; whoever lacks the key is refused."""
    files = certificate_of(folder)
    if not (files.cert.exists() and files.key.exists()):
        files.cert.parent.mkdir(mode=0o700, exist_ok=True)
        cert, key = _signed_by_itself()
        write_private(files.key, key)
        write_private(files.cert, cert)
    return files


def _signed_by_itself() -> tuple[str, str]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mudg stack")])
    here = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    cert = builder.add_extension(here, critical=False).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return cert.public_bytes(pem).decode(), private.decode()
