"""Checks the signature of a skill, and signs skills.

A signature tells who wrote a skill. It is not an approval.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.signing.sigstore_bundle import (
    SigstoreBundle,
    parse_bundle,
    render_bundle,
)
from skillhall._internal.signing.statement import (
    SIGNATURE_FILE,
    UNSIGNED_NAMES,
    SignatureInvalid,
    SignedFiles,
    build_statement,
    parse_statement,
)
from skillhall._internal.skill.bundle import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillhall._internal.signing.keys import PrivateKey
    from skillhall._internal.signing.signers import Signer
    from skillhall._internal.skill.bundle import Bundle

_MAX_NAMES = 5  # paths in a message


class SignatureState(StrEnum):
    """What is known about the author of a skill."""

    UNSIGNED = "unsigned"
    VALID = "valid"  # by a known signer
    UNKNOWN = "unknown"  # the files match, but the signer is unknown
    UNCHECKED = "unchecked"  # the package `cryptography` is not installed
    BROKEN = "broken"


class SignatureCheck(NamedTuple):
    """Result of checking the signature of a skill."""

    state: SignatureState
    signer: str = ""  # name, if the signature is valid
    problem: str = ""  # if it is broken


def check_signature(bundle: Bundle, load_signers: Callable[[], Iterable[Signer]]) -> SignatureCheck:
    """Check the files of a skill against its signature.

    `load_signers` is called only for a signed skill whose files match.
    """
    file = bundle.files.get(SIGNATURE_FILE)
    if file is None:
        return SignatureCheck(SignatureState.UNSIGNED)
    try:
        signature = parse_bundle(file.read())
        _compare_files(bundle, parse_statement(signature.statement))
        signer = _find_signer(signature, load_signers)
    except SignatureInvalid as error:
        return SignatureCheck(SignatureState.BROKEN, problem=str(error))
    if signer is None:
        return SignatureCheck(SignatureState.UNCHECKED)
    state = SignatureState.VALID if signer else SignatureState.UNKNOWN
    return SignatureCheck(state, signer)


def _find_signer(
    signature: SigstoreBundle, load_signers: Callable[[], Iterable[Signer]]
) -> str | None:
    """Return the name of the signer, "" if unknown, or None if it cannot be checked."""
    try:
        # An optional extra, and slow to import.
        from skillhall._internal.signing.signers import find_signer  # noqa: PLC0415
    except ImportError:
        return None
    return find_signer(signature, load_signers())


def _compare_files(bundle: Bundle, signed: SignedFiles) -> None:
    present = {path: sha256_hex(file.read()) for path, file in bundle.files.items()}
    present = {path: digest for path, digest in present.items() if _is_signed(path)}
    problems = {
        "changed": [p for p, d in signed.digests.items() if present.get(p, d) != d],
        "missing": [p for p in signed.digests if p not in present],
        "not signed": [p for p in present if p not in signed.digests],
    }
    parts = [f"{kind}: {_format_paths(paths)}" for kind, paths in problems.items() if paths]
    if parts:
        raise SignatureInvalid(f"the files differ from the signed ones ({'; '.join(parts)})")


def _is_signed(path: str) -> bool:
    """Whether a signature covers a path.

    The names that the signer chose to ignore do not count: a file that is installed must be signed.
    """
    return path != SIGNATURE_FILE and path.partition("/")[0] not in UNSIGNED_NAMES


def _format_paths(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMES
    names = ", ".join(repr(path) for path in sorted(paths)[:_MAX_NAMES])
    return f"{names} and {more} more" if more > 0 else names


def sign_files(name: str, digests: Mapping[str, str], key: PrivateKey) -> bytes:
    """Return the signature of a skill, to be written to `SIGNATURE_FILE`.

    `digests` has the SHA-256 of each file, in hexadecimal.
    """
    # An optional extra, and slow to import.
    from skillhall._internal.signing import keys  # noqa: PLC0415

    signed = {path: digest for path, digest in digests.items() if _is_signed(path)}
    unsigned = SigstoreBundle(
        build_statement(name, signed), b"", key_hint=keys.compute_key_hint(key.public_key())
    )
    return render_bundle(unsigned._replace(signature=keys.sign(key, unsigned.signed_bytes)))
