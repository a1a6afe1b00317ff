"""Texts without secrets: the last net below logs and messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.settings import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable

_USER_INFO = re.compile(r"//[^/\s@]{1,512}@")
_MAX_REDACTED_CHARS = 100_000  # characters of a traceback that are looked at
_MIN_SECRET_LENGTH = 6  # a shorter secret would blank out ordinary words


class Redactor:
    """Knows what must not be shown."""

    def __init__(self, secrets: Iterable[Secret | None]) -> None:
        known = [secret.reveal() for secret in secrets if secret is not None]
        self._secrets = tuple(
            sorted((one for one in known if len(one) >= _MIN_SECRET_LENGTH), key=len)
        )[::-1]

    def redact_configured(self, text: str) -> str:
        """The text with `***` for every secret that is configured."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, "***")
        return text

    def redact(self, text: str) -> str:
        """The same, and without user names and passwords in addresses."""
        return _USER_INFO.sub("//***@", self.redact_configured(text[:_MAX_REDACTED_CHARS]))
