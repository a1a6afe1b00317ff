"""What all pages of sessions stand on: the workspace, and how its errors are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.http.errors import error_status
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.web.site import PageError, build_page_error

if TYPE_CHECKING:
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site
    from skillhall._internal.workspace.workspace import Workspace
    from skillhall.errors import SkillhallError


class SessionPageBase:
    """Calls that need a workspace."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def _workspace(self) -> Workspace:
        """The workspace. Raises: Refused, DatabaseUnavailable."""
        if self._site.workspace is None:
            raise HttpError("not_found", "this server keeps no sessions")
        return self._site.workspace.open()


def optional_page_error(request: PageRequest, error: SkillhallError | None) -> PageError | None:
    """The error in words, if there is one."""
    return None if error is None else build_page_error(request, error)


def page_status(error: SkillhallError | None) -> int:
    """The status of a page that tells of an error."""
    return 200 if error is None else error_status(error).http_status


def parse_number(text: str) -> int:
    """A version as a form brings it back; one that nothing has, if it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) < 18  # noqa: PLR2004 - of 64 bits
    return int(text) if is_number else -1


def session_url(identity: str) -> str:
    """Where a session's board is."""
    return f"/session/{identity}"
