"""Finds bubblewrap on PATH, or unpacks Debian's package into the checkout without root."""

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from skillhall.errors import SandboxUnavailable
from skillhall.scripts import BubblewrapRunner

FOLDER = Path(__file__).resolve().parents[2] / ".bubblewrap"
_PROGRAM = FOLDER / "usr/bin/bwrap"
_TIMEOUT = 60  # seconds of a download


def require_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put `bwrap` on PATH; skip the test if it is missing or may not create namespaces."""
    monkeypatch.setenv("PATH", str(Path(find_bubblewrap()).parent), prepend=os.pathsep)
    try:
        BubblewrapRunner()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@cache
def find_bubblewrap() -> str:
    """Return the path of `bwrap`; "" if it is missing and cannot be downloaded."""
    return shutil.which("bwrap") or _download()


def _download() -> str:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return ""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("a") as lock:  # several workers may download at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _PROGRAM.exists():
            apt = ["apt-get", "-qq", "-oDebug::NoLocking=1", "-oAPT::Sandbox::User=root"]
            _run(*apt, "download", "bubblewrap")
            for package in FOLDER.glob("*.deb"):
                _run("dpkg-deb", "--extract", str(package), str(FOLDER))
    return str(_PROGRAM) if _PROGRAM.exists() else ""


def _run(*command: str) -> None:
    subprocess.run(command, cwd=FOLDER, check=False, capture_output=True, timeout=_TIMEOUT)
