"""Control characters: escape sequences and the like, which a terminal obeys and no reader sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.excerpt import excerpt
from skillhall._internal.skill.risks.lines import Hit, Lines
from skillhall._internal.skill.risks.secret_rules import masked

if TYPE_CHECKING:
    from collections.abc import Iterator

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
