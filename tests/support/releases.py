"""Distributions of this checkout, built and installed the way a release is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dev

ROOT = dev.ROOT
# As it was before any test replaced the home folder: uv finds its cache and its settings there.
_ENVIRONMENT = dev.environment()


def export_checkout(folder: Path) -> Path:
    """A copy of the files a fresh clone would have, without the tests.

    New files that git does not ignore are among them, so that a change can be tested before it is
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
    """Run uv with the settings of the person who runs the tests."""
    return subprocess.run(
        [dev.uv(), *map(str, arguments)],
        cwd=cwd,
        env=_ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def build(source: Path, *options: str) -> Path:
    """The wheel built from `source`; without options from an sdist, as tools do by default."""
    done = uv(
        "build", "--quiet", "--python", sys.executable, "--out-dir", "dist", *options, cwd=source
    )
    assert done.returncode == 0, done.stderr
    [wheel] = (source / "dist").glob("*.whl")
    return wheel


def find_python(version: str) -> Path | None:
    """An installed interpreter of that version."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return Path(sys.executable)
    words = ["python", "find", "--no-python-downloads", "--no-project", version]
    done = uv(*words, cwd=ROOT, PYENV_VERSION=version)  # pyenv's programs fail without a version
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def install(wheel: Path, extra: str, python: Path, folder: Path) -> Path:
    """The `skillhall` program of a new virtual environment with `wheel` and its locked packages."""
    done = uv("venv", "--quiet", "--python", python, folder, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    target = folder / dev.BIN.name
    wanted = f"{wheel}[{extra}]"
    options = ["--quiet", "--python", target / "python", "--constraint", ROOT / dev.LOCK]
    done = uv("pip", "install", *options, wanted, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    return target / "skillhall"
