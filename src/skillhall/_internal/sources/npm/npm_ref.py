"""References to npm packages: `npm:name`, `npm:@scope/name@1.2.3`, `npm:name@tag`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText

_PREFIX = "npm:"
_MAX_NAME = 214  # characters; the limit of npm
_NAME = r"[A-Za-z0-9~-][A-Za-z0-9._~-]*"
_PACKAGE = re.compile(rf"(@{_NAME}/)?{_NAME}")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_TAG = re.compile(r"[A-Za-z][0-9A-Za-z._-]{0,99}")


@dataclass(frozen=True, slots=True)
class NpmRef(Ref):
    """Package of an npm registry with skills."""

    package: str
    version: str = ""  # or a tag; "" is the tag `latest`
    commit: str = ""  # start of the SHA-512 of one tarball; not part of the text

    is_remote = True

    @property
    def text(self) -> str:
        """The text that parses to this reference."""
        return f"{self.source_name}@{self.version}" if self.version else self.source_name

    @property
    def source_name(self) -> str:
        """The package without its version."""
        return f"{_PREFIX}{self.package}"

    @property
    def is_pinned(self) -> bool:
        """Whether the reference names a version, which registries never replace."""
        return _VERSION.fullmatch(self.version) is not None

    def at(self, path: str, ref: str) -> NpmRef:  # noqa: ARG002 - a package is read as a whole
        """Return the reference to the tarball with this digest; "" keeps the current one."""
        return replace(self, commit=ref or self.commit)

    def open(self, context: SourceContext) -> OpenedSource:
        """Download the package. Raises: as `read_npm_package`."""
        # Imported here because reading a lock file must not load it: see `Ref`.
        from skillhall._internal.sources.npm.registry import read_npm_package  # noqa: PLC0415

        return read_npm_package(self, context)


def parse_npm(source: SourceText) -> NpmRef | None:
    """Parse the name of a package, with an optional version or tag. Raises: SourceRejected."""
    if not source.text.startswith(_PREFIX):
        return None
    text = source.text.removeprefix(_PREFIX)
    at = text.find("@", 1)
    package, version = (text, None) if at < 0 else (text[:at], text[at + 1 :])
    if not _PACKAGE.fullmatch(package) or len(package) > _MAX_NAME:
        raise SourceRejected("path", source.text, "it is not a valid npm package name")
    if version is not None and not (_VERSION.fullmatch(version) or _TAG.fullmatch(version)):
        hint = "write a full version such as 1.2.3, or a tag such as next"
        raise SourceRejected("ref", source.text, "its version is not valid", hint)
    return NpmRef(package, version or "")
