"""Token strength: a rough estimate that detects obviously weak tokens."""

from __future__ import annotations

import math
import re
from itertools import pairwise

MIN_LENGTH = 20  # characters
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
    if len(token) < MIN_LENGTH:
        return True
    text = _COMMON.sub("#", token.lower())
    # The shortest prefix that, repeated, gives the text.
    period = next((n for n in range(1, len(text)) if text[:-n] == text[n:]), len(text))
    text = text[:period]
    # Characters that repeat or continue the one before add nothing: aaa, 123, cba.
    varied = text[:1] + "".join(
        later for earlier, later in pairwise(text) if abs(ord(later) - ord(earlier)) > 1
    )
    # An upper bound for the entropy of a token that a person chose.
    return len(varied) * math.log2(max(1, len(set(varied)))) < _MIN_BITS
