"""Redaction of secrets in logs and messages."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillhall._internal.settings import Secret

_USER_INFO = re.compile(r"//[^/\s@]{1,512}@")
_MAX_REDACTED_CHARS = 100_000  # a longer traceback is cut
_MIN_SECRET_LENGTH = 6  # shorter secrets would hide ordinary words


class Redactor:
    """Replaces configured secrets with `***`, longest first: one may contain another."""

    def __init__(self, secrets: Iterable[Secret | None]) -> None:
        values = [secret.reveal() for secret in secrets if secret is not None]
        values = [value for value in values if len(value) >= _MIN_SECRET_LENGTH]
        self._secrets = tuple(sorted(values, key=len, reverse=True))

    def redact_configured(self, text: str) -> str:
        """Return the text without configured secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, "***")
        return text

    def redact(self, text: str) -> str:
        """Return the text without configured secrets and URL credentials; long text is cut."""
        # Redacted before it is cut: the first half of a secret would not be recognized.
        return _USER_INFO.sub("//***@", self.redact_configured(text))[:_MAX_REDACTED_CHARS]
