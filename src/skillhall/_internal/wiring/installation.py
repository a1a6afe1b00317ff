"""What is installed: Skillhall, its extras, Python, SQLite and git."""

from __future__ import annotations

import platform
import re
import sqlite3
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from skillhall._internal.sources.git.process import read_git_version
from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Such as `pygls<3,>=2.1; extra == "lsp"`.
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?[^;]*;(?P<marker>.*)extra == ['\"](?P<extra>[^'\"]+)"
)
_WINDOWS_ONLY = re.compile(r"sys_platform\s*!=\s*['\"]win32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Versions of Skillhall and what it uses; `None` for what is missing."""

    version: str
    python: str
    implementation: str
    executable: str
    platform: str
    sqlite: str
    git: str | None
    extras: Mapping[str, tuple[str, ...]]  # the missing packages of each extra

    @property
    def installed_extras(self) -> list[str]:
        """The extras whose packages are all installed."""
        return [name for name, missing in self.extras.items() if not missing]


def inspect_installation() -> Installation:
    """Return the versions of this process, and of git, which is started."""
    return Installation(
        version=VERSION,
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        executable=sys.executable,
        platform=platform.platform(),
        sqlite=sqlite3.sqlite_version,
        git=read_git_version(),
        extras=_find_missing_packages(),
    )


def _find_missing_packages() -> dict[str, tuple[str, ...]]:
    extras: dict[str, list[str]] = {}
    for extra, package in _list_requirements():
        missing = extras.setdefault(extra, [])
        try:
            metadata.distribution(package)
        except metadata.PackageNotFoundError:
            missing.append(package)
    return {extra: tuple(missing) for extra, missing in sorted(extras.items())}


def _list_requirements() -> Iterator[tuple[str, str]]:
    """Yield the extras of this distribution with their packages."""
    try:
        requirements = metadata.distribution("skillhall").requires or ()
    except metadata.PackageNotFoundError:  # run from a folder that is not installed
        return
    for text in requirements:
        match = _REQUIREMENT.match(text)
        if match is not None:
            is_left_out = sys.platform == "win32" and _WINDOWS_ONLY.search(match["marker"])
            if not is_left_out:
                yield match["extra"], match["name"]
