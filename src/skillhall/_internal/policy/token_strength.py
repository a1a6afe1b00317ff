"""How hard a token is to guess: a rough estimate that catches the obvious ones."""

from __future__ import annotations

import math
import re
from itertools import pairwise

SHORTEST = 16  # characters
_LEAST_BITS = 40.0

# Words that people put into tokens; each counts as one character.
_COMMON = re.compile(
    "password|passwort|passwd|pass|secret|token|bearer|admin|root|user|login|auth"
    "|changeme|change|letmein|welcome|example|sample|default|dummy|demo|test|dev|prod"
    "|skillhall|skill|hall|server|public|private|access|key|api|this|that|the|my|is|me"
    "|qwertyuiop|qwerty|qwertz|asdfghjkl|asdf|zxcvbnm|abc|foo|bar|baz|hello|world"
)


def is_trivial(token: str) -> bool:
    """Whether a token can be guessed: too short, repetitive, or made of common words."""
    return len(token) < SHORTEST or estimated_bits(token) < _LEAST_BITS


def estimated_bits(token: str) -> float:
    """An upper bound for the entropy of a token that a person may have chosen."""
    text = _without_repetition(_COMMON.sub("#", token.lower()))
    varied = text[:1] + "".join(
        later for earlier, later in pairwise(text) if not _follows(earlier, later)
    )
    return len(varied) * math.log2(max(1, len(set(varied))))


def _without_repetition(text: str) -> str:
    """The shortest text of which `text` is a repetition, the last one perhaps cut off."""
    for size in range(1, len(text)):
        if text[:-size] == text[size:]:
            return text[:size]
    return text


def _follows(earlier: str, later: str) -> bool:
    """Whether a character is the same as the one before, or next to it: aaa, 123, cba."""
    return abs(ord(later) - ord(earlier)) <= 1
