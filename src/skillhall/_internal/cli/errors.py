"""Error output and the exit code of each error class."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cli.terminal import print_message, sanitize_line
from skillhall._internal.hints import TOKEN_HINTS, find_code_docs, find_docs, find_hint
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

OK, FAILED, USAGE, REJECTED, NOT_FOUND, NETWORK_ERROR, CONFLICT, STORAGE_ERROR, UNAUTHORIZED = (
    range(9)
)

# The REST API maps the same error codes to HTTP statuses.
_CODES_BY_EXIT_CODE = {
    USAGE: "usage",
    REJECTED: (
        "invalid_skill invalid_config invalid_path invalid_argument invalid_text "
        "denied_outside_root denied_extension not_a_file not_text too_large too_many "
        "archive_rejected source_rejected not_approved"
    ),
    NOT_FOUND: "not_found prompt_not_found",
    NETWORK_ERROR: "upstream_error upstream_timeout rate_limited too_many_requests",
    CONFLICT: "conflict precondition_failed read_only",
    STORAGE_ERROR: "storage_full storage_unavailable db_unavailable",
    UNAUTHORIZED: "unauthenticated forbidden",
    FAILED: "internal",
}
EXIT_CODES: Mapping[str, int] = {
    code: number for number, codes in _CODES_BY_EXIT_CODE.items() for code in codes.split()
}
# Hints that name commands and options; `hints.py` has those that suit every surface.
HINTS: Mapping[str, str] = {
    **TOKEN_HINTS,
    "agent_has_no_hook": "add --agent claude-code if Claude Code should run the command",
    "agent_has_no_place": "name the folder with --dir, or omit --global to add to the project",
    "backup_rejected": "nothing was changed; use a file that 'skillhall backup' created",
    "database_newer": "update Skillhall, or set SKILLHALL_DATABASE_URL to another database",
    "edited": "use --force to overwrite your edits; 'skillhall rollback' restores them",
    "folder_scan_off": "set SKILLHALL_FOLDER_SCAN=on",
    "lock_mismatch": "'skillhall verify' shows what differs",
    "lock_not_found": "'skillhall add' installs skills and creates the lock file",
    "lock_not_found.other": (
        "'skillhall install' installs the skills in {other} and creates the lock file"
    ),
    "not_authenticated": "set {variable} to the server's token",
    "not_authenticated.no_variable": (
        "put the token in an environment variable, and name the variable with --token-variable"
    ),
    "not_installed_error": "use --force to remove it anyway; 'skillhall rollback' restores it",
    "nothing_to_undo": "'skillhall rollback' without a name lists the changes that can be undone",
    "read_only.shadows": (
        "a user skill {name!r} also exists, shadowed by the system skill; "
        "use --shadowed to delete the user skill"
    ),
    "served_skill_rejected": "'skillhall mcp-servers skills {label}' lists the server's skills",
    "skill_not_approved": "review it with: skillhall trust {name}",
    "skill_not_found": "'skillhall list' shows all skills",
    "mcp_skill_not_found": "'skillhall mcp-servers skills {label}' lists the server's skills",
    "skill_not_in_source": "'skillhall add SOURCE --list' shows the skills in SOURCE",
    "skill_parse_error": "'skillhall validate' explains each finding",
    "skill_rejected": "'skillhall validate' explains each finding",
    "source_unknown": "upload it first with 'skillhall prompts upload'",
    "token_not_found": "'skillhall token list' shows all tokens",
    "unknown_agent": "'skillhall agents' lists the supported agents",
    "version_not_found": "'skillhall version list {name}' shows all versions",
    "unknown_mcp_server": "'skillhall mcp-servers add {label} URL' registers it",
}
# The packages of the extras. Any other missing module is a bug.
_MCP_PACKAGES = frozenset({"anyio", "mcp", "mcp_types", "pydantic", "starlette"})
_WEB_PACKAGES = frozenset({"jinja2", "markdown_it", "markupsafe", "nh3", "pygments"})
_EXTRA_PACKAGES = {
    "mcp": _MCP_PACKAGES,
    "signing": {"cryptography"},
    "lsp": {"cattrs", "lsprotocol", "pygls"},
    "server": _MCP_PACKAGES
    | _WEB_PACKAGES
    | {"fastapi", "httptools", "prometheus_client", "python_multipart", "sqlalchemy", "uvicorn"},
}
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
# Commands with subcommands.
_COMMAND_GROUPS = frozenset(
    {
        "audit",
        "embeddings",
        "eval",
        "local",
        "mcp-servers",
        "policy",
        "prompts",
        "session",
        "token",
        "tool",
        "user",
        "version",
    }
)
_DEBUG_VARIABLE = "SKILLHALL_DEBUG"


class CommandFailed(SkillhallError):
    """An error of the command line itself, not of the library."""

    def __init__(self, code: str, message: str, hint: str = "", command: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.command = command


@contextmanager
def require_extra(extra: str, subject: str) -> Iterator[None]:
    """Report a missing package of an extra with the command that installs it.

    `subject` includes its verb, such as "the server is". Raises: CommandFailed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_PACKAGES[extra]:
            raise
        raise CommandFailed(
            "usage", f"{subject} not installed", f"pip install 'skillhall[{extra}]'"
        ) from None


