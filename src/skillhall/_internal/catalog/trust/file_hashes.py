"""Hashes of all files of a skill, computed again only after a change.

They are cached on disk with the stat signatures of all files and folders.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.fingerprint import Fingerprint, are_signatures_current
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.catalog.manifests import take_signatures
from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN, with_bundle
from skillhall._internal.policy.readable_files import is_publishable
from skillhall._internal.skill.approved_files import (
    ApprovedFile,
    compute_approved_digest,
    hash_files,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.trust.state_cache import TrustCacheFile
    from skillhall._internal.sources.folder.candidate import Signature


class HashedFiles(NamedTuple):
    """The files of a skill, and stat signatures that change with them."""

    files: Mapping[str, ApprovedFile]
    signatures: Mapping[str, Signature | None]  # of files and folders, by absolute path

    @property
    def digest(self) -> str:
        """The digest of the skill."""
        return compute_approved_digest(self.files)

    @property
    def published_digest(self) -> str:
        """The digest without hidden files, which installers do not get from a server."""
        published = {path: file for path, file in self.files.items() if is_publishable(path)}
        return compute_approved_digest(published)

    def get_file_signatures(self, folder: str) -> Mapping[str, Signature | None]:
        """Return the signatures of the files, by their path in the folder."""
        return {path: self.signatures.get(os.path.join(folder, path)) for path in self.files}


class FileHashes:
    """Cache of the hashes of a project's skills."""

    def __init__(self, file: TrustCacheFile) -> None:
        self._file = file
        self._known: dict[str, HashedFiles] | None = None
        self._is_changed = False

    def get(self, skill: CatalogSkill) -> HashedFiles:
        """Return the hashes of the current files.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        if self._known is None:
            self._known = {
                location: HashedFiles(
                    {path: ApprovedFile(*file) for path, file in files}, dict(signatures)
                )
                for location, (files, signatures) in (self._file.load() or {}).items()
            }
        known = self._known.get(skill.location)
        if known is not None and are_signatures_current(known.signatures.items()):
            return known
        started = now_ns()
        bundle, files = with_bundle(skill, ALL_FILES_SCAN, lambda one: (one, hash_files(one)))
        hashed = HashedFiles(files, take_signatures(skill, bundle))
        # Files that were just written may change again without a change of their signatures.
        if Fingerprint(dict(hashed.signatures), started).is_stable:
            self._known[skill.location] = hashed
            self._is_changed = True
        else:
            self._known.pop(skill.location, None)
        return hashed

    def is_stable(self, skill: CatalogSkill) -> bool:
        """Whether every change to the skill would change its signatures."""
        return self._known is not None and skill.location in self._known

    def save(self) -> None:
        """Write the cache if it has changed; problems are ignored."""
        if self._is_changed and self._known:
            self._is_changed = False
            self._file.save(
                {
                    location: (
                        [(path, tuple(file)) for path, file in one.files.items()],
                        [*one.signatures.items()],
                    )
                    for location, one in self._known.items()
                }
            )
