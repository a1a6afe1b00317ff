"""What all pages of sessions stand on: the workspace, and how its errors are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.http.errors import status_of
from skillhall._internal.http.http_error import Refused
from skillhall._internal.web.site import Problem, problem_of

if TYPE_CHECKING:
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Site
    from skillhall._internal.workspace.workspace import Workspace
    from skillhall.errors import SkillhallError


class DeskPages:
    """Calls that need a workspace."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def _desk(self) -> Workspace:
        """The workspace. Raises: Refused, DatabaseUnavailable."""
        if self._site.workspace is None:
            raise Refused("not_found", "this server keeps no sessions")
        return self._site.workspace.open()


def told(visit: Visit, error: SkillhallError | None) -> Problem | None:
    """The error in words, if there is one."""
    return None if error is None else problem_of(visit, error)


def status_for(error: SkillhallError | None) -> int:
    """The status of a page that tells of an error."""
    return 200 if error is None else status_of(error).http


def number_in(text: str) -> int:
    """A version as a form brings it back; one that nothing has, if it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) < 18  # noqa: PLR2004 - of 64 bits
    return int(text) if is_number else -1


def session_address(identity: str) -> str:
    """Where a session's board is."""
    return f"/session/{identity}"
