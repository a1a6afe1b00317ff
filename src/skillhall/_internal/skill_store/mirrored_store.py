"""Base of skill stores whose user skills are read from a mirror of the database."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.live_catalog import LiveCatalog
from skillhall._internal.catalog.trust.trust_summary import SkillApproval
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill_store.input_checks import SYSTEM, USER
from skillhall._internal.skill_store.store import FOLDER_BY_SOURCE, SkillStore
from skillhall._internal.sources.folder.root import Root

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.catalog.live_catalog import LoadedCatalog
    from skillhall._internal.skill_store.mirror import SkillMirror


class MirroredStore(SkillStore):
    """System skills of a run directory, and user skills of a mirror."""

    is_in_database = True

    def __init__(self, run_directory: str, mirror: SkillMirror) -> None:
        self._mirror = mirror
        base = os.path.abspath(os.path.expanduser(run_directory))
        self._system_folder = os.path.join(base, *FOLDER_BY_SOURCE[SYSTEM].split("/"))
        self._user_folder = os.path.join(base, *FOLDER_BY_SOURCE[USER].split("/"))
        self._loaded: tuple[LoadedCatalog, LoadedCatalog] | None = None  # as read, and returned
        roots = (
            Root(self._system_folder, SYSTEM, is_required=False),
            Root(mirror.folder, USER, is_required=False),
        )
        # The mirror reports its changes; only the system skills are compared with the disk.
        self.live_catalog = LiveCatalog(roots, LOCAL_SKILLS, 1, mirror.folder_lock)
        mirror.on_change = partial(self.live_catalog.mark_changed, 1)

    def current(self) -> LoadedCatalog:
        """Return the current skills; the same object while nothing changes."""
        # Read first: a change in between then changes the revision of the next call.
        revision = self._mirror.revision
        loaded, last = self.live_catalog.current(), self._loaded
        revision = f"{loaded.revision}{revision}"
        if last is None or last[0] is not loaded or last[1].revision != revision:
            last = self._loaded = loaded, loaded._replace(revision=revision)
        return last[1]

    def find_approval(self, id: str) -> SkillApproval | None:  # noqa: A002 - as in `files`
        """Return who approved the served version of a skill; None if it was not reviewed."""
        review = self._mirror.approvals.get(id)
        if review is None:
            return None
        return SkillApproval(review.digest, review.by, review.at, f"version {review.number}")

    def catalog(self) -> Catalog:
        """Return the current system and user skills, as one consistent catalog."""
        return self.current().catalog
