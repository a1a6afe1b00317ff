"""The build backend: uv_build, after a check that the browser files are complete.

Without them a build fails: its wheel would install, and then serve pages without scripts.
"""

import hashlib
from pathlib import Path

import uv_build
from uv_build import (
    build_editable,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
_WEB = Path(__file__).resolve().parent / "src" / "skillhall" / "_internal" / "web"
_HINT = "hint: take the files from git again, or run python3 dev.py vendor"


def build_sdist(directory: str, settings: dict[str, object] | None = None) -> str:
    """PEP 517: the name of the sdist written to `directory`."""
    _check_browser_files()
    return str(uv_build.build_sdist(directory, settings))


def build_wheel(
    directory: str, settings: dict[str, object] | None = None, metadata: str | None = None
) -> str:
    """PEP 517: the name of the wheel written to `directory`."""
    _check_browser_files()
    return str(uv_build.build_wheel(directory, settings, metadata))


def _check_browser_files() -> None:
    for line in (_WEB / "vendored.sha256").read_text(encoding="utf-8").splitlines():
        digest, name = line.split()
        path = _WEB / "static" / "vendor" / name
        if not path.is_file():
            raise SystemExit(f"browser file {name!r} is missing\n{_HINT}")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise SystemExit(f"browser file {name!r} differs from vendored.sha256\n{_HINT}")
