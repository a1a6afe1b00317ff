"""Known signers, whose signatures a user or a policy recognizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm

from skillhall._internal.signing import certificates, keys
from skillhall._internal.skill.signatures.statement import SignatureInvalid

if TYPE_CHECKING:
    from cryptography import x509
    from sigstore.verify import Verifier

    from skillhall._internal.policy.trust.policy_file import SignerEntry
    from skillhall._internal.signing.sigstore_identity import IdentityPolicy
    from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle


class KeySigner(NamedTuple):
    """A signer identified by a public key."""

    name: str
    key: keys.PublicKey

    def accepts(self, bundle: SigstoreBundle) -> bool:
        """Whether this signer made the signature. Raises: SignatureInvalid."""
        if bundle.certificates:
            return False
        hint = keys.compute_key_hint(self.key)
        if bundle.key_hint and bundle.key_hint != hint:
            return False
        try:
            keys.verify(self.key, bundle.signature, bundle.signed_bytes)
        except SignatureInvalid:
            # Without a hint, the signature may be from another key.
            if bundle.key_hint:
                raise
            return False
        return True


class CertificateSigner(NamedTuple):
    """A signer identified by certificate authorities and a subject."""

    name: str
    roots: list[x509.Certificate]
    subject: str  # RFC 4514, for example "CN=Acme Skills,O=Acme"

    def accepts(self, bundle: SigstoreBundle) -> bool:
        """Whether this signer made the signature. Raises: SignatureInvalid."""
        if not bundle.certificates or bundle.is_keyless:
            return False
        try:
            certificate = certificates.verify_chain(bundle.certificates, self.roots)
        except SignatureInvalid:
            return False
        if certificate.subject.rfc4514_string() != self.subject:
            return False
        try:
            key = certificate.public_key()
        except (ValueError, UnsupportedAlgorithm):
            raise SignatureInvalid("the type of the signing key is not supported") from None
        keys.verify(key, bundle.signature, bundle.signed_bytes)
        return True


@dataclass(slots=True)
class IdentitySigner:
    """A signer with a Sigstore identity, such as a CI workflow."""

    name: str
    identity: str  # pattern
    issuer: str
    trusted_root: bytes = b""  # the trusted root of a private Sigstore
    path: str = "Sigstore"  # path of the trusted root, for messages
    _checker: tuple[IdentityPolicy, Verifier] | None = None

    def accepts(self, bundle: SigstoreBundle) -> bool:
        """Whether this signer made the signature.

        Raises: SignatureInvalid, ConfigInvalid, ModuleNotFoundError.
        """
        if not bundle.is_keyless:
            return False
        # The package `sigstore` takes 400 ms to import, and most signers have a key.
        from skillhall._internal.signing.sigstore_identity import (  # noqa: PLC0415
            IdentityPolicy,
            is_signed_by,
            open_verifier,
        )

        if self._checker is None:
            policy = IdentityPolicy(self.identity, self.issuer)
            self._checker = policy, open_verifier(self.trusted_root, self.path)
        return is_signed_by(bundle, *self._checker)


Signer = KeySigner | CertificateSigner | IdentitySigner


def load_signer(entry: SignerEntry, data: bytes, path: str) -> Signer:
    """Return the signer of a policy's entry.

    `data` is the content of the file that the entry names, if any.
    Raises: ConfigInvalid.
    """
    if entry.identity and not entry.trusted_root:
        return IdentitySigner(entry.name, entry.identity, entry.issuer)
    if entry.identity:
        return IdentitySigner(entry.name, entry.identity, entry.issuer, data, path)
    if entry.key:
        return KeySigner(entry.name, keys.load_public_key(data, path))
    return CertificateSigner(entry.name, certificates.load_certificates(data, path), entry.subject)
