"""Hints for users: how to fix an error, by the kind of the error.

The hints here suit every surface. A surface adds those that name its own options, commands, routes
or variables. A hint is a template over the facts of the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall.errors import SkillhallError

COMMON_HINTS: Mapping[str, str] = {
    "archive_rejected": "repack the folder as a plain zip or tar.gz with only files and folders",
    "archive_rejected.no_skill": "a skill is a folder with a SKILL.md in it",
    "block_moved_error": "reload the zone and choose another position",
    "conflict": "choose another name, or remove the existing one first",
    "database_full": "free some disk space, then try again",
    "database_newer": "update Skillhall, or use another database",
    "database_unavailable": "check that the database is running, then try again",
    "folder_scan_off": "ask your administrator to enable folder scans, or upload the skill",
    "lock_invalid": "restore it from version control, or delete it and add the skills again",
    "no_skill_there": "give the folder of a skill, or a folder or repository that contains skills",
    "not_a_skill": "move the folder somewhere else, or correct the lock file",
    "package_not_installed": "install it first, or activate the environment that contains it",
    "read_only": "{name!r} comes with Skillhall; add a skill of your own under another id",
    "read_only.repository": "change {name!r} in {repository}, or import a copy of it",
    "review_gone": "upload the skills again",
    "source_not_found": "check the spelling, and that you have access to it",
    "source_timed_out": "check the URL and your connection, then try again",
    "source_unavailable": "check the URL and your connection, then try again",
    "stale_version_error": "reload it and apply your change again",
    "text_refused": "remove these characters from the text",
    "unsaved_files_error": "move these files somewhere else first",
    "version_conflict": "reload version {version} and apply your change again",
}


def find_hint(error: SkillhallError, surface: Mapping[str, str]) -> str:
    """Return the error's own hint, else that of the surface, else the common one."""
    key = f"{error.kind}.{error.variant}" if error.variant else error.kind
    template = surface.get(key) or COMMON_HINTS.get(key) or ""
    hint = error.hint or template.format_map(error.facts)
    return " ".join(filter(None, (error.suggestion, hint)))
