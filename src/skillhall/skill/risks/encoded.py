"""Commands that stand in a text as base64, where nobody reads them."""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING

from skillhall.skill.finding import Code
from skillhall.skill.risks.excerpts import SHOWN, escaped, shortened
from skillhall.skill.risks.lines import Hit, Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_RUN = 4000  # characters of a run that are decoded
_RUN = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40,}+={0,2}")
# What stands before a picture, a font or the digest of a package.
_HARMLESS_BEFORE = ("base64,", "sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "sha512:")
_BEFORE = 8
_PLAIN = re.compile(r"[0-9a-f]+|[0-9A-F]+|[A-Z]+|[a-z]+|[0-9]+")  # numbers, proteins, words
_COMMAND = re.compile(
    r"\b(?:curl|wget|iwr|irm|nc|ncat)\s[^\n]{0,200}(?:https?://|[0-9]{1,3}\.[0-9]{1,3}\.)"
    r"|/bin/(?:ba|z)?sh\b|\|\s{0,4}(?:ba|z)?sh\b|\b(?:ba|z)?sh\s+-c\b|/dev/tcp/"
    r"|\bos\.system\(|\bsubprocess\.|\bexec\(|\beval\(|(?i:invoke-expression|downloadstring)"
)


def find_encoded(lines: Lines) -> Iterator[Hit]:
    """Runs of base64 that decode to a command."""
    for match in _RUN.finditer(lines.text):
        before = lines.text[max(0, match.start() - _BEFORE) : match.start()]
        if before.endswith(_HARMLESS_BEFORE) or _PLAIN.fullmatch(match.group()):
            continue
        decoded = _decoded(match.group()[:_MAX_RUN])
        if (command := _COMMAND.search(decoded)) is not None:
            shown = shortened(escaped(decoded[max(0, command.start() - 8) :][: SHOWN * 2]))
            number = lines.number(match.start())
            yield Hit(Code.DECODE_AND_RUN, "base64 that spells a command", number, shown)


def _decoded(run: str) -> str:
    """The text that a run spells, as far as it spells one."""
    digits = run.rstrip("=")
    data = binascii.a2b_base64(digits[: len(digits) // 4 * 4])
    # PowerShell encodes two bytes for a character.
    is_wide = data[1::2].count(0) * 2 >= len(data) - 1
    return data.decode("utf-16-le" if is_wide else "utf-8", "ignore")
