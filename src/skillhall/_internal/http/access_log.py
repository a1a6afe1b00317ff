"""Access log: one JSON line per request, on the logger `skillhall.access`."""

from __future__ import annotations

import json
import logging
from asyncio import get_running_loop
from functools import lru_cache

from starlette.types import Scope

from skillhall._internal.http.redaction import Redactor
from skillhall._internal.http.response import utc_timestamp

ACCESS_LOGGER = logging.getLogger("skillhall.access")
# Health checks and scrapers request these every few seconds. Successful requests are logged only
# if the level is DEBUG.
QUIET_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})

_FIRST_ERROR_STATUS = 400
_FLUSH_DELAY = 0.1  # seconds; one log record costs as much as one response, so lines are batched
_MAX_PENDING_LINES = 200


class AccessLog:
    """Collects lines and logs them in batches."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._lines: list[str] = []

    def log_request(
        self, scope: Scope, *, status: int, bytes_sent: int, seconds: float, request_id: str
    ) -> None:
        """Add a line for a request."""
        is_quiet = scope["path"] in QUIET_PATHS and status < _FIRST_ERROR_STATUS
        if not ACCESS_LOGGER.isEnabledFor(logging.DEBUG if is_quiet else logging.INFO):
            return
        client = scope["client"][0] if scope.get("client") else ""
        self._lines.append(
            f'{{"time":"{utc_timestamp()}","method":"{scope["method"]}",'
            f'"path":{_quote_path(scope["raw_path"])},"status":{status},"bytes":{bytes_sent},'
            f'"ms":{seconds * 1e3:.2f},"requestId":"{request_id}","client":"{client}"}}'
        )
        if len(self._lines) == 1:
            get_running_loop().call_later(_FLUSH_DELAY, self.flush)
        elif len(self._lines) >= _MAX_PENDING_LINES:
            self.flush()

    def flush(self) -> None:
        """Log the pending lines."""
        if self._lines:
            text, self._lines = "\n".join(self._lines), []
            # Redacting the batch is cheaper than redacting each line.
            ACCESS_LOGGER.info("%s", self._redactor.redact_configured(text))


@lru_cache(maxsize=1024)
def _quote_path(path: bytes) -> str:
    return json.dumps(path.decode("latin-1"))
