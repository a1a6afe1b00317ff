"""Skills in a file on the web, downloaded with the logins of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.sources.archive.upload import download
from skillhall._internal.sources.base import OpenedSource
from skillhall._internal.sources.logins.stored_logins import open_stored_logins

if TYPE_CHECKING:
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.url_ref import UrlRef


def open_url(reference: UrlRef, context: SourceContext) -> OpenedSource:
    """Download the file. Raises: as `fetch` and `read_archive_or_skill_md`."""
    progress = context.get_progress("Downloading")
    logins = open_stored_logins(context)
    bundles = download(reference.url, context.address_policy, progress, logins)
    return OpenedSource(reference, bundles)
