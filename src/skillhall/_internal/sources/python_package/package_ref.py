"""References to installed Python packages: `python:package`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText

_PREFIX = "python:"
_PACKAGE = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")


@dataclass(frozen=True, slots=True)
class PackageRef(Ref):
    """Installed Python package with skills."""

    package: str

    @property
    def text(self) -> str:
        """The text that parses to this value."""
        return f"{_PREFIX}{self.package}"

    def open(self, context: SourceContext) -> OpenedSource:
        """Find the package and its skills. Raises: PackageNotInstalled, NoSkillThere."""
        from skillhall._internal.sources.python_package import source  # noqa: PLC0415

        search_paths = source.package_search_paths(context.settings)
        return OpenedSource(self, source.read_package(self, search_paths).bundles)


def parse_package(source: SourceText) -> PackageRef | None:
    """Parse the name of a package. Raises: SourceRejected."""
    if not source.text.startswith(_PREFIX):
        return None
    name = source.text.removeprefix(_PREFIX)
    if not _PACKAGE.fullmatch(name):
        raise SourceRejected("path", source.text, "it is not the name of a Python package")
    return PackageRef(name)
