"""References to images with skills.

```text
oci://host/repository:tag               OciRef: a tag of a registry
oci://host/repository@sha256:digest     OciRef: one manifest
oci:./folder                            LayoutRef: an image layout on this machine
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillhall._internal.net.addresses import is_loopback
from skillhall._internal.net.url import PORTS, authority_of, checked_characters, host_and_port
from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall._internal.sources.local_ref import PathRef
from skillhall._internal.sources.source_text import TextForm
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText

_PREFIX = "oci:"
_DEFAULT_TAG = "latest"
_MAX_REPOSITORY = 255  # characters
# The grammar of the distribution specification.
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Docker Hub has one name in references, and another one for its API.
_HUB, _HUB_API = "docker.io", "registry-1.docker.io"


@dataclass(frozen=True, slots=True)
class OciRef(Ref):
    """Image in a registry."""

    host: str  # with the port, if it is not that of https
    image: str  # its repository in the registry
    tag: str = ""  # "" if there is a digest
    digest: str = ""
    commit: str = ""  # SHA-256 of the manifest in a lock file; not part of the text

    is_remote = True

    @property
    def text(self) -> str:
        """The text that parses to this reference."""
        return f"{self.source_name}{f'@{self.digest}' if self.digest else f':{self.tag}'}"

    @property
    def source_name(self) -> str:
        """The repository, without the tag."""
        return f"{_PREFIX}//{self.host}/{self.image}"

    @property
    def is_pinned(self) -> bool:
        """Whether the reference names a digest."""
        return bool(self.digest)

    @property
    def wanted(self) -> str:
        """The tag or digest to fetch."""
        return f"sha256:{self.commit}" if self.commit else self.digest or self.tag

    @property
    def api_url(self) -> str:
        """URL of the repository in the registry's API; plain http is for this machine only."""
        name, _ = host_and_port(self.host, self.host, PORTS["https"])
        scheme = "http" if is_loopback(name) else "https"
        host = _HUB_API if self.host == _HUB else self.host
        return f"{scheme}://{host}/v2/{self.image}"

    def at(self, path: str, ref: str) -> OciRef:  # noqa: ARG002 - an image is read as a whole
        """Return the reference to the manifest with this digest; "" keeps the current one."""
        return replace(self, commit=ref or self.commit)

    def open(self, context: SourceContext) -> OpenedSource:
        """Download the image. Raises: as `read_image`."""
        open_registry, _ = _import_readers()
        return open_registry(self, context)


@dataclass(frozen=True, slots=True)
class LayoutRef(PathRef):
    """Image layout in a local folder."""

    path: str

    @property
    def text(self) -> str:
        """The path, after the prefix."""
        return f"{_PREFIX}{self.path}"

    def to_portable_text(self, root: str, base: str) -> str:
        """Return the text with the path relative to `root`."""
        return f"{_PREFIX}{PathRef.to_portable_text(self, root, base)}"

    def open(self, context: SourceContext) -> OpenedSource:
        """Read the image. Raises: as `read_image`."""
        _, open_layout = _import_readers()
        return open_layout(self, context)


def _import_readers() -> tuple[
    Callable[[OciRef, SourceContext], OpenedSource],
    Callable[[LayoutRef, SourceContext], OpenedSource],
]:
    # Imported here because reading a lock file must not load it: see `Ref`.
    from skillhall._internal.sources.oci import image_layout, image_registry  # noqa: PLC0415

    return image_registry.open_registry, image_layout.open_layout


def parse_oci(source: SourceText) -> OciRef | LayoutRef | None:
    """Parse a tag or digest of a registry, or the path of a layout. Raises: SourceRejected."""
    if source.scheme != _PREFIX.removesuffix(":"):
        return None
    text = source.text.partition(":")[2]
    if not text.startswith("//"):
        # Checked like any other path.
        path = type(source).parse(text)
        if path.form is not TextForm.PATH:
            hint = "write oci://host/repository:tag, or oci:./folder for an image layout"
            raise SourceRejected("path", source.text, "it names no registry and no folder", hint)
        return LayoutRef(path.text.rstrip("/") or "/")
    authority, _, name = checked_characters(text.removeprefix("//")).partition("/")
    host, port = host_and_port(authority, source.text, PORTS["https"])
    name, at, digest = name.partition("@")
    repository, colon, tag = name.partition(":")
    if not _REPOSITORY.fullmatch(repository) or len(repository) > _MAX_REPOSITORY:
        raise SourceRejected("path", source.text, "it is not a valid name of a repository")
    if at and not _DIGEST.fullmatch(digest):
        raise SourceRejected("ref", source.text, "its digest is not a SHA-256 digest")
    if colon and not _TAG.fullmatch(tag):
        raise SourceRejected("ref", source.text, "its tag is not valid")
    # As in other programs, a digest has priority over a tag.
    tag = "" if at else tag or _DEFAULT_TAG
    host = authority_of(host, port, "https")
    return OciRef(host, repository, tag, digest)
