"""Loads policy files, and the keys and certificates of the signers that they name.

The files of the machine and of the user may be links. Those of a project may come from a
stranger: they must be regular files inside the project.
"""

from __future__ import annotations

import os
import stat
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from skillhall._internal.config_file.nodes import MAX_CONFIG_BYTES, parse_config_document
from skillhall._internal.fs.handles import open_root, read_below, real_path
from skillhall._internal.policy.trust.policies import (
    UNKNOWN_SIGNER,
    KnownSigner,
    LevelPolicy,
    Policies,
    PolicyLevel,
    SignatureCheck,
    SignatureStatus,
)
from skillhall._internal.policy.trust.policy_file import parse_policy
from skillhall._internal.settings import is_present
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.signatures.file_check import read_signature
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE, SignatureInvalid
from skillhall.errors import ConfigInvalid, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.policy.trust.policy_file import SignerEntry
    from skillhall._internal.signing.signers import Signer
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.signatures.sigstore_bundle import SigstoreBundle

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_INSTALL = "signatures cannot be checked; to install it: pip install 'skillhall[signing]'"
_SIGSTORE = (
    "the package 'sigstore' is not installed, so signatures with an identity cannot be checked; "
    "to install it: pip install 'skillhall[sigstore]'"
)


class LoadedPolicies:
    """The policies that could be read, and the problem with the others."""

    def __init__(self, policies: Policies, problem: str = "") -> None:
        self.policies = policies
        self.problem = problem  # names the file and the line; "" if there is none

    def check_signature(self, bundle: Bundle) -> SignatureCheck:
        """Return who signed the files of a skill. Raises: SkillhallError from reading them."""
        if SIGNATURE_FILE not in bundle.files:
            return SignatureCheck()
        try:
            signature = read_signature(bundle)
            known, problem = self._find_signers(signature)
        except SignatureInvalid as error:
            problem = f"its signature is broken: {error}"
            return SignatureCheck(problem=problem, status=SignatureStatus.BROKEN)
        if known:
            return SignatureCheck(known, "", SignatureStatus.KNOWN)
        can_check = find_spec("cryptography") is not None and _SIGSTORE not in problem
        status = SignatureStatus.UNKNOWN if can_check else SignatureStatus.UNCHECKED
        return SignatureCheck(problem=problem or UNKNOWN_SIGNER, status=status)

    def _find_signers(self, signature: SigstoreBundle) -> tuple[frozenset[KnownSigner], str]:
        """Return who made a signature, and why others cannot be checked.

        Raises: SignatureInvalid.
        """
        signers, problem = self._signers
        known = set()
        for one, signer in signers.items():
            try:
                if signer.accepts(signature):
                    known.add(one)
            except ConfigInvalid as error:
                problem = problem or str(error)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] != "sigstore":
                    raise
                problem = _SIGSTORE
        return frozenset(known), problem

    def find_document_signers(self, signed: SigstoreBundle) -> list[str]:
        """Return the known signers of a document other than a skill, sorted.

        Signers of a project are left out. Raises: SignatureInvalid.
        """
        signers, problem = self._signers
        if problem and not signers:
            raise SignatureInvalid(problem)
        known = frozenset(one for one in signers if signers[one].accepts(signed))
        return SignatureCheck(known).find_names(PolicyLevel.USER)

    @cached_property
    def _signers(self) -> tuple[Mapping[KnownSigner, Signer], str]:
        """The known signers, and why others cannot be checked."""
        signers: dict[KnownSigner, Signer] = {}
        problem = ""
        for policy in self.policies.files:
            for entry in policy.rules.signers:
                try:
                    signer = _load_signer(policy, entry)
                except ConfigInvalid as error:
                    problem = problem or str(error)
                except ModuleNotFoundError as error:
                    if (error.name or "").partition(".")[0] != "cryptography":
                        raise
                    return {}, f"the package 'cryptography' is not installed, so {_INSTALL}"
                else:
                    signers[KnownSigner(policy.level, entry.name)] = signer
        return signers, problem


NO_POLICIES = LoadedPolicies(Policies())


def load_policies(paths: Mapping[str, str]) -> LoadedPolicies:
    """Load the files that exist, by level."""
    files, problems = [], []
    for level in PolicyLevel:
        path = paths.get(level, "")
        if not path or not is_present(path):
            continue
        try:
            folder, name = os.path.split(path)
            document = parse_config_document(path, _read_file(level, folder, name))
            files.append(LevelPolicy(level, path, parse_policy(document)))
        except ConfigInvalid as error:
            problems.append(str(error))
    return LoadedPolicies(Policies(tuple(files)), "; ".join(problems))


def _load_signer(policy: LevelPolicy, entry: SignerEntry) -> Signer:
    """Return a signer. Raises: ConfigInvalid, ModuleNotFoundError."""
    # Only this package needs `cryptography`, which takes 60 ms to import.
    from skillhall._internal.signing.signers import load_signer  # noqa: PLC0415

    folder, name = os.path.dirname(policy.path), entry.key or entry.certificate
    name = name or entry.trusted_root
    data = _read_file(policy.level, folder, name) if name else b""
    return load_signer(entry, data, os.path.join(folder, name))


def _read_file(level: PolicyLevel, folder: str, name: str) -> bytes:
    """Read a file of a policy. Raises: ConfigInvalid."""
    path = os.path.join(folder, name)
    if level is not PolicyLevel.PROJECT:
        folder, name = os.path.split(real_path(path))
    try:
        if level is PolicyLevel.MACHINE:
            _check_writers(path, os.path.join(folder, name))
        with open_root(folder) as root:
            return read_below(root, RelativePath.parse(name), MAX_CONFIG_BYTES)
    except ConfigInvalid:
        raise
    except (SkillhallError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigInvalid(path, f"cannot be read: {reason}") from None


def _check_writers(path: str, target: str) -> None:
    """Check that only the administrator can write a file or replace it.

    Windows has other permissions, which are not checked. Raises: ConfigInvalid, OSError.
    """
    if not hasattr(os, "geteuid"):
        return
    for subject in (target, os.path.dirname(target)):
        status = os.stat(subject)
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & _WRITABLE_BY_OTHERS:
            problem = f"others can write to {'it' if subject == target else 'its folder'}"
            hint = "allow only the administrator to write to the file and its folder"
            raise ConfigInvalid(path, problem, hint)
