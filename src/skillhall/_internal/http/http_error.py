"""Why a request is not taken, when only HTTP knows the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class HttpError(SkillhallError):
    """A request that is refused; `headers` go with the answer."""

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


class ClientDisconnected(Exception):
    """The client hung up before its request was whole; nobody is left to be told."""
