"""Hints for users: how to fix an error, by the kind of the error.

The hints here suit every surface: command line, REST and web page. A surface adds those that name
its own options, commands, routes or variables. A hint is a template, filled in with the facts of
the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall.errors import SkillhallError

DOCS_URL = "https://docs.skillhall.dev/latest"  # pyproject.toml has the same

COMMON_HINTS: Mapping[str, str] = {
    "archive_rejected": "repack the folder as a plain zip or tar.gz with only files and folders",
    "archive_rejected.no_skill": "a skill is a folder with a SKILL.md in it",
    "block_moved_error": "reload the zone and choose another position",
    "conflict": "choose another name, or remove the existing one first",
    "database_full": "free some disk space, then try again",
    "database_newer": "update Skillhall, or use another database",
    "database_unavailable": "check that the database is running, then try again",
    "folder_scan_off": "ask your administrator to enable folder scans, or upload the skill",
    "link_expired": "ask an administrator of the server for a new link",
    "lock_invalid": "restore the file from version control, or delete it and add the skills again",
    "no_skill_there": "name the folder of a skill, or a folder or repository that contains skills",
    "not_a_skill": "move the folder somewhere else, or correct the lock file",
    "own_version_error": "ask another reviewer to approve it",
    "package_not_installed": "install it first, or activate the environment that contains it",
    "read_only": "{name!r} comes with Skillhall; add a skill of your own under another id",
    "read_only.repository": "change {name!r} in {repository}, or import a copy of it",
    "review_gone": "start the import again",
    "source_not_found": "check the spelling, and that you have access to the source",
    "source_timed_out": "check the URL and your connection, then try again",
    "source_unavailable": "check the URL and your connection, then try again",
    "source_unavailable.token_rejected": (
        "check that the token is valid, and that it may read the repository"
    ),
    "stale_version_error": "reload it and apply your change again",
    "text_refused": "remove these characters from the text",
    "unsaved_files_error": "move these files somewhere else first",
    "version_conflict": "reload version {version} and apply your change again",
    "version_state_conflict": "reload the version: someone else may have changed its state",
    "version_yanked": "use another version",
}

# Hints about tokens for other hosts. They name environment variables, so only surfaces whose
# readers can set them use these hints.
TOKEN_HINTS: Mapping[str, str] = {
    "rate_limited.no_token": (
        "wait, or set {token_variable}: with a token the limit is much higher"
    ),
    "source_not_found.no_token": (
        "check the spelling; a private repository needs a token in {token_variable}"
    ),
    "source_not_found.token": (
        "check the spelling, and that the token in {token_variable} has access to the repository"
    ),
    "source_unavailable.token_invalid": (
        "check {token_variable}: it may be mistyped, expired or revoked"
    ),
    "source_unavailable.no_token": "if the repository is private, set {token_variable}",
    "source_unavailable.no_token_for_host": (
        "if the repository is private, set {token_variable} "
        "and add {host} to SKILLHALL_GIT_TOKEN_HOSTS"
    ),
    "source_unavailable.no_login": (
        "if it is private, store a login for {host} in ~/.netrc, "
        "with git's credential helper or with docker login"
    ),
    "source_unavailable.login_rejected": "check the login that is stored for {host}",
    "source_unavailable.token_withheld": (
        "if the repository is private, ask your administrator to add it to "
        "SKILLHALL_GIT_TOKEN_REPOS"
    ),
}


def find_close_names(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names that are similar to `name`, the most similar first."""
    # Only a few errors need it, and the import is 2 % of the CPU time of a listing.
    from difflib import get_close_matches  # noqa: PLC0415

    return get_close_matches(name, [*names], limit)


def find_hint(error: SkillhallError, surface: Mapping[str, str]) -> str:
    """Return the error's suggestion and hint; "" if it has neither.

    The hint is the error's own, else that of the surface, else the common one.
    """
    key = f"{error.kind}.{error.variant}" if error.variant else error.kind
    template = surface.get(key) or COMMON_HINTS.get(key) or ""
    hint = error.hint or template.format_map(error.facts)
    return " ".join(filter(None, (error.suggestion, hint)))


def find_docs(error: SkillhallError) -> str:
    """Return the URL of the page about an error: by its kind, else by its code."""
    from skillhall import errors  # noqa: PLC0415 - most commands need no error

    if hasattr(errors, type(error).__name__):
        return f"{DOCS_URL}/reference/errors/#{error.kind}"
    return find_code_docs(error.code)


def find_code_docs(code: str) -> str:
    """Return the URL of the page about an error code."""
    return f"{DOCS_URL}/reference/errors/#code-{code}"


def find_finding_docs(code: str) -> str:
    """Return the URL of the page about a finding code."""
    return f"{DOCS_URL}/reference/findings/#{code}"
