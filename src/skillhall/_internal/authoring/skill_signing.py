"""Signing of skill folders, and creation of keys for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.signing import keys
from skillhall._internal.signing.signer import build_signed_statement, sign_files
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.skill.signatures.file_check import hash_files
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from skillhall._internal.sources.folder.bundle_reader import read_bundle
from skillhall.errors import Conflict, NotASkill, SkillRejected

if TYPE_CHECKING:
    from skillhall._internal.signing.keys import PrivateKey

SignFiles: TypeAlias = Callable[[str, Mapping[str, str]], bytes]

_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644


@dataclass(frozen=True, slots=True)
class SignedSkill:
    """A skill and its new signature file."""

    name: str
    path: str  # of the signature file
    files: int  # number of signed files


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """Paths of a new key pair."""

    private: str
    public: str


def sign_skill(folder: str, sign: SignFiles) -> SignedSkill:
    """Sign all files of a skill, and write the signature next to them.

    `sign` returns the signature file for a name and the digests of all files.
    Raises: NotASkill, SkillRejected if not every file can be signed, ConfigInvalid, OSError.
    """
    path = os.path.realpath(folder)
    bundle = read_bundle(FolderHandle(path), LENIENT.scan_policy.with_hidden_files)
    if not any(map(is_skill_md, bundle.files)):
        raise NotASkill(folder)
    if bundle.findings:
        raise SkillRejected(folder, [finding.message for finding in bundle.findings])
    name, digests = os.path.basename(path), hash_files(bundle)
    data = sign(name, digests)
    with WritableFolder(path) as target:
        target.write_file(SIGNATURE_FILE, data)
    return SignedSkill(name, os.path.join(folder, SIGNATURE_FILE), len(digests))


def sign_with_key(key: PrivateKey) -> SignFiles:
    """Return a function that signs with a key."""
    return partial(sign_files, key=key)


def sign_with_identity(trust_config: bytes, path: str) -> SignFiles:
    """Return a function that signs with the identity of the CI workflow.

    Raises: ModuleNotFoundError without the package `sigstore`.
    """
    # The package is an extra.
    from skillhall._internal.signing.sigstore_identity import sign_statement  # noqa: PLC0415

    return lambda name, digests: sign_statement(
        build_signed_statement(name, digests), trust_config, path
    )


def create_key_files(folder: str, name: str, passphrase: bytes | None = None) -> KeyFiles:
    """Create `NAME.key`, readable by the user only, and `NAME.pub`.

    Raises: Conflict if one exists, OSError.
    """
    private, public = f"{name}.key", f"{name}.pub"
    pair = keys.create_key_pair(passphrase)
    with WritableFolder(folder) as target:
        for file in (private, public):
            if target.entry_kind(file) is not None:
                raise Conflict(file)
        target.create_file(private, pair.private, _PRIVATE_MODE)
        target.create_file(public, pair.public, _PUBLIC_MODE)
    return KeyFiles(os.path.join(folder, private), os.path.join(folder, public))
