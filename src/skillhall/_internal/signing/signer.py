"""Signs the files of a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.signing import keys
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
    statement, hint = build_signed_statement(name, digests), keys.compute_key_hint(key.public_key())
    bundle = SigstoreBundle(statement, b"", key_hint=hint)
    return render_bundle(bundle._replace(signature=keys.sign(key, bundle.signed_bytes)))


def build_signed_statement(name: str, digests: Mapping[str, str]) -> bytes:
    """Return the statement to sign. Raises: SkillRejected."""
    ignored = [path for path in digests if path.partition("/")[0] in UNSIGNED_NAMES]
    if ignored:
        reason = "cannot be signed: the format leaves out files of git and GitHub"
        raise SkillRejected(name, [f"{path!r} {reason}" for path in ignored])
    return build_statement(name, digests)
