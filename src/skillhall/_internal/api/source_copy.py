"""A copy of the skills of a source, in a temporary folder."""

from __future__ import annotations

import hashlib
import shutil
import weakref
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.installer.install import add_to_folder
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.opener import open_source

if TYPE_CHECKING:
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings


class SourceCopy:
    """The copied skills. The folder is deleted with this object."""

    cache_settings: None = None  # nothing about a temporary folder is cached

    def __init__(self, text: str, profile: Profile, settings: Settings) -> None:
        opened = open_source(text, settings)
        self._text = text
        self._profile = profile
        self._settings = settings
        self._folder = mkdtemp(prefix="skillhall-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        bundles = [opened.load_bundle(bundle) for bundle in opened.bundles]
        self._report = add_to_folder(bundles, self._folder)
        added = sorted((skill.id, skill.digest) for skill in self._report.added)
        self.revision: str = hashlib.sha256(repr(added).encode()).hexdigest()

    def load_catalog(self) -> Catalog:
        """Load the copied skills, with the findings of the source."""
        loaded = load_roots([Root(self._folder, self._text)], self._profile)
        findings = (*self._report.findings, *loaded.root_findings)
        return Catalog(
            loaded.profile,
            loaded.roots,
            loaded.skills,
            loaded.rejected,
            loaded.duplicates,
            findings,
        )

    def renew(self) -> SourceCopy:
        """Open the source again; return `self` if it has the same skills."""
        renewed = SourceCopy(self._text, self._profile, self._settings)
        return self if renewed.revision == self.revision else renewed

    @property
    def known_revision(self) -> str:
        """The digest of the skills, which is always known."""
        return self.revision
