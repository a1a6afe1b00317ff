"""Comments in Markdown that tell an agent to do something, where no reader sees it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall.skill.finding import Code
from skillhall.skill.risks.excerpts import excerpt
from skillhall.skill.risks.lines import MAX_PIECE, Hit, Lines
from skillhall.skill.risks.secrets import masked

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPEN, _CLOSE = "<!--", "-->"
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_ACTS = re.compile(
    r"\b(?:run|execute|send|post|upload|download|fetch|curl|install|delete|remove|ignore|disregard"
    r"|forget|exfiltrate|append|forward|email|copy|transmit|report|leak|act as|pretend)\b"
)
_REACHES = re.compile(
    r"https?://|~/|\.env\b|\.ssh\b|\bcurl\b|\bbash\b|\bsecrets?\b|\btokens?\b|\bpasswords?\b"
    r"|\bcredentials?\b|\bapi keys?\b|\b(?:system prompt|previous|prior) ?(?:instructions?)?\b"
)
_ADDRESSED = re.compile(r"\b(?:you must|you should|assistant|agents?|the model|claude|the user)\b")
# Notes of an author to the next author, and switches of tools.
_NOTE = re.compile(
    r"\s*(?:todo|fixme|markdownlint|prettier|eslint|textlint|vale|toc\b|cspell|optional)"
)
_WORDS = re.compile(r"[a-z0-9]+")
_LEAST_WORDS = 4


def find_hidden_comments(lines: Lines) -> Iterator[Hit]:
    """Comments outside of code that give orders, and whose words stand nowhere in sight."""
    if _OPEN not in lines.text:
        return
    comments = list(_comments(lines.lower))
    visible = _visible_words(lines.lower, comments)
    for start, end in comments:
        inner = lines.lower[start + len(_OPEN) : end][:MAX_PIECE]
        if _gives_orders(inner) and _words(inner) not in visible:
            text = lines.text[start : min(end + len(_CLOSE), start + MAX_PIECE)]
            shown = excerpt(masked(text))
            yield Hit(Code.HIDDEN_COMMENT, "a hidden comment", lines.number(start), shown)


def _gives_orders(comment: str) -> bool:
    if len(comment.split()) < _LEAST_WORDS or _ACTS.search(comment) is None:
        return False
    if _REACHES.search(comment) is not None:
        return True
    return _ADDRESSED.search(comment) is not None and _NOTE.match(comment) is None


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """Where comments start and end, those in fenced code left out."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    passed = 0
    at = text.find(_OPEN)
    while at >= 0:
        while passed < len(fences) and fences[passed] < at:
            passed += 1
        end = text.find(_CLOSE, at + len(_OPEN))
        end = len(text) if end < 0 else end
        if passed % 2 == 0:
            yield at, end
            # Fences inside a comment are not fences.
            while passed < len(fences) and fences[passed] < end:
                del fences[passed]
        at = text.find(_OPEN, end if passed % 2 == 0 else at + 1)


def _visible_words(text: str, comments: list[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in comments:
        parts.append(text[at:start])
        at = end
    return _words(" ".join([*parts, text[at:]]))


def _words(text: str) -> str:
    return " ".join(_WORDS.findall(text))
