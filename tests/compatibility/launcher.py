"""Runs many commands quickly: each in a fork of one process that has imported what they need.

A program of its own. A fork does what `python -m skillhall` does; which modules that imports is
learned from the commands before it, so that no name of a module is written here.
"""

import contextlib
import importlib
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Run the commands that are asked for, line by line, until the input ends."""
    # Not sys.stdin, which belongs to the commands.
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        while line := requests.readline():
            request: dict[str, Any] = json.loads(line)
            child = os.fork()
            if not child:
                run_command(request)
                return
            _, status = os.waitpid(child, 0)
            import_same(Path(request["modules"]))
            answers.write(b"%d\n" % os.waitstatus_to_exitcode(status))
            answers.flush()


def run_command(request: dict[str, Any]) -> None:
    """Be the command, in this process."""
    for number, name, flags in (
        (0, "stdin", os.O_RDONLY),
        (1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        os.dup2(os.open(request[name], flags, 0o600), number)
    leave = os._exit

    def tell_and_leave(status: int) -> None:
        Path(request["modules"]).write_text("\n".join(list(sys.modules)), encoding="utf-8")
        leave(status)

    os._exit = tell_and_leave  # type: ignore[assignment]  # the command ends by it
    sys.argv = ["skillhall", *request["arguments"]]
    runpy.run_module("skillhall", run_name="__main__", alter_sys=True)


def import_same(names: Path) -> None:
    """Import what a command has imported, for the commands after it."""
    if not names.exists():
        return
    for name in names.read_text(encoding="utf-8").split("\n"):
        if name not in sys.modules and not name.endswith("__main__"):
            with contextlib.suppress(Exception):  # what cannot be imported alone is left to them
                importlib.import_module(name)
    names.unlink()


if __name__ == "__main__":
    main()
