"""Token strength: a rough estimate that detects obviously weak tokens."""

from __future__ import annotations

import math
import re
from itertools import pairwise

MIN_LENGTH = 16  # characters
_MIN_BITS = 40.0

# Common words in tokens. Each one counts as a single character.
_COMMON = re.compile(
    "password|passwort|passwd|pass|secret|token|bearer|admin|root|user|login|auth"
    "|changeme|change|letmein|welcome|example|sample|default|dummy|demo|test|dev|prod"
    "|skillhall|skill|hall|server|public|private|access|key|api|this|that|the|my|is|me"
    "|qwertyuiop|qwerty|qwertz|asdfghjkl|asdf|zxcvbnm|abc|foo|bar|baz|hello|world"
)


def is_weak_token(token: str) -> bool:
    """Whether a token can be guessed: too short, repetitive, or made of common words."""
    return len(token) < MIN_LENGTH or estimate_entropy_bits(token) < _MIN_BITS


def estimate_entropy_bits(token: str) -> float:
    """Estimate an upper bound for the entropy of a token chosen by a person."""
    text = _remove_repetition(_COMMON.sub("#", token.lower()))
    varied = text[:1] + "".join(
        later for earlier, later in pairwise(text) if not _is_adjacent(earlier, later)
    )
    return len(varied) * math.log2(max(1, len(set(varied))))


def _remove_repetition(text: str) -> str:
    """Return the shortest prefix that, repeated, gives `text`."""
    for size in range(1, len(text)):
        if text[:-size] == text[size:]:
            return text[:size]
    return text


def _is_adjacent(earlier: str, later: str) -> bool:
    """Whether two characters are equal or neighbors, as in aaa, 123 and cba."""
    return abs(ord(later) - ord(earlier)) <= 1
