"""Rule for requests to paste a command into a terminal, as "ClickFix" attacks do.

Manuals make such requests too. But in a manual the command is visible, and it neither downloads nor
decodes anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.known_installers import has_only_known_installers
from skillhall._internal.skill.risks.rule_engine import RiskRule, RuleHit, ScannedText

_LINES_BELOW = 12  # lines after the request that may contain its command
_LINES_ABOVE = 8  # lines before it: "copy the above and paste it"
_MAX_REQUESTS = 100  # of one file
_DESCRIPTION = "asks the user to paste a command"
_RULE = RiskRule(Code.PASTE_INTO_TERMINAL, _DESCRIPTION, (), lambda _: None)
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
# The request is about a command, and not about some text.
_COMMAND_WORD = re.compile(r"\b(?:it|command|this|that|them|script|line)\b")
_REMOTE_URL = re.compile(r"https?://(?!localhost|127\.)")


def find_paste_requests(lines: ScannedText, is_mention: Callable[[int], bool]) -> Iterator[RuleHit]:
    """Find requests to paste a command that is hidden, or downloads or decodes data."""
    text = lines.lower
    if "past" not in text:
        return
    for match in islice(_PASTE_REQUEST.finditer(text), _MAX_REQUESTS):
        # The slices bound the work on files with very long lines.
        above = text[max(0, match.start() - 2000) : match.start()]
        above = "\n".join(above.split("\n")[-_LINES_ABOVE:])
        below = "\n".join(text[match.end() : match.end() + 4000].split("\n")[:_LINES_BELOW])
        visible = _VISIBLE_COMMAND.search(below) or _VISIBLE_COMMAND.search(above)
        context = f"{above}\n{below}"
        if visible is None:
            is_risky = bool(_REMOTE_URL.search(context) or _COMMAND_WORD.search(match.group()))
        else:
            is_risky = any(
                _DOWNLOAD_OR_DECODE.search(line) and not has_only_known_installers(line)
                for line in context.split("\n")
            )
        if not is_risky:
            continue
        yield lines.build_hit(_RULE, match.start(), is_mention=is_mention(match.start()))
