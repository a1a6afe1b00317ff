"""References to git repositories on any host.

```text
https://host/owner/repo[.git[/path]][@ref]         or the URL of a page on GitLab, Gitea, …
ssh://git@host/repo.git  git@host:owner/repo.git   optionally with [/path][@ref]
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from skillhall._internal.net.url import PORTS, authority_of, checked_characters, host_and_port
from skillhall._internal.settings import GITHUB_URL
from skillhall._internal.sources.base import NpxSource, RepositoryRef
from skillhall._internal.sources.source_text import (
    TextForm,
    format_suffix,
    locate_repository,
    parse_repository_url,
    split_path,
    split_ref,
)
from skillhall.errors import SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from skillhall._internal.sources.base import OpenedSource, SourceContext
    from skillhall._internal.sources.repo_layout import RepositorySkills
    from skillhall._internal.sources.source_text import RepositoryLocation, SourceText

_SSH = re.compile(r"ssh://(?:([^@/]*)@)?([^/@]*)/([^?#]*)", re.IGNORECASE)
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_REPOSITORY_SEGMENT = re.compile(r"[A-Za-z0-9._~+][A-Za-z0-9._~+-]*")


@dataclass(frozen=True, slots=True)
class GitRef(RepositoryRef):
    """Git repository on any host, accessed by https or ssh."""

    url: str
    path: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        """The text that parses to this reference."""
        return self.url + quote(format_suffix(self.path, self.ref), safe="/@%!$&'()*+,;=")

    @property
    def npx_source(self) -> NpxSource:
        """The record for `npx skills`."""
        kind = "gitlab" if urlsplit(self.url).hostname == "gitlab.com" else "git"
        return NpxSource(self.url, kind, self.url, self.ref)

    def git_url(self, github_url: str = GITHUB_URL) -> str:  # noqa: ARG002 - for GitHub
        """Return the repository's URL; `github_url` is not used."""
        return self.url

    def at(self, path: str, ref: str) -> Self:
        """Return a copy with this path and ref; an empty ref keeps the current one."""
        return replace(self, path=path, ref=ref or self.ref)

    def open(self, context: SourceContext) -> OpenedSource:
        """Fetch the skills. Raises: as `read_git`."""
        read, _ = _import_readers()
        return self.to_opened_source(read(self, context, self.text))

    def is_tag(self, context: SourceContext) -> bool:
        """Ask the host whether the ref is a tag. Raises: as `open`."""
        _, is_git_tag = _import_readers()
        return is_git_tag(self, context)


def _import_readers() -> tuple[
    Callable[[GitRef, SourceContext, str], RepositorySkills],
    Callable[[GitRef, SourceContext], bool],
]:
    """Return `open_git` and `is_git_tag`, which reading a lock file must not load: see `Ref`."""
    from skillhall._internal.sources.git.source import is_git_tag, open_git  # noqa: PLC0415

    return open_git, is_git_tag


def parse_git(source: SourceText) -> GitRef | None:
    """Parse the URL of a repository or of a page in it. Raises: SourceRejected."""
    text = source.text
    if source.form is TextForm.SCP:
        checked_characters(text)
        user, _, rest = text.partition("@")
        authority, _, path = rest.partition(":")
        host, _ = host_and_port(authority, text, PORTS["ssh"])
        return _build_ssh_ref(f"{_check_user(user, text)}@{host}:", path, text)
    if source.scheme == "ssh":
        match = _SSH.fullmatch(checked_characters(text))
        if match is None:
            raise SourceRejected("url", text, "it is not an ssh URL")
        user, authority, path = match.groups()
        host, port = host_and_port(authority, text, PORTS["ssh"])
        login = f"{_check_user(user, text)}@" if user is not None else ""
        return _build_ssh_ref(f"ssh://{login}{authority_of(host, port, 'ssh')}/", path, text)
    url = source.parse_web_url()
    location = None if url is None else parse_repository_url(url)
    if url is None or location is None:
        return None
    return _build_git_ref(f"{url.scheme}://{url.authority}/", location, url.without_query)


def _build_ssh_ref(prefix: str, path: str, text: str) -> GitRef:
    if "?" in path or "#" in path:
        raise SourceRejected("url", text, "it has a query or a fragment")
    head, ref = split_ref("/".join(split_path(f"/{path}", text)), text)
    return _build_git_ref(prefix, locate_repository(head.split("/"), ref, text), text)


def _build_git_ref(prefix: str, location: RepositoryLocation, text: str) -> GitRef:
    names = location.names
    if not all(_REPOSITORY_SEGMENT.fullmatch(name) for name in names) or names[-1] == ".git":
        raise SourceRejected("path", text, "it does not name a repository")
    return GitRef(prefix + "/".join(names), location.path, location.ref)


def _check_user(user: str, text: str) -> str:
    if not _USER.fullmatch(user):
        raise SourceRejected("host", text, "its user name is not valid")
    return user
