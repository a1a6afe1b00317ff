"""In-toto statement of a signature: the digest of every signed file.

The format is version 1.0 of OpenSSF Model Signing. It can also hash files in parts and follow
links; skills are small folders without links, so only whole files are supported.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SIGNATURE_FILE = "skill.oms.sig"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://model_signing/signature/v1.0"
# The reference tool always leaves these out, so a signature says nothing about them.
UNSIGNED_NAMES = (".git", ".gitattributes", ".github", ".gitignore")
MAX_FILES = 10_000
_HEX_DIGEST = re.compile("[0-9a-f]{64}")


class SignatureInvalid(ValueError):
    """A signature that cannot be accepted; the message says why."""


class SignedFiles(NamedTuple):
    """The signed files of a skill."""

    name: str  # of the skill, as the signer wrote it
    digests: Mapping[str, str]  # SHA-256 in hexadecimal, by path
    ignored: tuple[str, ...]  # files and folders that are not signed


def build_statement(name: str, digests: Mapping[str, str]) -> bytes:
    """Return the statement about the files of a skill, with paths in code-point order."""
    paths = sorted(digests)
    return render_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": _combine(digests[p] for p in paths)}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "serialization": {
                    "method": "files",
                    "hash_type": "sha256",
                    "allow_symlinks": False,
                    "ignore_paths": sorted((SIGNATURE_FILE, *UNSIGNED_NAMES)),
                },
                "resources": [
                    {"name": path, "algorithm": "sha256", "digest": digests[path]} for path in paths
                ],
            },
        }
    )


def parse_statement(data: bytes) -> SignedFiles:
    """Parse a statement. Raises: SignatureInvalid."""
    try:
        statement = parse_json(data, unique_keys=True)
        return _read_statement(statement)
    except InvalidJson as error:
        raise SignatureInvalid(f"the signed statement is not valid JSON: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise SignatureInvalid("the signed statement lacks a field") from None


def _read_statement(statement: Any) -> SignedFiles:  # noqa: ANN401 - untrusted JSON
    if (statement["_type"], statement["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise SignatureInvalid("the type of the signed statement is not supported")
    serialization = statement["predicate"]["serialization"]
    if (serialization["method"], serialization["hash_type"]) != ("files", "sha256"):
        raise SignatureInvalid("the signature has no SHA-256 digests of complete files")
    if serialization.get("allow_symlinks", False) is not False:
        raise SignatureInvalid("the signature covers links, which skills cannot contain")
    resources = statement["predicate"]["resources"]
    if len(resources) > MAX_FILES:
        raise SignatureInvalid(f"the signature covers more than {MAX_FILES} files")
    digests = dict(map(_read_resource, resources))
    if len(digests) != len(resources):
        raise SignatureInvalid("the signature names a file twice")
    (subject,) = _require_list(statement["subject"], 1)
    # In the order of the resources: signers do not always sort them.
    if subject["digest"]["sha256"] != _combine(digests.values()):
        raise SignatureInvalid("the signed digests do not match their own checksum")
    ignored = _require_list(serialization.get("ignore_paths", []))
    return SignedFiles(str(subject["name"]), digests, tuple(map(str, ignored)))


def _require_list(value: object, count: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (count is not None and len(value) != count):
        raise SignatureInvalid("a list in the signed statement is invalid")
    return value


def _read_resource(resource: Mapping[str, str]) -> tuple[str, str]:
    path, digest = resource["name"], resource["digest"]
    if resource["algorithm"] != "sha256" or not _HEX_DIGEST.fullmatch(digest):
        raise SignatureInvalid(f"the signed digest of {path[:200]!r} is not a SHA-256 digest")
    try:
        if RelativePath.parse(path).text != path:
            raise SignatureInvalid(f"the signed path {path[:200]!r} is not normalized")
    except UnsafePath as error:
        raise SignatureInvalid(f"the signed path is not safe: {error}") from None
    return path, digest


def _combine(digests: Iterable[str]) -> str:
    return sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
