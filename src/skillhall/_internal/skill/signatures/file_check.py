"""Compares the files of a skill with the digests in its signature file.

This needs no keys: it finds skills that were changed after they were signed. Who signed a skill is
checked by the package `signing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle, parse_bundle
from skillhall._internal.skill.signatures.statement import (
    SIGNATURE_FILE,
    SignatureInvalid,
    parse_statement,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.skill.bundle import Bundle

_MAX_NAMES = 5  # paths in a message


def read_signature(bundle: Bundle) -> SigstoreBundle:
    """Return the signature of a signed skill if it matches the files.

    Raises: SignatureInvalid.
    """
    signature = parse_bundle(bundle.files[SIGNATURE_FILE].read())
    _compare(hash_files(bundle), parse_statement(signature.statement).digests)
    return signature


def hash_files(bundle: Bundle) -> Mapping[str, str]:
    """Return the SHA-256 of every file except the signature, in hexadecimal, by path."""
    files = bundle.files.items()
    return {path: sha256_hex(file.read()) for path, file in files if path != SIGNATURE_FILE}


def _compare(present: Mapping[str, str], signed: Mapping[str, str]) -> None:
    # The paths that a signer chose to ignore count as well: every installed file must be signed.
    differences = {
        "changed": [path for path, digest in signed.items() if present.get(path, digest) != digest],
        "missing": [path for path in signed if path not in present],
        "not signed": [path for path in present if path not in signed],
    }
    parts = [f"{kind}: {_format_paths(paths)}" for kind, paths in differences.items() if paths]
    if parts:
        raise SignatureInvalid(f"the files differ from the signed ones ({'; '.join(parts)})")


def _format_paths(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMES
    names = ", ".join(repr(path) for path in sorted(paths)[:_MAX_NAMES])
    return f"{names} and {more} more" if more > 0 else names
