"""Running one command: streams that take any text, one place for errors, exit codes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
INTERRUPTED = 130  # the same for Ctrl-C
COMPLETE_VARIABLE = "_SKILLHALL_COMPLETE"  # set by the shell scripts of 'skillhall completion'


def prepare_streams() -> None:
    """Let stdout and stderr take any text, whatever the locale says, and be there at all."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def run(argv: Sequence[str]) -> int:
    """Run the command that `words` name; the exit code. No exception leaves it."""
    try:
        code = _dispatch(list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last net: a person never meets a traceback
        return _handle_error(error, argv)
    return code


def _dispatch(argv: list[str]) -> int:
    if COMPLETE_VARIABLE not in os.environ:
        from skillhall._internal.cli.fast_list import parse_list_arguments

        request = parse_list_arguments(argv)
        if request is not None:
            from skillhall._internal.cli.commands.browse.list_output import print_list

            return print_list(request)
    from skillhall._internal.cli.app import invoke

    return invoke(argv)


def _handle_error(error: Exception, argv: Sequence[str]) -> int:
    from skillhall._internal.cli.errors import report_error

    try:
        code = report_error(error, argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except OSError:
        # Nobody can be told: the disk behind stdout is full, or it is gone.
        _discard_stdout()
        return 7
    return code


def _discard_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush stays silent."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return
