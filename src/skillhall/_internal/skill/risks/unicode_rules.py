"""Rules for invisible characters: hidden text, and those that no script needs.

Legitimate uses are never reported: emoji sequences, flags, ideographic variants, and the joiners
and marks of Arabic, Persian, Hebrew, Indic and South-East Asian scripts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.invisible_characters import BLACK_FLAG, FLAG_TAGS
from skillhall._internal.skill.risks.excerpt import (
    MAX_EXCERPT_LENGTH,
    build_excerpt,
    escape_invisible,
    truncate,
)
from skillhall._internal.skill.risks.rule_engine import MAX_PIECE_LENGTH, RuleHit, ScannedText
from skillhall._internal.skill.risks.secret_rules import redact_secrets

_INVISIBLE_RUN = re.compile(
    "[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef]+"
)
_TAG = re.compile("[\U000e0000-\U000e007f]+")
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_FLAG_TAGS = re.compile(FLAG_TAGS)
_DIRECTION_OVERRIDES = "\u202d\u202e"
_DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_JOINERS = "\u200c\u200d"
_EMOJI_JOINER, _ZERO_WIDTH_SPACE, _PRESENTATION_SELECTORS = "\u200d", "\u200b", "\ufe0e\ufe0f"
_RIGHT_TO_LEFT = re.compile(
    "[\u05d0-\u05f2\u0620-\u064a\u066e-\u06d3\u06fa-\u088e\ufb1d-\ufdfb\ufe70-\ufefc"
    "\U00010800-\U00010fff\U0001e800-\U0001eeff]"
)
# Scripts that join letters or are written without spaces.
_COMPLEX_SCRIPTS = re.compile(
    "[\u0590-\u109f\u1780-\u18af\u1900-\u1cff\u3000-\u30ff\u3400-\u9fff\ua800-\uabff\ufb1d-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_HAN = re.compile("[\u2e80-\u2fdf\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MAX_JOINERS = 2  # in one run


class _InvisibleRun(NamedTuple):
    """A run of invisible characters and its neighbors."""

    start: int
    characters: str
    before: str
    after: str


def find_invisible_characters(lines: ScannedText) -> Iterator[RuleHit]:
    """Find hidden text and stray invisible characters, one hit of each per line."""
    text = lines.text
    if text.isascii():
        return
    directions: dict[tuple[int, int], bool] = {}

    def is_right_to_left(offset: int) -> bool:
        """Whether the line has right-to-left letters; each part is searched only once."""
        key = lines.find_line_number(offset), offset // MAX_PIECE_LENGTH
        if key not in directions:
            directions[key] = _RIGHT_TO_LEFT.search(lines.read_line(offset)[1]) is not None
        return directions[key]

    hidden: dict[int, list[str]] = {}
    stray: dict[int, list[_InvisibleRun]] = {}
    for run in _find_invisible_runs(text):
        if message := decode_hidden_text(run):
            hidden.setdefault(lines.find_line_number(run.start), []).append(message)
        elif _is_stray(run, is_right_to_left):
            stray.setdefault(lines.find_line_number(run.start), []).append(run)
    for number, parts in hidden.items():
        shown = truncate(escape_invisible("".join(parts)), MAX_EXCERPT_LENGTH)
        yield RuleHit(Code.HIDDEN_UNICODE, "text in invisible characters", number, shown)
    for number, runs in stray.items():
        marks = sorted({f"U+{ord(c):04X}" for run in runs for c in run.characters})
        description = f"invisible characters ({', '.join(marks[:4])})"
        start, line = lines.read_line(runs[0].start)
        shown = build_excerpt(redact_secrets(line), runs[0].start - start)
        yield RuleHit(Code.BIDI_OR_ZERO_WIDTH, description, number, shown)


def find_escaped_hidden_text(value: str, text: str) -> Iterator[str]:
    """Yield excerpts of hidden text in a field whose source spells it with escapes."""
    if value.isascii():
        return
    for run in _find_invisible_runs(value):
        if run.characters not in text and (message := decode_hidden_text(run)):
            yield truncate(escape_invisible(message), MAX_EXCERPT_LENGTH)


def decode_hidden_text(run: _InvisibleRun) -> str:
    """Return the text hidden in a run of tags or selectors; "" if there is none."""
    if tags := "".join(_TAG.findall(run.characters)):
        return "".join(chr(ord(tag) & 0x7F) for tag in tags)
    selectors = _SELECTOR.findall(run.characters)
    carriers = [selector for selector in selectors if selector not in _PRESENTATION_SELECTORS]
    if len(carriers) > 1 or any(_is_unexpected_selector(c, run.before) for c in carriers):
        # VS1 to VS16 encode the bytes 0 to 15, VS17 to VS256 the others.
        numbers = map(ord, selectors)
        data = bytes(n - 0xFE00 if n <= 0xFE0F else n - 0xE0100 + 16 for n in numbers)  # noqa: PLR2004
        return data.decode("utf-8", "replace")
    return ""


def _find_invisible_runs(text: str) -> Iterator[_InvisibleRun]:
    """Yield every run of invisible characters, without the tags of emoji flags."""
    for match in _INVISIBLE_RUN.finditer(text):
        start, end = match.span()
        before = text[start - 1 : start]
        flag = _FLAG_TAGS.match(text, start) if before == BLACK_FLAG else None
        start = flag.end() if flag else start
        if start < end:
            yield _InvisibleRun(start, text[start:end], before, text[end : end + 1])


def _is_unexpected_selector(selector: str, before: str) -> bool:
    """Whether no script uses the selector after the character `before`."""
    if selector > "\uffff":
        return _HAN.match(before) is None
    return before.isascii()


def _is_stray(run: _InvisibleRun, is_right_to_left: Callable[[int], bool]) -> bool:
    marks = "".join(c for c in run.characters if c not in _PRESENTATION_SELECTORS)
    if run.start == 0:
        marks = marks.removeprefix("\ufeff")  # a byte order mark
    if any(mark in marks for mark in _DIRECTION_OVERRIDES) or len(marks) > _MAX_JOINERS:
        return bool(marks)
    for mark in marks:
        if _SELECTOR.match(mark):
            continue
        is_legitimate = False  # whether some script needs this character here
        if mark in _DIRECTION_MARKS:
            is_legitimate = is_right_to_left(run.start)
        elif mark in _JOINERS or mark == _ZERO_WIDTH_SPACE:
            neighbors = [character for character in (run.before, run.after) if character]
            is_legitimate = any(map(_COMPLEX_SCRIPTS.match, neighbors)) or (
                mark == _EMOJI_JOINER
                and any(unicodedata.category(c) in ("So", "Sk", "Sm") for c in neighbors)
            )
        if not is_legitimate:
            return True
    return False


# C0 except tab and newline, delete, and C1. NUL bytes and carriage returns were removed before.
_CONTROL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f]")
# UTF-8 that was decoded as Latin-1: damaged letters, not controls.
_MOJIBAKE = re.compile("[\u00c2-\u00f4][\u0080-\u00bf]{1,3}")
_PAGE_BREAK = re.compile("^\x0c", re.MULTILINE)


def find_control_characters(lines: ScannedText) -> Iterator[RuleHit]:
    """Find lines with control characters other than page breaks."""
    if _CONTROL.search(lines.text) is None:
        return
    text = _MOJIBAKE.sub(lambda match: "x" * len(match.group()), lines.text)
    text = _PAGE_BREAK.sub(" ", text)
    reported = -1
    for match in _CONTROL.finditer(text):
        number = lines.find_line_number(match.start())
        if number != reported:
            reported = number
            start, line = lines.read_line(match.start())
            shown = build_excerpt(redact_secrets(line), match.start() - start)
            yield RuleHit(Code.TERMINAL_CONTROL, "control character", number, shown)
