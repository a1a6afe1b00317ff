"""Revision of skill folders: a digest of everything that their catalogs depend on."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from skillhall._internal.catalog.fingerprint import take_fingerprint
from skillhall._internal.fs.links import read_contained_file
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES, is_skill_md
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.catalog.fingerprint import Fingerprint


class FolderRevision:
    """Revision of folders below a base path; caches the last one."""

    def __init__(self, base: str, folders: Sequence[str], *, follow_links: bool = False) -> None:
        self._base = base
        self._folders = [*folders]
        self._followed_folders = frozenset(folders if follow_links else ())
        self._cached: tuple[Fingerprint, str] | None = None

    def current(self) -> str:
        """Return a string that changes when a skill is added, removed or edited."""
        if self._cached is None or not self._cached[0].is_current():
            fingerprint = take_fingerprint(
                self._folders, LOCAL_SKILLS.scan_policy, self._followed_folders
            )
            self._cached = fingerprint, self._compute_digest(fingerprint)
        return self._cached[1]

    def _compute_digest(self, fingerprint: Fingerprint) -> str:
        """Hash the names of existing folders and the bytes of every SKILL.md."""
        digest = hashlib.sha256()
        for path, signature in sorted(fingerprint.signatures.items()):
            relative_path = os.path.relpath(path, self._base).replace(os.sep, "/")
            content = repr(signature is None).encode()
            if is_skill_md(os.path.basename(path)):
                content = self._read_content(relative_path) or repr(signature).encode()
            digest.update(f"{relative_path!a}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()

    def _read_content(self, path: str) -> bytes:
        try:
            return read_contained_file(
                self._base, RelativePath.parse(path), MAX_SKILL_MD_BYTES
            ).data
        except SkillhallError:
            return b""
