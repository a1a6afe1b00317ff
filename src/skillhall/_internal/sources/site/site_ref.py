"""References to web sites with an index of skills.

```text
https://host                          the index of the host, at a well-known path
https://host/skills/index.json        an index at any other URL
https://host/.well-known/#pdf         one skill of an index, by its name there
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from skillhall._internal.net.url import WebUrl
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.base import NpxSource, OpenedSource, Ref
from skillhall._internal.sources.source_text import TextForm, is_git_url
from skillhall.errors import SourceRejected, UnsafePath

if TYPE_CHECKING:
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText

INDEX_FILE = "index.json"
WELL_KNOWN = "/.well-known/"


@dataclass(frozen=True, slots=True)
class SiteRef(Ref):
    """Web site with an index of skills, or one skill of it."""

    url: str  # of an index, or `https://host/.well-known/` for the one of a host
    skill: str = ""  # its name in the index; "" is all skills

    is_remote = True

    @property
    def text(self) -> str:
        """The text that parses to this reference."""
        return f"{self.url}#{quote(self.skill, safe='')}" if self.skill else self.url

    @property
    def source_name(self) -> str:
        """The URL of the host, or of an index at another path."""
        return f"{self.server_url}/" if self.server_url else self.url

    @property
    def server_url(self) -> str:
        """URL of the server that may publish revocations; "" for an index at another path."""
        server, is_found, _ = self.url.partition(WELL_KNOWN)
        return server if is_found else ""

    @property
    def npx_source(self) -> NpxSource | None:
        """The record for `npx skills`, which supports only indexes at a well-known path."""
        if not self.server_url:
            return None
        host = WebUrl.parse(self.url).host.removeprefix("www.")
        url = f"{self.server_url}{WELL_KNOWN}agent-skills/{INDEX_FILE}"
        return NpxSource(host, "well-known", url)

    def for_bundle(self, bundle: Bundle) -> tuple[SiteRef, str]:
        """Return the reference to the bundle's skill, and "" because it needs no path."""
        return SiteRef(self.url, bundle.path or ""), ""

    def open(self, context: SourceContext) -> OpenedSource:
        """Download the index and the skills. Raises: as `read_site`."""
        # Imported here because reading a lock file must not load it: see `Ref`.
        from skillhall._internal.sources.site.site_index import read_site  # noqa: PLC0415

        return OpenedSource(self, read_site(self, context))


def parse_site(source: SourceText) -> SiteRef | None:
    """Parse the URL of a host or of an index. Raises: SourceRejected."""
    url = source.parse_web_url() if source.form is TextForm.SCHEME else None
    if url is None or is_git_url(url):
        return None
    path = WELL_KNOWN if url.path == "/" else url.path
    if not path.endswith((WELL_KNOWN, f"/{INDEX_FILE}")):
        return None
    if url.query:
        hint = "remove the ? and everything after it"
        raise SourceRejected("url", url.without_query, "it has a query", hint)
    return SiteRef(f"{url.scheme}://{url.authority}{path}", _parse_name(url))


def _parse_name(url: WebUrl) -> str:
    """Return the name of a skill in the fragment. Raises: SourceRejected."""
    try:
        name = unquote_to_bytes(url.fragment).decode()
    except UnicodeDecodeError:
        name = "\n"
    if name and not is_entry_name(name):
        hint = "write the name of a skill in the index after the #"
        raise SourceRejected("url", url.without_query, "it has a fragment", hint)
    return name


def is_entry_name(name: str) -> bool:
    """Whether a name of an index is valid as the name of a folder."""
    try:
        return name.isprintable() and "/" not in RelativePath.parse(name).text
    except UnsafePath:
        return False
