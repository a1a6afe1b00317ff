"""Rules for base64: encoded commands and long strings."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.excerpt import MAX_EXCERPT_LENGTH, escape_invisible, truncate
from skillhall._internal.skill.risks.rule_engine import RuleHit, ScannedText

_MAX_DECODED_LENGTH = 4000  # characters of a run that are decoded
_RUN = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40,}+={0,2}")
# Two or more long lines, and a last one that may be shorter.
_WRAPPED = re.compile(
    r"(?m)^[ \t]{0,12}[A-Za-z0-9+/]{60,100}$(?:\n[ \t]{0,12}[A-Za-z0-9+/]{60,100}$){1,2000}+"
    r"(?:\n[ \t]{0,12}[A-Za-z0-9+/]{2,100}={0,2}$)?"
)
_MAX_HEADER_DISTANCE = 120  # characters between a "BEGIN" header and its run
_LONG_RUN_LENGTH = 400  # characters (300 bytes) from which any run is reported
_EXCERPT_LENGTH = 12
# Prefixes of images, fonts and package digests.
_HARMLESS_PREFIXES = ("base64,", "sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "sha512:")
_MAX_PREFIX_LENGTH = 8
# Hex digests, protein sequences and words.
_NOT_BASE64 = re.compile(r"[0-9a-f]+|[0-9A-F]+|[A-Z]+|[a-z]+|[0-9]+")
_COMMAND = re.compile(
    r"\b(?:curl|wget|iwr|irm|nc|ncat)\s[^\n]{0,200}(?:https?://|[0-9]{1,3}\.[0-9]{1,3}\.)"
    r"|/bin/(?:ba|z)?sh\b|\|\s{0,4}(?:ba|z)?sh\b|\b(?:ba|z)?sh\s+-c\b|/dev/tcp/"
    r"|\bos\.system\(|\bsubprocess\.|\bexec\(|\beval\(|(?i:invoke-expression|downloadstring)"
)


def find_base64(lines: ScannedText) -> Iterator[RuleHit]:
    """Find base64 that decodes to a command, and other long base64 strings."""
    for start, run in _find_runs(lines):
        number = lines.find_line_number(start)
        digits = run[:_MAX_DECODED_LENGTH].rstrip("=")
        data = binascii.a2b_base64(digits[: len(digits) // 4 * 4])
        # PowerShell encodes commands as UTF-16.
        is_wide = data[1::2].count(0) * 2 >= len(data) - 1
        decoded = data.decode("utf-16-le" if is_wide else "utf-8", "ignore")
        if (command := _COMMAND.search(decoded)) is not None:
            excerpt = decoded[max(0, command.start() - 8) :][: MAX_EXCERPT_LENGTH * 2]
            shown = truncate(escape_invisible(excerpt))
            yield RuleHit(Code.DECODE_AND_RUN, "base64 that encodes a command", number, shown)
        elif len(run) >= _LONG_RUN_LENGTH:
            shown = f"{run[:_EXCERPT_LENGTH]}… ({len(run)} characters)"
            yield RuleHit(Code.LONG_BASE64, "long base64 string", number, shown)


def _find_runs(lines: ScannedText) -> Iterator[tuple[int, str]]:
    for match in _RUN.finditer(lines.text):
        before = lines.text[max(0, match.start() - _MAX_PREFIX_LENGTH) : match.start()]
        if not before.endswith(_HARMLESS_PREFIXES) and not _NOT_BASE64.fullmatch(match.group()):
            yield match.start(), match.group()
    # Runs over several lines, as `base64` prints them.
    for match in _WRAPPED.finditer(lines.text):
        above = lines.text[max(0, match.start() - _MAX_HEADER_DISTANCE) : match.start()]
        run = "".join(match.group().split())
        # Certificates and keys have a header. `secret_rules` reports private keys.
        if "-----BEGIN " not in above and not _NOT_BASE64.fullmatch(run):
            yield match.start(), run
