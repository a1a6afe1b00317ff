"""Rules for hardcoded secrets. A finding shows only the start of a secret."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.triggers import Trigger, all_words, any_word, with_literals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.skill.risks.rule_engine import ScannedText

_NOT_INSIDE = r"(?<![A-Za-z0-9_-])"
# Key formats of known issuers, by a fixed prefix that is fast to search for.
_FORMATS = {
    "AKIA": r"AKIA[0-9A-Z]{16}(?![0-9A-Za-z])",
    "ASIA": r"ASIA[0-9A-Z]{16}(?![0-9A-Za-z])",
    "ghp_": r"ghp_[A-Za-z0-9]{36}",
    "gho_": r"gho_[A-Za-z0-9]{36}",
    "ghs_": r"ghs_[A-Za-z0-9]{36}",
    "github_pat_": r"github_pat_[A-Za-z0-9_]{60,90}",
    "glpat-": r"glpat-[A-Za-z0-9_-]{20,64}",
    "xox": r"xox[abeprs]-[A-Za-z0-9-]{20,120}",
    "sk-": r"sk-(?:ant-|proj-|or-v1-)?[A-Za-z0-9_-]{32,200}",
    "sk_live_": r"[sr]k_live_[A-Za-z0-9]{20,120}",
    "rk_live_": r"rk_live_[A-Za-z0-9]{20,120}",
    "AIza": r"AIza[A-Za-z0-9_-]{35}",
    "npm_": r"npm_[A-Za-z0-9]{36}",
    "pypi-AgE": r"pypi-AgE[A-Za-z0-9_-]{50,250}",
    "hf_": r"hf_[A-Za-z0-9]{34}",
    "SG.": r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}",
    "dop_v1_": r"dop_v1_[0-9a-f]{64}",
    "hooks.slack.com/": r"hooks\.slack\.com/services/T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/\w{24}",
}
# Of the formats above, and of `_KEY_HEADER`.
KEY_TRIGGERS: tuple[Trigger, ...] = (
    *any_word("ghp gho ghs glpat xoxa xoxb xoxe xoxp xoxr xoxs sk rk hf sg dop"),
    *all_words("pat github", "hooks slack services", "begin private key"),
    *with_literals({"npm_": "npm", "pypi-age": "pypi"}),
)
_START_WITHOUT_TRIGGER = re.compile(b"A(?:KIA|SIA|Iza)")  # they are no words of their own
_KNOWN = {start: LazyPattern(_NOT_INSIDE + form) for start, form in _FORMATS.items()}
_ANY_KNOWN = LazyPattern(f"{_NOT_INSIDE}(?:{'|'.join(_FORMATS.values())})")
# A quoted value without spaces that is assigned to a name such as "api_key".
_NAMES = ("key", "token", "secret", "passw")  # every match of `_ASSIGNMENT` contains one
_ASSIGNMENT = LazyPattern(
    r"(?i:api_?-?key|secret_?-?key|access_?-?key|private_?-?key|client_?-?secret|auth_?-?token"
    r"|access_?-?token|bot_?-?token|secret|passwo?r?d)"
    r"[\"']?\s{0,4}(?::|:?=|=>)\s{0,4}[\"']([A-Za-z0-9+/=_.~!@#%^&*-]{20,120})[\"']"
)
_SHORTEST_QUOTED_VALUE = b"'" + b"x" * 20  # that `_ASSIGNMENT` matches
_KEY_HEADER = LazyPattern(r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----")
_KEY_BYTES = LazyPattern(r"[A-Za-z0-9+/]{48}")
_KEY_REACH = 160  # characters after the header in which the key must start
_PLACEHOLDERS = (
    *("example", "placeholder", "your", "dummy", "sample", "fake", "redacted", "changeme"),
    *("xxxx", "0000", "1111", "aaaa", "12345", "abcdef", "test", "todo", "insert", "replace"),
    *("....", "****", "____", "----", "here", "secret", "password", "token"),
)
_MIN_KNOWN = 3.0  # bits per character; 16 random capitals and digits have about 3.6
_MIN_ASSIGNED = 3.7  # for a value without a known format
_HEX = LazyPattern(r"[0-9a-f]{32,}+|[0-9A-F]{32,}+")
_PREVIEW_LENGTH = 4  # characters of a secret that may be shown


class SecretMatch(NamedTuple):
    """The offset of a secret and a preview that is safe to show."""

    start: int
    preview: str


def find_secrets(lines: ScannedText, *, has_key_trigger: bool) -> Iterator[SecretMatch]:
    """Find strings that look like real secrets, not placeholders or examples.

    `has_key_trigger` says whether the text has one of `KEY_TRIGGERS`.
    """
    if not lines.value_shape and not has_key_trigger:
        return
    if has_key_trigger or _START_WITHOUT_TRIGGER.search(lines.encoded):
        yield from _find_known_formats(lines.text)
    if _SHORTEST_QUOTED_VALUE in lines.value_shape:
        yield from _find_assigned_secrets(lines)
    if has_key_trigger:
        yield from _find_private_keys(lines.text)


def _find_known_formats(text: str) -> Iterator[SecretMatch]:
    for start, form in _KNOWN.items():
        if start in text:
            for match in form.finditer(text):
                if _looks_real(match.group().removeprefix(start), _MIN_KNOWN):
                    yield SecretMatch(match.start(), _format_preview(match.group()))


def _find_private_keys(text: str) -> Iterator[SecretMatch]:
    for match in _KEY_HEADER.finditer(text):
        key = _KEY_BYTES.search(text, match.end(), match.end() + _KEY_REACH)
        if key is not None and _looks_real(key.group(), _MIN_KNOWN):
            preview = f"{match.group()} ({_format_short_hash(key.group())})"
            yield SecretMatch(match.start(), preview)


def redact_secrets(text: str) -> str:
    """Replace secrets with asterisks, except for their first characters."""

    def redact(match: re.Match[str]) -> str:
        secret = match.group(match.lastindex or 0)
        redacted = secret[:_PREVIEW_LENGTH].ljust(len(secret), "*")
        return match.group().replace(secret, redacted)

    return _ASSIGNMENT.sub(redact, _ANY_KNOWN.sub(redact, text))


def _find_assigned_secrets(lines: ScannedText) -> Iterator[SecretMatch]:
    values: dict[int, str] = {}
    for name in _NAMES:
        for piece in lines.find_pieces(name):
            if '"' in piece.text or "'" in piece.text:
                matches = _ASSIGNMENT.finditer(piece.text)
                values.update((piece.start + match.start(1), match.group(1)) for match in matches)
    for start, value in values.items():
        is_known = _ANY_KNOWN.search(value) is not None  # reported by its format
        if not is_known and _has_mixed_characters(value) and _looks_real(value, _MIN_ASSIGNED):
            yield SecretMatch(start, _format_preview(value))


def _looks_real(body: str, min_entropy: float) -> bool:
    """Whether a string is random enough and not a placeholder."""
    lower = body.lower()
    if any(word in lower for word in _PLACEHOLDERS):
        return False
    shares = [count / len(body) for count in Counter(body).values()]
    # The Shannon entropy in bits per character.
    return -sum(share * math.log2(share) for share in shares) >= min_entropy


def _has_mixed_characters(value: str) -> bool:
    """Whether a value has digits, lowercase and uppercase letters, or is long hex."""
    kinds = (str.isdigit, str.islower, str.isupper)
    return bool(_HEX.fullmatch(value)) or all(any(map(kind, value)) for kind in kinds)


def _format_preview(secret: str) -> str:
    return f"{secret[:_PREVIEW_LENGTH]}… ({len(secret)} characters, {_format_short_hash(secret)})"


def _format_short_hash(secret: str) -> str:
    # Enough to tell two secrets apart, and too short to guess one. Ids of findings depend on it.
    return f"mark {hashlib.sha256(secret.encode()).hexdigest()[:4]}"
