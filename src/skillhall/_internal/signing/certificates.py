"""Certificate chains of signatures.

A chain is checked as of the start of the signer certificate's validity, as the reference tool does:
a signature has no trusted time, and would otherwise expire with a short-lived certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

from skillhall._internal.skill.signatures.statement import SignatureInvalid
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_CHAIN = 8  # certificates between the signer and a root


def load_certificates(data: bytes, name: str) -> list[x509.Certificate]:
    """Load PEM certificates; `name` is their origin in errors. Raises: ConfigInvalid."""
    try:
        return x509.load_pem_x509_certificates(data)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigInvalid(name, "it contains no PEM certificate", "") from None


def verify_chain(chain: Sequence[bytes], roots: Sequence[x509.Certificate]) -> x509.Certificate:
    """Return the signer's certificate if a root has issued it. Raises: SignatureInvalid."""
    try:
        signer, *others = (x509.load_der_x509_certificate(one) for one in chain)
        _check_signer(signer)
        _check_issuers(signer, [*roots, *others], roots)
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension):
        raise SignatureInvalid("a certificate is malformed") from None
    return signer


def _check_signer(signer: x509.Certificate) -> None:
    try:
        usage = signer.extensions.get_extension_for_class(x509.KeyUsage).value
        if usage.digital_signature:
            return
    except x509.ExtensionNotFound:
        pass
    try:
        purposes = signer.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        if ExtendedKeyUsageOID.CODE_SIGNING in purposes:
            return
    except x509.ExtensionNotFound:
        pass
    raise SignatureInvalid("the certificate of the signer is not valid for signing")


def _check_issuers(
    signer: x509.Certificate,
    candidates: Sequence[x509.Certificate],
    roots: Sequence[x509.Certificate],
) -> None:
    current, moment = signer, signer.not_valid_before_utc
    for depth in range(MAX_CHAIN):
        if current in roots:
            return
        issuer = _find_issuer(current, candidates)
        if issuer is None:
            break
        if not issuer.not_valid_before_utc <= moment <= issuer.not_valid_after_utc:
            raise SignatureInvalid(
                "a certificate authority was not valid when it issued a certificate"
            )
        _check_authority(issuer, depth)
        current = issuer
    raise SignatureInvalid("the certificate of the signer was not issued by a known authority")


def _find_issuer(
    certificate: x509.Certificate, candidates: Iterable[x509.Certificate]
) -> x509.Certificate | None:
    for candidate in candidates:
        if candidate.subject != certificate.issuer or candidate == certificate:
            continue
        try:
            certificate.verify_directly_issued_by(candidate)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return candidate
    return None


def _check_authority(issuer: x509.Certificate, depth: int) -> None:
    """Check that a certificate may issue one with `depth` authorities below it."""
    try:
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = x509.BasicConstraints(ca=False, path_length=None)
    if not constraints.ca:
        raise SignatureInvalid("an issuer in the certificate chain is not a certificate authority")
    if constraints.path_length is not None and depth > constraints.path_length:
        raise SignatureInvalid("the certificate chain is longer than its authority allows")
