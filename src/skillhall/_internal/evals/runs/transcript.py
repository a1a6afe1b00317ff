"""Transcripts of runs: the messages of a conversation, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.skill.risks.secret_rules import redact_secrets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from skillhall._internal.evals.run_agents.run_agent import Transcript

_MIN_SECRET_LENGTH = 6  # shorter values would hide ordinary words
_REDACTED = "***"


class SecretRedactor:
    """Replaces the values of given secrets, and strings that look like secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one may contain another.
        values = {value for value in secrets if len(value) >= _MIN_SECRET_LENGTH}
        self._secrets: Collection[str] = sorted(values, key=len, reverse=True)

    def redact_values(self, text: str) -> str:
        """Return the text without the given secrets."""
        for secret in self._secrets:
            text = text.replace(secret, _REDACTED)
        return text

    def redact(self, text: str) -> str:
        """Return the text without the given secrets and strings that look like secrets."""
        return redact_secrets(self.redact_values(text))

    def redact_transcript(self, transcript: Transcript) -> Transcript:
        """Return the transcript without secrets in its texts."""
        return [
            {key: self._redact_value(value) for key, value in entry.items()} for entry in transcript
        ]

    def _redact_value(self, value: object) -> object:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return {key: self._redact_value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._redact_value(item) for item in value]
        return value
