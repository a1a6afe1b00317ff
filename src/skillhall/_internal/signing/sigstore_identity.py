"""Signatures with a Sigstore identity, such as a CI workflow.

Needs the package `sigstore`. Verification uses no network: a bundle contains the certificate of the
signer and the proofs of the transparency logs, and the keys of the logs are in the trusted root.
"""

from __future__ import annotations

import logging
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from sigstore.dsse import Statement
from sigstore.errors import Error, VerificationError
from sigstore.models import Bundle, ClientTrustConfig, TrustedRoot
from sigstore.oidc import IdentityToken, detect_credential
from sigstore.sign import SigningContext
from sigstore.verify import Verifier
from sigstore.verify.policy import AnyOf, OIDCIssuer, OIDCIssuerV2

from skillhall._internal.signing import keys
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle

_CI_HINT = "run the command in a CI workflow that may request an identity token, or use --key"


class IdentityPolicy:
    """Accepts certificates for an identity (`*` matches any characters) of one issuer."""

    def __init__(self, identity: str, issuer: str) -> None:
        pattern = ".*".join(map(re.escape, identity.split("*")))
        self._identity = re.compile(pattern, re.DOTALL)
        # Older certificates have only the first form of the extension.
        self._issuer = AnyOf([OIDCIssuerV2(issuer), OIDCIssuer(issuer)])

    def verify(self, cert: x509.Certificate) -> None:
        """Check a certificate. Raises: VerificationError."""
        self._issuer.verify(cert)
        if not any(map(self._identity.fullmatch, _read_identities(cert))):
            raise VerificationError("the certificate is for another identity")


def _read_identities(certificate: x509.Certificate) -> Sequence[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    emails = names.get_values_for_type(x509.RFC822Name)
    return [*emails, *names.get_values_for_type(x509.UniformResourceIdentifier)]


def open_verifier(trusted_root: bytes, name: str) -> Verifier:
    """Return the verifier for a trusted root; without one, for the public Sigstore.

    `name` says where the root is from. Raises: ConfigInvalid.
    """
    try:
        if not trusted_root:
            # Suppressed: the package warns on stderr that it does not update the root.
            logging.getLogger("sigstore._internal.tuf").setLevel(logging.ERROR)
            # Offline, with the root that comes with the package or that its own tool has updated.
            return Verifier.production(offline=True)
        with tempfile.TemporaryDirectory() as folder:  # the package reads roots only from files
            path = Path(folder, "trusted_root.json")
            path.write_bytes(trusted_root)
            return Verifier(trusted_root=TrustedRoot.from_file(str(path)))
    except (Error, ValueError) as error:
        problem = f"it is not a trusted root of Sigstore: {type(error).__name__}"
        raise ConfigInvalid(name, problem) from None


def is_signed_by(bundle: SigstoreBundle, policy: IdentityPolicy, verifier: Verifier) -> bool:
    """Whether an identity made the signature. Raises: SignatureInvalid."""
    try:
        certificate = x509.load_der_x509_certificate(bundle.certificates[0])
        key = certificate.public_key()
        policy.verify(certificate)
    except Exception:  # noqa: BLE001 - malformed certificates raise errors of many kinds
        return False
    keys.verify(key, bundle.signature, bundle.signed_bytes)
    try:
        _, payload = verifier.verify_dsse(Bundle.from_json(bundle.data), policy)
    except Exception:  # noqa: BLE001 - malformed bundles raise errors of many kinds
        # The certificate is not from this authority, or a log does not contain the signature.
        return False
    return payload == bundle.statement


def sign_statement(statement: bytes, trust_config: bytes, name: str) -> bytes:
    """Sign with the identity of the CI workflow that runs this process.

    Without a trust config, the public Sigstore is used; `name` says where the config is from.
    Raises: ConfigInvalid.
    """
    try:
        if trust_config:
            config = ClientTrustConfig.from_json(trust_config.decode("utf-8"))
        else:
            config = ClientTrustConfig.production()
        token = detect_credential()
    except Exception as error:  # noqa: BLE001 - of the network, of files and of the package
        # The message may contain the response of the host that issues tokens.
        problem = f"the identity of this process cannot be used: {type(error).__name__}"
        raise ConfigInvalid(name, problem, _CI_HINT) from None
    if token is None:
        raise ConfigInvalid(name, "no identity token is available", _CI_HINT)
    try:
        with SigningContext.from_trust_config(config).signer(IdentityToken(token)) as signer:
            return signer.sign_dsse(Statement(statement)).to_json().encode("utf-8") + b"\n"
    except Exception as error:  # noqa: BLE001 - as above
        raise ConfigInvalid(name, f"signing failed: {type(error).__name__}", "try again") from None