def require_database() -> AbstractContextManager[None]:
    """Report missing database packages. Raises: CommandFailed."""
    return require_extra("server", "the database packages are")


class ErrorInfo(NamedTuple):
    """An error as the command line shows it."""

    code: str
    message: str
    hint: str = ""
    docs: str = ""  # URL of the page about the error

    @property
    def exit_code(self) -> int:
        """The exit code of the error's class."""
        return EXIT_CODES.get(self.code, FAILED)

    def serialize(self) -> dict[str, object]:
        """Return the error for JSON output."""
        report: dict[str, object] = {"code": self.code, "message": sanitize_line(self.message)}
        if self.hint:
            report["hint"] = sanitize_line(self.hint)
        if self.docs:
            report["docs"] = self.docs
        return report


def to_error_info(error: Exception) -> ErrorInfo:
    """Return the code, message and hint of an exception."""
    if isinstance(error, SkillhallError):
        # A usage error names the help page of its command.
        docs = "" if error.code == "usage" else find_docs(error)
        return ErrorInfo(error.code, str(error), find_hint(error, HINTS), docs)
    if isinstance(error, OSError):
        code = "storage_full" if error.errno in _DISK_FULL_ERRNOS else "storage_unavailable"
        # Only the file name: the full path may contain the user's name.
        name = error.filename.rpartition(os.sep)[2] if isinstance(error.filename, str) else ""
        where = f": {name}" if name else ""
        message = f"{(error.strerror or 'storage error').lower()}{where}"
        return ErrorInfo(code, message, docs=find_code_docs(code))
    return ErrorInfo(
        "internal",
        f"internal error ({type(error).__name__}); this is a bug in Skillhall",
        f"run the command again with {_DEBUG_VARIABLE}=1 for a traceback, and report the bug",
        find_code_docs("internal"),
    )


def report_error(error: Exception, argv: Sequence[str]) -> int:
    """Print `error`, as JSON if requested, and return the exit code."""
    if os.environ.get(_DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    info = to_error_info(error)
    if is_json_requested(argv):
        from skillhall._internal.cli.json_output import print_json_error

        words = [word for word in argv if not word.startswith("-")]
        typed = " ".join(words[: 2 if words and words[0] in _COMMAND_GROUPS else 1])
        print_json_error(getattr(error, "command", "") or typed, info.serialize())
        return info.exit_code
    try:
        sys.stdout.flush()  # data precedes the error
    except BrokenPipeError:
        raise
    except OSError:  # stdout is itself broken
        pass
    print_error_text(info)
    return info.exit_code


def print_error_text(error: ErrorInfo) -> None:
    """Print the error, its hint and the link to its page to stderr."""
    print_message(f"error: {error.message}")
    if error.hint:
        print_message(f"hint: {error.hint}")
    if error.docs:
        print_message(f"see: {error.docs}")


def is_json_requested(argv: Sequence[str]) -> bool:
    """Whether JSON output is requested, even if the other arguments are invalid."""
    options = argv[: argv.index("--")] if "--" in argv else argv
    if "--json" in options or "--format=json" in options:
        return True
    return ("--format", "json") in pairwise(options)
