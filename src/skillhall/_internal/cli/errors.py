"""Errors in words, and the exit code of each class of error."""

from __future__ import annotations

import errno
import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cli.terminal import clean, say
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OK, FAILED, USAGE, REFUSED, NOT_FOUND, UPSTREAM, CONFLICT, STORAGE, ACCESS = range(9)

# One table for every class of error; the same classes become statuses of the server.
EXIT_CODES: Mapping[str, int] = {
    "usage": USAGE,
    "invalid_skill": REFUSED,
    "invalid_config": REFUSED,
    "invalid_path": REFUSED,
    "denied_outside_root": REFUSED,
    "denied_extension": REFUSED,
    "not_a_file": REFUSED,
    "not_text": REFUSED,
    "too_large": REFUSED,
    "too_many": REFUSED,
    "archive_rejected": REFUSED,
    "source_rejected": REFUSED,
    "invalid_argument": REFUSED,
    "invalid_text": REFUSED,
    "not_found": NOT_FOUND,
    "prompt_not_found": NOT_FOUND,
    "upstream_error": UPSTREAM,
    "upstream_timeout": UPSTREAM,
    "rate_limited": UPSTREAM,
    "too_many_requests": UPSTREAM,
    "conflict": CONFLICT,
    "precondition_failed": CONFLICT,
    "read_only": CONFLICT,
    "storage_full": STORAGE,
    "storage_unavailable": STORAGE,
    "db_unavailable": STORAGE,
    "unauthenticated": ACCESS,
    "forbidden": ACCESS,
    "internal": FAILED,
}
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Commands that have commands.
_GROUPS = (["local"], ["mcp-servers"], ["prompts"], ["session"], ["token"], ["tool"])
_DEBUG = "SKILLHALL_DEBUG"


class CommandFailed(SkillhallError):
    """A command that cannot go on, for a reason that only the command line knows."""

    def __init__(self, code: str, message: str, hint: str = "", command: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.command = command


class Failure(NamedTuple):
    """What a person and a script are told about an error."""

    code: str
    message: str
    hint: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code of its class."""
        return EXIT_CODES.get(self.code, FAILED)

    def as_json(self) -> dict[str, object]:
        """The error as scripts read it."""
        report: dict[str, object] = {"code": self.code, "message": clean(self.message)}
        if self.hint:
            report["hint"] = clean(self.hint)
        return report


def failure_of(error: Exception) -> Failure:
    """The class and the words of an error."""
    if isinstance(error, SkillhallError):
        return Failure(error.code, str(error), error.hint)
    if isinstance(error, OSError):
        code = "storage_full" if error.errno in _FULL else "storage_unavailable"
        # Where a folder of ours lies is nobody's business, and may name the person.
        name = error.filename.rpartition(os.sep)[2] if isinstance(error.filename, str) else ""
        where = f": {name}" if name else ""
        return Failure(code, f"{(error.strerror or 'the disk failed').lower()}{where}")
    return Failure(
        "internal",
        f"internal error ({type(error).__name__}); this is a bug in skillhall",
        f"run it again with {_DEBUG}=1 to see where, and report it",
    )


def report_error(error: Exception, words: Sequence[str]) -> int:
    """Tell about `error`, as JSON if that was asked for; the exit code."""
    if os.environ.get(_DEBUG):
        import traceback

        traceback.print_exception(error)
    failure = failure_of(error)
    if wants_json(words):
        from skillhall._internal.cli.json_output import print_error

        print_error(getattr(error, "command", "") or _command(words), failure.as_json())
    else:
        _flush_what_can_be()
        tell_failure(failure)
    return failure.exit_code


def tell_failure(failure: Failure, about: str = "") -> None:
    """The failure and what to do about it, for a person."""
    say(f"error: {about}: {failure.message}" if about else f"error: {failure.message}")
    if failure.hint:
        say(f"hint: {failure.hint}")


def _flush_what_can_be() -> None:
    """Let the data come before the error, unless stdout is what the error is about."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        return


def wants_json(words: Sequence[str]) -> bool:
    """Whether the answer must be JSON, even if the rest of the words is wrong."""
    options = words[: words.index("--")] if "--" in words else words
    if "--json" in options or "--format=json" in options:
        return True
    return ("--format", "json") in pairwise(options)


def _command(words: Sequence[str]) -> str:
    named = [word for word in words if not word.startswith("-")]
    return " ".join(named[: 2 if named[:1] in _GROUPS else 1])
