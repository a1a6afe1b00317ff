"""Sources of installed skills, from the lock files of the project and the user."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from skillhall._internal.installer.project import Project
from skillhall._internal.sources.opener import parse_source_ref
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.base import Ref

# https://host/path, ssh://user@host:22/path, user@host:path
_URL = re.compile(r"(?:[\w+.-]+://)?(?:[^@/]*@)?([^/:@]+)(?::\d+(?=/))?[:/]+(.*)", re.DOTALL)


class LockedSources:
    """The sources of installed skills, by folder; the lock files are read on first use."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def find(self, folder: str) -> str:
        """Return the source of the skill in a folder; "" if it is not in a lock file."""
        return self._sources.get(os.path.realpath(folder), "")

    @cached_property
    def _sources(self) -> dict[str, str]:
        sources: dict[str, str] = {}
        for is_user in (True, False):
            project = Project.from_settings(self._settings, user=is_user)
            # A broken lock file says as little about a source as a missing one.
            with suppress(SkillhallError, OSError):
                for key, entry in project.read_lock().entries.items():
                    reference = parse_source_ref(entry.source, allow_loopback_http=True)
                    source = normalize_source(reference, self._settings)
                    paths = (key, *(target.path for target in entry.targets))
                    sources |= {os.path.realpath(project.path(one)): source for one in paths}
        return sources


def normalize_source(reference: Ref, settings: Settings) -> str:
    """Return a source as policies name it: `github.com/acme/skills`, without scheme and ref."""
    repository = reference.repository
    text = reference.source_name if repository is None else repository.git_url(settings.github_url)
    has_host = repository is not None or (
        reference.is_remote and text.startswith(("https://", "http://"))
    )
    match = _URL.fullmatch(text) if has_host else None
    if match is None:
        return text
    return f"{match[1]}/{match[2]}".rstrip("/").removesuffix(".git")
