"""Comparison of installed skills with the lock file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from skillhall._internal.installer.install import build_bundle
from skillhall._internal.installer.install_rules import load_install_rules
from skillhall._internal.installer.lock import LockEntry, find_entry_keys
from skillhall._internal.installer.project import InstalledFiles, Project, read_installed
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
from skillhall._internal.sources.opener import parse_source_ref

_BROKEN = "signature is broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """Differences between one target of a skill and the lock file, by path.

    >>> installer = Installer.project()
    >>> report = installer.add("./skills", skills=["pdf-tools"])
    >>> [(result.place, result.is_intact) for result in installer.verify()]
    [('.agents/skills/pdf-tools', True)]
    """

    # The fields are keys in the output of `verify --json`: do not rename them.
    key: str
    place: str  # path of the target
    is_there: bool = True
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    signature: str = ""  # who signed the files, or why the signature is broken

    @property
    def is_intact(self) -> bool:
        """Whether the target matches the lock file."""
        return self.is_there and not (self.changed or self.missing or self.extra)

    @property
    def is_signature_broken(self) -> bool:
        """Whether the files differ from those that were signed."""
        return self.signature.startswith(_BROKEN)


def _describe_signature(project: Project, installed: InstalledFiles, entry: LockEntry) -> str:
    if SIGNATURE_FILE not in installed.files:
        return ""
    rules = load_install_rules(
        parse_source_ref(entry.source, allow_loopback_http=True), project.settings
    )
    note = rules.describe_signature(build_bundle(entry.name, installed.files))
    is_known = entry.unsigned and note.startswith(_BROKEN)
    return f"treated as unsigned: {note}" if is_known else note


def verify(project: Project, names: Iterable[str] = ()) -> list[VerifyResult]:
    """Compare every target of the skills with the lock file.

    Raises: LockNotFound, LockInvalid, SkillNotFound.
    """
    entries = project.read_lock_entries()
    return [
        result
        for key in find_entry_keys(entries, names)
        for result in verify_entry(project, key, entries[key])
    ]


def verify_entry(project: Project, key: str, entry: LockEntry) -> list[VerifyResult]:
    """Compare every target of one skill with its entry."""
    copies = (key, *entry.get_target_paths("copy"))
    results = [_compare_copy(project, key, path, entry) for path in copies]
    for link in entry.get_target_paths("link"):
        path = project.path(link)
        if os.path.realpath(path) == os.path.realpath(project.path(key)):
            results.append(VerifyResult(key=key, place=link))
        else:
            exists = os.path.lexists(path)
            extra = (link,) if exists else ()
            results.append(VerifyResult(key=key, place=link, is_there=exists, extra=extra))
    return results


def _compare_copy(project: Project, key: str, target_path: str, entry: LockEntry) -> VerifyResult:
    installed = read_installed(project, target_path)
    if installed is None:
        return VerifyResult(key=key, place=target_path, is_there=False)
    expected = {file.path: (file.sha256, file.mode == "100755") for file in entry.files}
    actual = {
        path: (sha256_hex(file.data), file.executable) for path, file in installed.files.items()
    }
    return VerifyResult(
        key=key,
        place=target_path,
        signature=_describe_signature(project, installed, entry),
        changed=tuple(sorted(p for p in expected if actual.get(p, expected[p]) != expected[p])),
        missing=tuple(sorted(expected.keys() - actual)),
        extra=tuple(sorted([*(actual.keys() - expected), *installed.unrestorable])),
    )
