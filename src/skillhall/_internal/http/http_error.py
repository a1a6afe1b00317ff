"""The error for requests that are rejected for reasons of HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillhall.errors import SkillhallError


class HttpError(SkillhallError):
    """A rejected request; `headers` are added to the response."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        headers: Sequence[tuple[bytes, bytes]] = (),
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = tuple(headers)
        self.details = details
