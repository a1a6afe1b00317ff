"""Distributions of this checkout, built and installed like a release."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dev

ROOT = dev.ROOT
# Read before tests replace HOME: uv's cache and settings are in the real home folder.
_ENVIRONMENT = dev.environment()


def export_checkout(folder: Path) -> Path:
    """Copy the files of a fresh clone, without the tests.

    New files that git does not ignore are included, so that a change can be tested before it is
    committed.
    """
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    for name in set(os.fsdecode(listed).split("\0")) - {""}:
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def uv(*arguments: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run uv with the developer's settings."""
    return subprocess.run(
        [dev.uv(), *map(str, arguments)],
        cwd=cwd,
        env=_ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def build(source: Path, *options: str) -> Path:
    """Build the wheel of `source`, by default through an sdist."""
    done = uv(
        "build", "--quiet", "--python", sys.executable, "--out-dir", "dist", *options, cwd=source
    )
    assert done.returncode == 0, done.stderr
    [wheel] = (source / "dist").glob("*.whl")
    return wheel


def find_python(version: str) -> Path | None:
    """Return an installed interpreter of this version."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return Path(sys.executable)
    arguments = ["python", "find", "--no-python-downloads", "--no-project", version]
    result = uv(*arguments, cwd=ROOT, PYENV_VERSION=version)  # pyenv's shims fail without a version
    return Path(result.stdout.strip()) if result.returncode == 0 else None


def install(wheel: Path, extra: str, python: Path, folder: Path) -> Path:
    """Install `wheel` with its locked packages and return the `skillhall` program.

    Without an extra, the base installation.
    """
    done = uv("venv", "--quiet", "--python", python, folder, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    target = folder / dev.BIN.name
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    options = ["--quiet", "--python", target / "python", "--constraint", ROOT / dev.LOCK]
    done = uv("pip", "install", *options, wanted, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    return target / "skillhall"
