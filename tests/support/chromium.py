"""Finds Chromium on PATH, or downloads it into the checkout without root.

`python -m tests.support.chromium` does this before the tests.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".chromium"
# The headless shell comes first: it renders pages twice as fast.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
_START = FOLDER / "start"  # written last, so that an interrupted download starts over
_TIMEOUT = 600  # seconds per step of a download
# Taken before tests replace HOME: it may contain proxy settings.
_ENVIRONMENT = dict(os.environ)


def find_chromium() -> str:
    """Return the path of the browser; download it if necessary."""
    return next(filter(None, map(shutil.which, _NAMES)), None) or _download()


def _download() -> str:
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("a") as lock:  # several workers may download at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _START.exists():
            fetched = _fetch_debian_packages() or _fetch_with_playwright()
            assert fetched, "cannot download a browser; install chromium and put it on PATH"
    return str(_START)


def _fetch_debian_packages() -> bool:
    """Unpack Debian's browser and missing libraries; False on other systems."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return False
    lists, archives, system = (FOLDER / name for name in ("lists", "archives", "system"))
    for folder in (lists, archives):
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    options = {
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",  # user _apt may lack access to the checkout
        "Dir::Cache": FOLDER,
        "Dir::Cache::archives": archives,
        "Dir::State::Lists": lists,
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    install = ["-y", "--no-install-recommends", "--download-only", "install", _NAMES[0]]
    if not (_run(*apt, "update") and _run(*apt, *install)):
        return False
    packages = sorted(archives.glob("*.deb"))
    if not all(_run("dpkg-deb", "--extract", package, system) for package in packages):
        return False
    libraries = {str(path.parent) for path in system.rglob("*.so*")}
    variables = {"LD_LIBRARY_PATH": ":".join(sorted(libraries))}
    if (system / "etc/fonts").exists():  # the system has no fonts
        variables["FONTCONFIG_SYSROOT"] = str(system)
    _write_start(system / "usr/lib/chromium" / _NAMES[0], **variables)
    shutil.rmtree(archives)
    shutil.rmtree(lists)
    return True


def _fetch_with_playwright() -> bool:
    """Download Playwright's browser; its libraries must be installed."""
    install = ["-m", "playwright", "install", "--only-shell", "chromium"]
    folder = FOLDER / "playwright"
    if not _run(sys.executable, *install, PLAYWRIGHT_BROWSERS_PATH=str(folder)):
        return False
    names = {"headless_shell", "chrome-headless-shell"}
    _write_start(next(path for path in folder.rglob("*") if path.name in names and path.is_file()))
    return True


def _run(*command: object, **variables: str) -> bool:
    """Run a command with its output shown; return whether it succeeds."""
    arguments = [str(argument) for argument in command]
    environment = _ENVIRONMENT | variables
    result = subprocess.run(arguments, check=False, timeout=_TIMEOUT, env=environment)
    return result.returncode == 0


def _write_start(program: Path, **variables: str) -> None:
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    text = "\n".join(["#!/bin/sh", *lines, f'exec {shlex.quote(str(program))} "$@"', ""])
    draft = _START.with_suffix(".new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o755)
    draft.replace(_START)


if __name__ == "__main__":
    find_chromium()
