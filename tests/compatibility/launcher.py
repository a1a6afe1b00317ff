"""Program that runs many commands quickly, each in a fork of one process.

A fork does the same as `python -m skillhall`. The process imports the modules that earlier
commands have imported, so that no module name is hard-coded here.
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
    """Run the requested commands, one per input line."""
    # Not sys.stdin, which belongs to the commands.
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as exit_codes:
        while line := requests.readline():
            request: dict[str, Any] = json.loads(line)
            child = os.fork()
            if not child:
                run_command(request)
                return
            _, status = os.waitpid(child, 0)
            import_same(Path(request["modules"]))
            exit_codes.write(b"%d\n" % os.waitstatus_to_exitcode(status))
            exit_codes.flush()


def run_command(request: dict[str, Any]) -> None:
    """Run the command in this process, which is a fork."""
    for number, name, flags in (
        (0, "stdin", os.O_RDONLY),
        (1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        os.dup2(os.open(request[name], flags, 0o600), number)
    original_exit = os._exit

    def save_modules_and_exit(status: int) -> None:
        Path(request["modules"]).write_text("\n".join(list(sys.modules)), encoding="utf-8")
        original_exit(status)

    os._exit = save_modules_and_exit  # type: ignore[assignment]  # commands end with os._exit
    sys.argv = ["skillhall", *request["arguments"]]
    runpy.run_module("skillhall", run_name="__main__", alter_sys=True)


def import_same(names: Path) -> None:
    """Import the modules of a finished command, for the commands after it."""
    if not names.exists():
        return
    for name in names.read_text(encoding="utf-8").split("\n"):
        if name not in sys.modules and not name.endswith("__main__"):
            with contextlib.suppress(Exception):  # some modules cannot be imported on their own
                importlib.import_module(name)
    names.unlink()


if __name__ == "__main__":
    main()
