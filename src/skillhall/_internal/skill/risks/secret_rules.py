"""Keys, tokens and passwords that look alive, told without being repeated."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.skill.risks.lines import ScannedText

_NOT_INSIDE = r"(?<![A-Za-z0-9_-])"
# How known issuers write their keys: a text that each begins with, and the whole.
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
_KNOWN = {start: re.compile(_NOT_INSIDE + form) for start, form in _FORMATS.items()}
_ANY_KNOWN = re.compile(f"{_NOT_INSIDE}(?:{'|'.join(_FORMATS.values())})")
# A value under a telling name: only in quotes, only without gaps.
_NAMES = ("key", "token", "secret", "passw")
_ASSIGNMENT = re.compile(
    r"(?i:api_?-?key|secret_?-?key|access_?-?key|private_?-?key|client_?-?secret|auth_?-?token"
    r"|access_?-?token|bot_?-?token|secret|passwo?r?d)"
    r"[\"']?\s{0,4}(?::|:?=|=>)\s{0,4}[\"']([A-Za-z0-9+/=_.~!@#%^&*-]{20,120})[\"']"
)
_KEY_START = "-----BEGIN "
_KEY_HEADER = re.compile(r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----")
_KEY_BYTES = re.compile(r"[A-Za-z0-9+/]{48}")
_KEY_REACH = 160  # characters behind the header that must hold some of the key
_PLACEHOLDERS = (
    *("example", "placeholder", "your", "dummy", "sample", "fake", "redacted", "changeme"),
    *("xxxx", "0000", "1111", "aaaa", "12345", "abcdef", "test", "todo", "insert", "replace"),
    *("....", "****", "____", "----", "here", "secret", "password", "token"),
)
_MIN_KNOWN = 3.0  # bits per character; 16 random capitals and digits have about 3.6
_MIN_ASSIGNED = 3.7  # for a value whose form says nothing
_HEX = re.compile(r"[0-9a-f]{32,}+|[0-9A-F]{32,}+")
_PREVIEW_LENGTH = 4  # characters of a secret that may be shown


class SecretMatch(NamedTuple):
    """Where a secret stands, and what may be shown of it."""

    start: int
    preview: str


def find_secrets(lines: ScannedText) -> Iterator[SecretMatch]:
    """Everything in a text that looks like a live secret, placeholders and examples left out."""
    text = lines.text
    for start, form in _KNOWN.items():
        if start in text:
            for match in form.finditer(text):
                if _looks_real(match.group().removeprefix(start), _MIN_KNOWN):
                    yield SecretMatch(match.start(), _format_preview(match.group()))
    yield from _find_assigned_secrets(lines)
    if _KEY_START in text:
        yield from _find_private_keys(text)


def redact_secrets(text: str) -> str:
    """`text` with stars in place of what follows the first characters of each known secret."""
    return _ASSIGNMENT.sub(_redact_value, _ANY_KNOWN.sub(_redact_match, text))


def _find_assigned_secrets(lines: ScannedText) -> Iterator[SecretMatch]:
    values: dict[int, str] = {}
    for name in _NAMES:
        for piece in lines.find_pieces(name):
            if '"' in piece.text or "'" in piece.text:
                found = _ASSIGNMENT.finditer(piece.text)
                values.update((piece.start + match.start(1), match.group(1)) for match in found)
    for start, value in values.items():
        if (
            _has_mixed_characters(value)
            and _looks_real(value, _MIN_ASSIGNED)
            and not _has_known_format(value)
        ):
            yield SecretMatch(start, _format_preview(value))


def _find_private_keys(text: str) -> Iterator[SecretMatch]:
    for match in _KEY_HEADER.finditer(text):
        found = _KEY_BYTES.search(text, match.end(), match.end() + _KEY_REACH)
        if found is not None and _looks_real(found.group(), _MIN_KNOWN):
            yield SecretMatch(
                match.start(), f"{match.group()} ({_format_short_hash(found.group())})"
            )


def _has_known_format(value: str) -> bool:
    return _ANY_KNOWN.search(value) is not None


def _looks_real(body: str, min_entropy: float) -> bool:
    """Whether a text is neither a placeholder nor too regular to be random."""
    lower = body.lower()
    return not any(filler in lower for filler in _PLACEHOLDERS) and _entropy(body) >= min_entropy


def _has_mixed_characters(value: str) -> bool:
    """Whether a value has digits, small letters and capitals, or is a long hexadecimal number."""
    if _HEX.fullmatch(value):
        return True
    kinds = (str.isdigit, str.islower, str.isupper)
    return all(any(map(kind, value)) for kind in kinds)


def _entropy(text: str) -> float:
    """Shannon's measure, in bits per character."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)


def _format_preview(secret: str) -> str:
    return f"{secret[:_PREVIEW_LENGTH]}… ({len(secret)} characters, {_format_short_hash(secret)})"


def _format_short_hash(secret: str) -> str:
    # Tells two secrets apart; far too short to tell what they are.
    return f"mark {hashlib.sha256(secret.encode()).hexdigest()[:4]}"


def _redact_match(match: re.Match[str]) -> str:
    return match.group()[:_PREVIEW_LENGTH] + "*" * (len(match.group()) - _PREVIEW_LENGTH)


def _redact_value(match: re.Match[str]) -> str:
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    whole = match.group()
    return f"{whole[: start + _PREVIEW_LENGTH]}{'*' * (end - start - _PREVIEW_LENGTH)}{whole[end:]}"
