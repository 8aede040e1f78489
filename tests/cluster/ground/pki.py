"""The certificates of a throw-away cluster: one authority, elliptic keys, valid for a month."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = dt.timedelta(days=30)


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return key


def _builder(subject: x509.Name, issuer: x509.Name) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + VALID)
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """Signs into one folder: NAME.crt and NAME.key, and its own ca.crt and ca.key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self._subject = _common_name("watercolour-test-ca")
        self._key = _key(folder / "ca.key")
        signed = (
            _builder(self._subject, self._subject)
            .public_key(self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def sign(
        self, name: str, *, addresses: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """A certificate and key for a server at these addresses and host names."""
        key = _key(self.folder / f"{name}.key")
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_common_name(name), self._subject).public_key(key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        names: list[x509.GeneralName] = [
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
            *(x509.DNSName(host) for host in hosts),
        ]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        signed = builder.sign(self._key, hashes.SHA256())
        path = self.folder / f"{name}.crt"
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        return path, self.folder / f"{name}.key"

    def key_pair(self, name: str) -> tuple[Path, Path]:
        """A private and a public key, for service-account tokens."""
        private = self.folder / f"{name}.key"
        public = self.folder / f"{name}.pub"
        public.write_bytes(
            _key(private)
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        return private, public
