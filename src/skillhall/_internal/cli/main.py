"""Entry point of the `skillhall` command."""

import gc
import os
import sys

from skillhall._version import VERSION


def run_and_exit() -> None:
    """Run the command line and exit without the interpreter's cleanup."""
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1
    # Unlike `sys.exit`, this skips the deallocation of the catalog, which is slow.
    os._exit(code)


def main() -> int:
    """Run the command in `sys.argv` and return its exit code."""
    argv = sys.argv[1:]
    if argv in (["--version"], ["-V"]):
        sys.stdout.write(f"skillhall {VERSION}\n")
        return 0
    _ensure_utf8_mode()
    if len(argv) == 2 and "--json" in argv and {"--version", "-V"} & {*argv}:  # noqa: PLR2004
        from skillhall._internal.cli.commands.version_report import print_version_report

        print_version_report()
        return 0
    from skillhall._internal.cli.runner import prepare_streams, run

    # A command creates little garbage; with 60,000 skills, collecting takes a third of the time.
    gc.disable()
    prepare_streams()
    return run(argv)


def _ensure_utf8_mode() -> None:
    """Restart the interpreter in UTF-8 mode if file names are not decoded as UTF-8.

    Skill folders have UTF-8 names on every machine, and Python cannot change its file system
    encoding after the start. Only unusual settings need it, such as LC_ALL=C with PYTHONUTF8=0.
    """
    if sys.getfilesystemencoding() == "utf-8" or not sys.executable:
        return
    # An explicit `-X utf8=0` would win again, and the restart would loop.
    if any(argument.endswith("utf8=0") for argument in sys.orig_argv):
        return
    try:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606
    except OSError:
        return
