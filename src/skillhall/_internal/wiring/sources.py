"""Open sources of skills with the settings of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.sources.opener import open_client_source, open_source
from skillhall._internal.sources.ref import GitHubRef, GitRef, UrlRef
from skillhall._internal.workspace.skill_blocks import LOCAL, URL, Provenance
from skillhall.errors import without_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle


def open_for_workspace(
    settings: Settings, text: str, *, remote: bool
) -> tuple[Sequence[Bundle], Provenance]:
    """The bundles of a named source, and where that is. Raises: what opening it raises."""
    opened = open_client_source(text, settings) if remote else open_source(text, settings)
    is_remote = isinstance(opened.reference, GitHubRef | GitRef | UrlRef)
    origin = Provenance(URL if is_remote else LOCAL, without_credentials(text))
    return opened.bundles, origin
