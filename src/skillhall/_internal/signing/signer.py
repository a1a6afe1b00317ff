"""Signs the files of a skill, and other documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.signing import keys
from skillhall._internal.skill.signatures.envelope import render_envelope
from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle, render_bundle
from skillhall._internal.skill.signatures.statement import UNSIGNED_NAMES, build_statement
from skillhall.errors import SkillRejected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.signing.keys import PrivateKey


def sign_files(name: str, digests: Mapping[str, str], key: PrivateKey) -> bytes:
    """Return the signature file of a skill, from the SHA-256 of each of its files.

    Raises: SkillRejected if the skill has files that the format leaves out.
    """
    return render_bundle(_sign(SigstoreBundle(build_signed_statement(name, digests), b""), key))


def build_signed_statement(name: str, digests: Mapping[str, str]) -> bytes:
    """Return the statement to sign. Raises: SkillRejected."""
    ignored = [path for path in digests if path.partition("/")[0] in UNSIGNED_NAMES]
    if ignored:
        reason = "cannot be signed: the signature format excludes git and GitHub files"
        raise SkillRejected(name, [f"{path!r} {reason}" for path in ignored])
    return build_statement(name, digests)


def sign_document(data: bytes, payload_type: str, key: PrivateKey) -> bytes:
    """Return a document in a signed envelope."""
    return render_envelope(_sign(SigstoreBundle(data, b"", payload_type=payload_type), key))


def _sign(bundle: SigstoreBundle, key: PrivateKey) -> SigstoreBundle:
    signature, hint = keys.sign(key, bundle.signed_bytes), keys.compute_key_hint(key.public_key())
    return bundle._replace(signature=signature, key_hint=hint)
