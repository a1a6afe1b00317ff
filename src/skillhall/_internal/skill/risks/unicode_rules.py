"""Characters that nobody sees: texts written in them, and single ones where no script needs them.

Emoji sequences, flags, ideographic variants, and the joiners and marks of Arabic, Persian, Hebrew,
Indic and South-East Asian writing are what these characters are for; they are never reported.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.invisible import BLACK_FLAG, FLAG_TAGS
from skillhall._internal.skill.risks.excerpt import SHOWN, escaped, excerpt, shortened
from skillhall._internal.skill.risks.lines import MAX_PIECE, Hit, Lines
from skillhall._internal.skill.risks.secret_rules import masked

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUN = re.compile(
    "[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef]+"
)
_TAG = re.compile("[\U000e0000-\U000e007f]+")
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_FLAG_TAGS = re.compile(FLAG_TAGS)
_OVERRIDES = "\u202d\u202e"
_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_JOINERS = "\u200c\u200d"
_EMOJI_JOINER, _ZERO_WIDTH_SPACE, _PRESENTATION = "\u200d", "\u200b", "\ufe0e\ufe0f"
_RIGHT_TO_LEFT = re.compile(
    "[\u05d0-\u05f2\u0620-\u064a\u066e-\u06d3\u06fa-\u088e\ufb1d-\ufdfb\ufe70-\ufefc"
    "\U00010800-\U00010fff\U0001e800-\U0001eeff]"
)
# Scripts whose letters are joined, or written without spaces.
_COMPLEX = re.compile(
    "[\u0590-\u109f\u1780-\u18af\u1900-\u1cff\u3000-\u30ff\u3400-\u9fff\ua800-\uabff\ufb1d-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_HAN = re.compile("[\u2e80-\u2fdf\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MOST_TOGETHER = 2  # joiners that one place may have


class _Place(NamedTuple):
    """A run of unseen characters, and the characters around it."""

    start: int
    run: str
    before: str
    after: str


def find_unseen(lines: Lines) -> Iterator[Hit]:
    """Hidden texts and stray unseen characters, one of each for a line."""
    text = lines.text
    if text.isascii():
        return
    directions = _Directions(lines)
    hidden: dict[int, list[str]] = {}
    stray: dict[int, list[_Place]] = {}
    for place in _places(text):
        if message := hidden_text(place):
            hidden.setdefault(lines.number(place.start), []).append(message)
        elif _is_stray(place, directions):
            stray.setdefault(lines.number(place.start), []).append(place)
    for number, parts in hidden.items():
        shown = shortened(escaped("".join(parts)), SHOWN)
        yield Hit(Code.HIDDEN_UNICODE, "unseen characters spell a text", number, shown)
    for number, places in stray.items():
        yield _stray_hit(lines, number, places)


def find_written_out(value: str, text: str) -> Iterator[str]:
    """Hidden texts in a field's value that the file holds as escapes, not as characters."""
    if value.isascii():
        return
    for place in _places(value):
        if place.run not in text and (message := hidden_text(place)):
            yield shortened(escaped(message), SHOWN)


def hidden_text(place: _Place) -> str:
    """What a run of tags or selectors spells; empty if it is an emoji or a variant."""
    if tags := "".join(_TAG.findall(place.run)):
        return "".join(chr(ord(tag) & 0x7F) for tag in tags)
    selectors = _SELECTOR.findall(place.run)
    carriers = [one for one in selectors if one not in _PRESENTATION]
    if len(carriers) > 1 or any(_is_odd(one, place.before) for one in carriers):
        return bytes(map(_byte, selectors)).decode("utf-8", "replace")
    return ""


def _places(text: str) -> Iterator[_Place]:
    """Every run of unseen characters, without the tags of emoji flags."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        before = text[start - 1 : start]
        flag = _FLAG_TAGS.match(text, start) if before == BLACK_FLAG else None
        start = flag.end() if flag else start
        if start < end:
            yield _Place(start, text[start:end], before, text[end : end + 1])


def _is_odd(selector: str, before: str) -> bool:
    """Whether no writing has this selector behind that character."""
    if selector > "\uffff":
        return _HAN.match(before) is None
    return before.isascii()


def _byte(selector: str) -> int:
    number = ord(selector)
    return number - 0xFE00 if number <= 0xFE0F else number - 0xE0100 + 16  # noqa: PLR2004


class _Directions:
    """Which parts of a text have letters that run from right to left; each is looked at once."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._known: dict[tuple[int, int], bool] = {}

    def is_right_to_left(self, offset: int) -> bool:
        """Whether such letters stand on the line of a place."""
        key = self._lines.number(offset), offset // MAX_PIECE
        if key not in self._known:
            line = self._lines.whole_line(offset)[1]
            self._known[key] = _RIGHT_TO_LEFT.search(line) is not None
        return self._known[key]


def _is_stray(place: _Place, directions: _Directions) -> bool:
    run = "".join(c for c in place.run if c not in _PRESENTATION)
    if place.start == 0:
        run = run.removeprefix("\ufeff")
    if any(mark in run for mark in _OVERRIDES) or len(run) > _MOST_TOGETHER:
        return bool(run)
    return any(not _is_needed(mark, place, directions) for mark in run if not _SELECTOR.match(mark))


def _is_needed(mark: str, place: _Place, directions: _Directions) -> bool:
    """Whether some writing has this character at that place."""
    if mark in _DIRECTIONS:
        return directions.is_right_to_left(place.start)
    if mark in _JOINERS or mark == _ZERO_WIDTH_SPACE:
        if _COMPLEX.match(place.before) or _COMPLEX.match(place.after):
            return True
        return mark == _EMOJI_JOINER and (_is_emoji(place.before) or _is_emoji(place.after))
    return False


def _is_emoji(character: str) -> bool:
    return bool(character) and unicodedata.category(character) in ("So", "Sk", "Sm")


def _stray_hit(lines: Lines, number: int, places: list[_Place]) -> Hit:
    marks = sorted({f"U+{ord(c):04X}" for place in places for c in place.run})
    start, line = lines.whole_line(places[0].start)
    what = f"unseen characters ({', '.join(marks[:4])})"
    return Hit(
        Code.BIDI_OR_ZERO_WIDTH, what, number, excerpt(masked(line), places[0].start - start)
    )


# C0 but tab and newline (a carriage return is a newline here), delete, and C1.
_CONTROL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f]")
# UTF-8 that was once read as Latin-1: damaged letters, not controls.
_DAMAGED = re.compile("[\u00c2-\u00f4][\u0080-\u00bf]{1,3}")
_PAGE_BREAK = re.compile("^\x0c", re.MULTILINE)


def find_controls(lines: Lines) -> Iterator[Hit]:
    """One hit for each line with control characters, page breaks left out."""
    if _CONTROL.search(lines.text) is None:
        return
    text = _PAGE_BREAK.sub(" ", _DAMAGED.sub(_as_letters, lines.text))
    reported = -1
    for match in _CONTROL.finditer(text):
        number = lines.number(match.start())
        if number != reported:
            reported = number
            start, line = lines.whole_line(match.start())
            shown = excerpt(masked(line), match.start() - start)
            yield Hit(Code.TERMINAL_CONTROL, "a control character", number, shown)


def _as_letters(match: re.Match[str]) -> str:
    return "x" * len(match.group())
