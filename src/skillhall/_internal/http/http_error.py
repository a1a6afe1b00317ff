"""Error for requests that the HTTP layer rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillhall.errors import SkillhallError


class HttpError(SkillhallError):
    """The HTTP layer rejected a request. `code` is a key of `ERROR_STATUSES`.

    `headers` are added to the response, `details` to its JSON.
    """

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
