"""Base class and helpers of the session pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.http.http_error import HttpError

if TYPE_CHECKING:
    from skillhall._internal.web.site import Site
    from skillhall._internal.workspace.workspace import Workspace


class SessionPageBase:
    """Handlers that need the workspace."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def _workspace(self) -> Workspace:
        """Return the workspace. Raises: HttpError, DatabaseUnavailable."""
        if self._site.workspace is None:
            raise HttpError("not_found", "this server has no sessions")
        return self._site.workspace.open()


def parse_number(text: str) -> int:
    """Parse a number of a form; -1, never a valid version, for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) < 18  # noqa: PLR2004 - fits 64 bits
    return int(text) if is_number else -1


def session_url(session_id: str) -> str:
    """Return the URL of a session's board."""
    return f"/session/{session_id}"
