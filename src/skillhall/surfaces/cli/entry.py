"""Where the `skillhall` command starts."""

import sys

from skillhall.version import VERSION


def start() -> None:
    """Run the command line and end the process at once: taking a catalog apart takes long."""
    import os

    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)


def main() -> int:
    """Run the command line of this process; the exit code."""
    words = sys.argv[1:]
    if words[:1] in (["--version"], ["-V"]):
        sys.stdout.write(f"skillhall {VERSION}\n")
        return 0
    import gc

    from skillhall.surfaces.cli.running import prepare_streams, run

    # A command makes no garbage worth looking for: at 60,000 skills looking costs a third.
    gc.disable()
    prepare_streams()
    return run(words)
