"""Certificate authorities, and signatures with their certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skillhall._internal.signing import keys
from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle

SUBJECT = "CN=Acme Skills"
_NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Authority:
    """A certificate authority."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, name: str, path_length: int | None = None) -> Authority:
        """Create a root."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=path_length)
        return cls(key, _issue(key, subject, key, subject, constraints))

    @property
    def pem(self) -> bytes:
        """The certificate in PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def der(self) -> bytes:
        """The certificate in DER."""
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def issue_authority(
        self, name: str, *, is_authority: bool = True, is_expired: bool = False
    ) -> Authority:
        """Create an authority below this one."""
        key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=is_authority, path_length=None)
        certificate = _issue(
            key, _name(name), self.key, self.certificate.subject, constraints, is_expired=is_expired
        )
        return Authority(key, certificate)


def sign_with_certificate(
    authority: Authority,
    statement: bytes = b"{ }",
    *,
    chain: Sequence[Authority] = (),
    for_signatures: bool = True,
) -> SigstoreBundle:
    """Sign a statement with a certificate for `SUBJECT` that the authority issues."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=for_signatures,
        content_commitment=False,
        key_encipherment=not for_signatures,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = _issue(
        key, _name(SUBJECT.removeprefix("CN=")), authority.key, authority.certificate.subject, usage
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    bundle = SigstoreBundle(statement, b"", certificates=(der, *(one.der for one in chain)))
    return bundle._replace(signature=keys.sign(key, bundle.signed_bytes))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _issue(  # noqa: PLR0913 - the fields of a certificate
    key: ec.EllipticCurvePrivateKey,
    subject: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    extension: x509.ExtensionType,
    *,
    is_expired: bool = False,
) -> x509.Certificate:
    start = _NOW - timedelta(days=20 if is_expired else 1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=10))
        .add_extension(extension, critical=True)
        .sign(issuer_key, hashes.SHA256())
    )
