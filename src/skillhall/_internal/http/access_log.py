"""One line of JSON for every request, on the logger `skillhall.access`."""

from __future__ import annotations

import json
import logging
from asyncio import get_running_loop
from functools import lru_cache
from typing import TYPE_CHECKING

from skillhall._internal.http.response import timestamp

if TYPE_CHECKING:
    from starlette.types import Scope

    from skillhall._internal.http.redaction import Scrubber

ACCESS = logging.getLogger("skillhall.access")
# Asked for every few seconds by machines; their lines would bury the others.
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})

_FAILED = 400
_PAUSE = 0.1  # seconds that a line may wait for others: a record costs as much as an answer
_MOST = 200  # lines that wait


class AccessLog:
    """Collects lines and hands them to the logger, some at a time."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._lines: list[str] = []

    def note(self, scope: Scope, *, status: int, sent: int, seconds: float, identity: str) -> None:
        """One request."""
        is_quiet = scope["path"] in QUIET and status < _FAILED
        if not ACCESS.isEnabledFor(logging.DEBUG if is_quiet else logging.INFO):
            return
        client = scope["client"][0] if scope.get("client") else ""
        self._lines.append(
            f'{{"time":"{timestamp()}","method":"{scope["method"]}",'
            f'"path":{_quoted(scope["raw_path"])},"status":{status},"bytes":{sent},'
            f'"ms":{seconds * 1e3:.2f},"requestId":"{identity}","client":"{client}"}}'
        )
        if len(self._lines) == 1:
            get_running_loop().call_later(_PAUSE, self.flush)
        elif len(self._lines) >= _MOST:
            self.flush()

    def flush(self) -> None:
        """Hand over what waits."""
        if self._lines:
            text, self._lines = "\n".join(self._lines), []
            # Secrets are looked for in all of them at once.
            ACCESS.info("%s", self._scrubber.known(text))


@lru_cache(maxsize=1024)
def _quoted(path: bytes) -> str:
    return json.dumps(path.decode("latin-1"))
