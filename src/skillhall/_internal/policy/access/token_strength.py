"""Token strength: a rough estimate that detects weak tokens and passwords."""

from __future__ import annotations

import math
import re
from itertools import pairwise

MIN_LENGTH = 20  # characters
MIN_PASSWORD_LENGTH = 12  # characters
_MIN_BITS = 40.0
_MIN_PASSWORD_BITS = 30.0  # fewer, because password attempts are rate-limited and hashing is slow

# Common words in tokens. Each one counts as a single character.
_COMMON = re.compile(
    "password|passwort|passwd|pass|secret|token|bearer|admin|root|user|login|auth"
    "|changeme|change|letmein|welcome|example|sample|default|dummy|demo|test|dev|prod"
    "|skillhall|skill|hall|server|public|private|access|key|api|this|that|the|my|is|me"
    "|qwertyuiop|qwerty|qwertz|asdfghjkl|asdf|zxcvbnm|abc|foo|bar|baz|hello|world"
)


def is_weak_token(token: str) -> bool:
    """Whether a token can be guessed: too short, repetitive, or made of common words."""
    return len(token) < MIN_LENGTH or _estimate_bits(token) < _MIN_BITS


def is_weak_password(password: str, name: str) -> bool:
    """Whether a user's password can be guessed.

    The user's name counts as one character.
    """
    if len(password) < MIN_PASSWORD_LENGTH:
        return True
    text = password.lower().replace(name.lower(), "#") if name else password
    return _estimate_bits(text) < _MIN_PASSWORD_BITS


def _estimate_bits(token: str) -> float:
    """Return an upper bound for the entropy of a text that a person chose."""
    text = _COMMON.sub("#", token.lower())
    # The shortest prefix that, repeated, gives the text.
    period = next((n for n in range(1, len(text)) if text[:-n] == text[n:]), len(text))
    text = text[:period]
    # Characters that repeat or continue the one before add nothing: aaa, 123, cba.
    varied = text[:1] + "".join(
        later for earlier, later in pairwise(text) if abs(ord(later) - ord(earlier)) > 1
    )
    return len(varied) * math.log2(max(1, len(set(varied))))
