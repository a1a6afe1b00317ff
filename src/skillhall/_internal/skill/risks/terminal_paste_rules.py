"""People who are asked to paste a command into a terminal: how "ClickFix" attacks begin.

Manuals ask for it as well. What tells them apart is the command: in a manual it can be read, and
it neither downloads nor decodes anything.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.known_installers import is_well_known
from skillhall._internal.skill.risks.lines import Found, Piece, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillhall._internal.skill.risks.lines import Hit, Lines

_WINDOW = 12  # lines after the request that may contain its command
_ABOVE = 8  # lines before it: "copy the above and paste it"
_MANY = 100  # requests of one file that are looked at
_RULE = Rule(Code.PASTE_INTO_TERMINAL, "a person is asked to paste a command", (), lambda _: None)
_ASKS = re.compile(
    r"\bpast(?:e|ing)\b[^.\n]{0,60}\bin(?:to|side)?\s{1,3}"
    r"(?:the |your |a |an? open )?(?:\w{1,12} ){0,2}"
    r"(?:terminal|command prompt|command line|powershell|cmd|run (?:box|dialog))\b"
)
_SHOWN = re.compile(r"```|~~~|`[^`\n]{3,}`|^ {4,}\S|^\s{0,8}\$ ", re.MULTILINE)
_FROM_ELSEWHERE = re.compile(
    r"\b(?:iex|invoke-expression|mshta|certutil|bitsadmin|osascript)\b|frombase64string"
    r"|\bbase64\s{1,4}(?:-d\b|--decode\b)|\s-e(?:nc|ncodedcommand)\s|\|\s{0,4}(?:ba|z)?sh\b"
    r"|\b(?:ba|z)?sh\s{1,4}(?:-c\s{1,4})?[\"']?(?:<\(|\$\()\s{0,4}(?:curl|wget)\b"
)
_PAGE = re.compile(r"https?://(?!localhost|127\.)")


def find_pasting(lines: Lines, is_mention: Callable[[int], bool]) -> Iterator[Hit]:
    """Requests to paste a command that cannot be read here, or that brings something along."""
    text = lines.lower
    if "past" not in text:
        return
    for match in islice(_ASKS.finditer(text), _MANY):
        above = _lines_before(text, match.start())
        below = "\n".join(text[match.end() : match.end() + 4000].split("\n")[:_WINDOW])
        shown = _SHOWN.search(below) or _SHOWN.search(above)
        command = f"{above}\n{below}"
        if shown is None and not (_PAGE.search(command) or _is_unseen(match.group())):
            continue
        if shown is not None and not any(map(_brings_something, command.split("\n"))):
            continue
        start, line = lines.whole_line(match.start())
        found = Found(match.start(), Piece(start, line, line))
        yield lines.hit(_RULE, found, is_mention=is_mention(match.start()))


def _brings_something(line: str) -> bool:
    return _FROM_ELSEWHERE.search(line) is not None and not is_well_known(line)


def _is_unseen(request: str) -> bool:
    """Whether it speaks of a command, and not of some text."""
    return re.search(r"\b(?:it|command|this|that|them|script|line)\b", request) is not None


def _lines_before(text: str, at: int) -> str:
    return "\n".join(text[max(0, at - 2000) : at].split("\n")[-_ABOVE:])
