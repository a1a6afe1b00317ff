"""Runs one command: prepares the streams, reports errors, returns the exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BROKEN_PIPE = 141  # 128 + SIGPIPE, as shells report it
INTERRUPTED = 130  # 128 + SIGINT
COMPLETE_VARIABLE = "_SKILLHALL_COMPLETE"  # set by the scripts of 'skillhall completion'


def prepare_streams() -> None:
    """Make stdout and stderr accept any text in any locale; replace missing streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def run(argv: Sequence[str]) -> int:
    """Run the command in `argv` and return its exit code. Never raises."""
    try:
        code = _dispatch(list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - users never see a traceback
        return _handle_error(error, argv)
    return code


def _dispatch(argv: list[str]) -> int:
    if argv[:1] in (["list"], ["ls"]) and COMPLETE_VARIABLE not in os.environ:
        from skillhall._internal.cli.fast_list import parse_list_arguments, print_stored_listing

        if request := parse_list_arguments(argv[1:]):  # else click must parse them
            if request.as_json and print_stored_listing(request):
                return 0
            from skillhall._internal.cli.commands.browse.list_output import print_list

            return print_list(request)
    from skillhall._internal.cli.app import invoke

    return invoke(argv)


def _handle_error(error: Exception, argv: Sequence[str]) -> int:
    from skillhall._internal.cli.errors import STORAGE_ERROR, report_error

    try:
        code = report_error(error, argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except OSError:
        # stdout cannot be written, for example because its disk is full.
        _discard_stdout()
        return STORAGE_ERROR
    return code


def _discard_stdout() -> None:
    """Redirect stdout to the null device, so that the final flush cannot fail."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        return
