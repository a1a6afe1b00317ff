"""Checks for revoked skills; they cost nothing on machines without a known server.

Most skills come from repositories and folders, and the modules that fetch take 60 ms to import.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillhall._internal.settings import Settings

# As in `lock` and `revocation_check`, which this module must not import.
_LOCK_FILES = ("skillhall-lock.json", ".agents/.skillhall-lock.json")  # of a project, of a user
_MAX_LOCK_SIZE = 4 * 1024 * 1024  # bytes
_SERVER_PATHS = ("/api/v1/skills/", "/.well-known/")


def refresh_revocations(settings: Settings, sources: Iterable[str] = ()) -> list[str]:
    """Fetch the revocations of the servers of installed skills and of `sources`.

    Returns warnings, including those about revoked installed skills. Waits at most two seconds.
    """
    sources = [*sources]
    if not _may_know_servers(settings, sources):
        return []
    from skillhall._internal.installer import revocation_check  # noqa: PLC0415

    warnings = revocation_check.refresh_revocations(settings, sources)
    with suppress(SkillhallError, OSError):
        warnings += [one.describe() for one in revocation_check.find_revoked_installs(settings)]
    return warnings


def start_daily_refresh(settings: Settings) -> Callable[[], list[str]]:
    """Ask the servers that have not answered for a day, in the background.

    The returned function waits for them, two seconds at most from now, and returns warnings.
    """
    if not _may_know_servers(settings):
        return list
    from skillhall._internal.installer import revocation_check  # noqa: PLC0415

    return revocation_check.start_daily_refresh(settings)


def _may_know_servers(settings: Settings, sources: Iterable[str] = ()) -> bool:
    if settings.has_policy or settings.has_revocations:
        return True
    if any(path in source for source in sources for path in _SERVER_PATHS):
        return True
    folders = (settings.working_directory, settings.home)
    for folder, name in zip(folders, _LOCK_FILES, strict=True):
        if not os.path.lexists(os.path.join(folder, name)):  # noqa: PTH118 - pathlib takes 5 ms to import
            continue
        # Never waits: a project may contain a pipe of this name. Commands report unreadable files.
        with suppress(SkillhallError, OSError), open_root(folder) as root:
            text = read_below(root, RelativePath.parse(name), _MAX_LOCK_SIZE)
            if any(path.encode() in text for path in _SERVER_PATHS):
                return True
    return False
