"""Builds wheels and sdists, and installs wheels on local Python versions."""

import subprocess
import sys
from pathlib import Path

import dev

# Read before tests replace HOME: uv's cache and settings are in the real home folder.
_ENVIRONMENT = dev.environment()


class BuildFailed(Exception):
    """uv could not build or install something; the text is its output."""


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


def run_uv(*arguments: object, cwd: Path, **variables: str) -> None:
    """Run uv. Raises: BuildFailed."""
    done = uv(*arguments, cwd=cwd, **variables)
    if done.returncode:
        raise BuildFailed(done.stderr)


def build(source: Path, *options: str, **variables: str) -> Path:
    """Build the wheel of `source`, by default through an sdist. Raises: BuildFailed."""
    python = "--python", sys.executable
    run_uv("build", "--quiet", *python, "--out-dir", "dist", *options, cwd=source, **variables)
    [wheel] = (source / "dist").glob("*.whl")
    return wheel


def find_python(version: str) -> Path | None:
    """Return an installed interpreter of this version."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return Path(sys.executable)
    arguments = ["python", "find", "--no-python-downloads", "--no-project", version]
    # pyenv's shims fail without a version.
    result = uv(*arguments, cwd=dev.ROOT, PYENV_VERSION=version)
    return Path(result.stdout.strip()) if result.returncode == 0 else None


def install(wheel: Path, extra: str, python: Path, folder: Path) -> Path:
    """Install `wheel` with its locked packages and return the `skillhall` program.

    Without an extra, the base installation. Raises: BuildFailed.
    """
    run_uv("venv", "--quiet", "--python", python, folder, cwd=folder.parent)
    target = folder / dev.BIN.name
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    options = ["--quiet", "--python", target / "python", "--constraint", dev.ROOT / dev.LOCK]
    run_uv("pip", "install", *options, wanted, cwd=folder.parent)
    return target / "skillhall"
