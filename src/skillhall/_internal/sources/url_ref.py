"""References to Markdown files and archives on the web, by their URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall._internal.sources.source_text import parse_repository_url, reject_query

if TYPE_CHECKING:
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText


@dataclass(frozen=True, slots=True)
class UrlRef(Ref):
    """URL of a Markdown file or archive."""

    url: str

    is_remote = True

    @property
    def text(self) -> str:
        """The URL."""
        return self.url

    @property
    def server_url(self) -> str:
        """URL of the Skillhall server that has the file, else ""."""
        paths = ("/api/v1/skills/", "/.well-known/")
        return next((self.url.partition(path)[0] for path in paths if path in self.url), "")

    def open(self, context: SourceContext) -> OpenedSource:
        """Download the file. Raises: as `fetch` and `read_archive_or_skill_md`."""
        # Imported here because reading a lock file must not load it: see `Ref`.
        from skillhall._internal.sources.url_download import open_url  # noqa: PLC0415

        return open_url(self, context)


def parse_url(source: SourceText) -> UrlRef | None:
    """Parse the URL of a file. Raises: SourceRejected."""
    url = source.parse_web_url()
    if url is None or parse_repository_url(url) is not None:
        return None
    reject_query(url)
    return UrlRef(url.without_query.rstrip("/"))
