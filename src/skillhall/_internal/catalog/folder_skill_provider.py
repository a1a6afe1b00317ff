"""Provider of the skills in folders."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.fingerprint import read_signature, take_fingerprint
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.search.background_index import BackgroundIndex, IndexInput
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.trust.gate import OPEN_GATE, clear_with_fallbacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.catalog.fingerprint import Fingerprint
    from skillhall._internal.catalog.head_cache import HeadCache
    from skillhall._internal.catalog.trust.gate import SkillGate
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.root import Root


class FolderSkillProvider:
    """Provider of the skills in folders, loaded with a profile."""

    def __init__(
        self,
        roots: Sequence[Root],
        profile: Profile,
        head_cache: HeadCache | None = None,
        index: BackgroundIndex | None = None,
        gate: SkillGate = OPEN_GATE,
    ) -> None:
        self._gate = gate
        self._index = index or BackgroundIndex()
        self._roots = tuple(roots)
        self._profile = profile
        self._head_cache = head_cache
        self._cached: tuple[Fingerprint, SkillView] | None = None
        self._lock = threading.Lock()

    def current_view(self) -> SkillView:
        """Return the current view; the folders are loaded again only after a change."""
        with self._lock:
            if self._cached is not None and self._cached[0].is_current():
                return self._cached[1]
            paths = [root.path for root in self._roots]
            follow_links = {root.path for root in self._roots if root.follow_links}
            fingerprint = take_fingerprint(paths, self._profile.scan_policy, follow_links)
            watched = {path: read_signature(path) for path in self._gate.watched_paths}
            fingerprint = fingerprint.extend(watched)
            view = None if self._cached is None else self._cached[1]
            if view is None or view.held or view.revision != fingerprint.revision:
                linked = self._gate.find_linked_folders()
                catalog = load_roots(
                    self._roots, self._profile, self._head_cache, linked_folders=linked
                )
                clearance = clear_with_fallbacks(self._gate, [*catalog], catalog.shadowed)
                fingerprint = fingerprint.extend(clearance.signatures)
                revision = fingerprint.revision
                state = IndexInput(revision, clearance.cleared)
                get_index = partial(self._index.get_index, state)
                view = SkillView(
                    revision,
                    self._profile,
                    clearance.cleared,
                    catalog.findings,
                    get_index,
                    clearance=clearance,
                    summarize_trust=self._gate.summarize,
                )
            self._cached = fingerprint, view
            return view
