"""Where the `skillhall` command starts."""

import sys

from skillhall.version import VERSION


def main() -> int:
    """Run the command line of this process; the exit code."""
    words = sys.argv[1:]
    if words[:1] in (["--version"], ["-V"]):
        sys.stdout.write(f"skillhall {VERSION}\n")
        return 0
    from skillhall.surfaces.cli.running import prepare_streams, run

    prepare_streams()
    return run(words)
