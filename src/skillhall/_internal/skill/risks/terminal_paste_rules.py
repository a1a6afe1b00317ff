"""People who are asked to paste a command into a terminal: how "ClickFix" attacks begin.

Manuals ask for it as well. What tells them apart is the command: in a manual it can be read, and
it neither downloads nor decodes anything.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.known_installers import has_only_known_installers
from skillhall._internal.skill.risks.lines import Piece, RiskRule, RuleMatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillhall._internal.skill.risks.lines import RuleHit, ScannedText

_LINES_BELOW = 12  # lines after the request that may contain its command
_LINES_ABOVE = 8  # lines before it: "copy the above and paste it"
_MAX_REQUESTS = 100  # requests of one file that are looked at
_RULE = RiskRule(
    Code.PASTE_INTO_TERMINAL, "a person is asked to paste a command", (), lambda _: None
)
_PASTE_REQUEST = re.compile(
    r"\bpast(?:e|ing)\b[^.\n]{0,60}\bin(?:to|side)?\s{1,3}"
    r"(?:the |your |a |an? open )?(?:\w{1,12} ){0,2}"
    r"(?:terminal|command prompt|command line|powershell|cmd|run (?:box|dialog))\b"
)
_VISIBLE_COMMAND = re.compile(r"```|~~~|`[^`\n]{3,}`|^ {4,}\S|^\s{0,8}\$ ", re.MULTILINE)
_DOWNLOAD_OR_DECODE = re.compile(
    r"\b(?:iex|invoke-expression|mshta|certutil|bitsadmin|osascript)\b|frombase64string"
    r"|\bbase64\s{1,4}(?:-d\b|--decode\b)|\s-e(?:nc|ncodedcommand)\s|\|\s{0,4}(?:ba|z)?sh\b"
    r"|\b(?:ba|z)?sh\s{1,4}(?:-c\s{1,4})?[\"']?(?:<\(|\$\()\s{0,4}(?:curl|wget)\b"
)
_REMOTE_URL = re.compile(r"https?://(?!localhost|127\.)")


def find_paste_requests(lines: ScannedText, is_mention: Callable[[int], bool]) -> Iterator[RuleHit]:
    """Requests to paste a command that cannot be read here, or that brings something along."""
    text = lines.lower
    if "past" not in text:
        return
    for match in islice(_PASTE_REQUEST.finditer(text), _MAX_REQUESTS):
        above = _lines_before(text, match.start())
        below = "\n".join(text[match.end() : match.end() + 4000].split("\n")[:_LINES_BELOW])
        shown = _VISIBLE_COMMAND.search(below) or _VISIBLE_COMMAND.search(above)
        command = f"{above}\n{below}"
        if shown is None and not (_REMOTE_URL.search(command) or _names_command(match.group())):
            continue
        if shown is not None and not any(map(_downloads_or_decodes, command.split("\n"))):
            continue
        start, line = lines.read_line(match.start())
        found = RuleMatch(match.start(), Piece(start, line, line))
        yield lines.build_hit(_RULE, found, is_mention=is_mention(match.start()))


def _downloads_or_decodes(line: str) -> bool:
    return _DOWNLOAD_OR_DECODE.search(line) is not None and not has_only_known_installers(line)


def _names_command(request: str) -> bool:
    """Whether it speaks of a command, and not of some text."""
    return re.search(r"\b(?:it|command|this|that|them|script|line)\b", request) is not None


def _lines_before(text: str, at: int) -> str:
    return "\n".join(text[max(0, at - 2000) : at].split("\n")[-_LINES_ABOVE:])
