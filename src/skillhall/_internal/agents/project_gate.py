"""Opens the trust gate of a project, with the approvals of the user and all rules."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.file_hashes import FileHashes
from skillhall._internal.catalog.trust.state_cache import open_trust_cache_file
from skillhall._internal.catalog.trust.trust_gate import TrustGate
from skillhall._internal.policy.profiles import AGENT_FOLDERS
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.storage.trust_store import TrustStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.policy.trust.trust_action import TrustPolicy
    from skillhall._internal.settings import Settings


def open_trust_gate(
    settings: Settings,
    policy: TrustPolicy,
    *,
    can_ask: bool = False,
    trust_project: bool = False,
) -> TrustGate:
    """Return the gate for the working directory, with the approvals of the user."""
    project = os.path.realpath(settings.working_directory)
    user_folders = frozenset(
        Root.resolve(path, settings.working_directory).real_path
        for path, source in AGENT_FOLDERS
        if source == "user"
    )
    return TrustGate(
        TrustStore(settings.data_directory),
        FileHashes(open_trust_cache_file(settings, "hashes")),
        project,
        policy,
        user_folders,
        can_ask,
        trust_project or settings.trust_project,
        settings.policy_files,
        open_trust_cache_file(settings, "risks"),
        partial(_open_sources, settings),
        settings.revocations_file,
    )


def _open_sources(settings: Settings) -> Callable[[str], str]:
    # Only policies about sources need the lock files, whose parsers of sources are slow to import.
    from skillhall._internal.installer.locked_sources import LockedSources  # noqa: PLC0415

    return LockedSources(settings).find
