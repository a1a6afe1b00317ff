"""References to repositories on github.com.

```text
owner/repo[/path][@ref]           or the URL of a page on github.com
github:owner/repo[/path][@ref]    even if a folder owner/repo exists
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillhall._internal.settings import GITHUB_URL
from skillhall._internal.sources.base import NpxSource, RepositoryRef
from skillhall._internal.sources.source_text import (
    ARCHIVE_EXTENSIONS,
    RepositoryLocation,
    TextForm,
    format_suffix,
    is_github,
    join_path,
    parse_git_ref,
    parse_repository_url,
    split_ref,
)
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from skillhall._internal.sources.base import OpenedSource, SourceContext
    from skillhall._internal.sources.repo_layout import RepositorySkills
    from skillhall._internal.sources.source_text import SourceText

_PREFIX = "github:"
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}")
_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9._-]{0,99}")
_OWNER_AND_NAME = 2  # names in the path of a repository


@dataclass(frozen=True, slots=True)
class GitHubRef(RepositoryRef):
    """Repository on github.com."""

    owner: str
    name: str
    path: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        """The text that parses to this reference."""
        if not self.ref and (self.path or self.name).lower().endswith(ARCHIVE_EXTENSIONS):
            # The short form would be parsed as the name of an archive.
            return self.git_url() + format_suffix(self.path, "")
        return f"{self.owner}/{self.name}" + format_suffix(self.path, self.ref)

    @property
    def npx_source(self) -> NpxSource:
        """The record for `npx skills`."""
        return NpxSource(f"{self.owner}/{self.name}", "github", self.git_url(), self.ref)

    def git_url(self, github_url: str = GITHUB_URL) -> str:
        """Return the URL for git; `github_url` is the base URL of GitHub repositories."""
        return f"{github_url}/{self.owner}/{self.name}.git"

    def at(self, path: str, ref: str) -> Self:
        """Return a copy with this path and ref; an empty ref keeps the current one."""
        return replace(self, path=path, ref=ref or self.ref)

    def open(self, context: SourceContext) -> OpenedSource:
        """Fetch the skills, without git if it is not available. Raises: as `open_github`."""
        read, _ = _import_readers()
        return self.to_opened_source(read(self, context))

    def is_tag(self, context: SourceContext) -> bool:
        """Ask GitHub whether the ref is a tag. Raises: as `open`."""
        _, is_github_tag = _import_readers()
        return is_github_tag(self, context)


def _import_readers() -> tuple[
    Callable[[GitHubRef, SourceContext], RepositorySkills],
    Callable[[GitHubRef, SourceContext], bool],
]:
    # Imported here because reading a lock file must not load it: see `Ref`.
    from skillhall._internal.sources.github import source  # noqa: PLC0415

    return source.open_github, source.is_github_tag


def parse_github(source: SourceText) -> GitHubRef | None:
    """Parse owner/repo, or the URL of a repository or page. Raises: SourceRejected."""
    url = source.parse_web_url()
    if url is not None:
        location = parse_repository_url(url) if is_github(url) else None
        if location is None:
            return None
        if len(location.names) != _OWNER_AND_NAME:
            raise SourceRejected("path", url.without_query, "it is not a GitHub repository")
        return _build_github_ref(location, url.without_query)
    text = source.text
    if text.startswith(_PREFIX):
        head, ref = split_ref(text.removeprefix(_PREFIX).rstrip("/"), text)
        names = head.split("/")
        if len(names) == 1:
            hint = "write github:owner/repo"
            raise SourceRejected("path", text, "it does not name a repository", hint)
    elif source.form is TextForm.NAME:
        names, ref = source.split_name()
        if len(names) == 1:
            return None
    else:
        return None
    path, ref = join_path(names[_OWNER_AND_NAME:], text), parse_git_ref(ref, text)
    return _build_github_ref(RepositoryLocation(names[:_OWNER_AND_NAME], path, ref), text)


def _build_github_ref(location: RepositoryLocation, text: str) -> GitHubRef:
    owner, name = location.names[0], location.names[1].removesuffix(".git")
    if not _OWNER.fullmatch(owner):
        raise SourceRejected("path", text, f"{owner!r} is not a valid GitHub account name")
    if not _NAME.fullmatch(name) or name.endswith(".git") or name in {".", ".."}:
        raise SourceRejected("path", text, f"{name!r} is not a valid GitHub repository name")
    return GitHubRef(owner, name, location.path, location.ref)
