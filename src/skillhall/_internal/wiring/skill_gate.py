"""Builds the trust gate and the review for the skills of a project."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.file_hashes import FileHashes
from skillhall._internal.catalog.trust.gate import OpenGate
from skillhall._internal.catalog.trust.server_gate import ServerGate
from skillhall._internal.catalog.trust.state_cache import open_trust_cache_file
from skillhall._internal.catalog.trust.trust_gate import TrustGate
from skillhall._internal.policy.profiles import AGENT_FOLDERS, LENIENT, LOCAL_SKILLS
from skillhall._internal.policy.trust.trust_action import LOAD_EVERYTHING
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.storage.trust_store import TrustStore
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.authoring.skill_review import SkillReview
    from skillhall._internal.catalog.trust.gate import SkillGate
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.settings import Settings


def open_gate(
    settings: Settings, profile: Profile, *, can_ask: bool = False, trust_project: bool = False
) -> SkillGate:
    """Return the gate for a profile; it is open if neither profile nor policies restrict it."""
    if profile.trust_policy == LOAD_EVERYTHING and not settings.has_policy:
        return OpenGate(settings.revocations_file)
    return open_trust_gate(settings, profile, can_ask=can_ask, trust_project=trust_project)


def open_trust_gate(
    settings: Settings, profile: Profile, *, can_ask: bool = False, trust_project: bool = False
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
        profile.trust_policy,
        user_folders,
        can_ask,
        trust_project or settings.trust_project,
        settings.policy_files,
        open_trust_cache_file(settings, "risks"),
        partial(_open_sources, settings),
        settings.revocations_file,
    )


def open_server_gate(settings: Settings) -> ServerGate:
    """Return the gate for the skills of a server."""
    gate = open_trust_gate(settings, LOCAL_SKILLS)
    return ServerGate(replace(gate, is_server=True))


def _open_sources(settings: Settings) -> Callable[[str], str]:
    # Only policies about sources need the lock files.
    from skillhall._internal.installer.locked_sources import LockedSources  # noqa: PLC0415

    return LockedSources(settings).find


def open_review(settings: Settings, via: str) -> SkillReview:
    """Return the review of the skills in the working directory, by the command `via`."""
    # Only a review needs the parser and the risk scan.
    from skillhall._internal.authoring.skill_review import SkillReview  # noqa: PLC0415

    gate = open_trust_gate(settings, LENIENT)
    user = os.path.basename(settings.home)  # noqa: PTH119 - pathlib takes 5 ms to import
    return SkillReview(gate, settings.data_directory, user, via)


def approve_own_skill(settings: Settings, name: str, folder: str, via: str) -> None:
    """Record that the user is writing a skill, which then needs no approval.

    Failures are ignored: the user is asked about the skill later.
    """
    with suppress(SkillhallError, OSError):
        open_review(settings, via).approve_own(name, folder)
