"""Finds bubblewrap on PATH, or unpacks Debian's package into the checkout without root."""

import fcntl
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".bubblewrap"
_PROGRAM = FOLDER / "usr/bin/bwrap"
_TIMEOUT = 60  # seconds of a download


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
