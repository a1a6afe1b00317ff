"""Where the `skillhall` command starts."""

import sys

from skillhall._version import VERSION


def run_and_exit() -> None:
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
    _ensure_utf8_mode()
    import gc

    from skillhall._internal.cli.runner import prepare_streams, run

    # A command makes no garbage worth looking for: at 60,000 skills looking costs a third.
    gc.disable()
    prepare_streams()
    return run(words)


def _ensure_utf8_mode() -> None:
    """Restart the interpreter in UTF-8 mode if the locale decodes file names otherwise.

    Skill folders have UTF-8 names on every machine, and Python cannot change its file system
    encoding after the start. Only unusual settings need it, such as LC_ALL=C with PYTHONUTF8=0.
    """
    if sys.getfilesystemencoding() == "utf-8" or not sys.executable:
        return
    if any(word.endswith("utf8=0") for word in sys.orig_argv):  # it would win again
        return
    import contextlib
    import os

    with contextlib.suppress(OSError):
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606
