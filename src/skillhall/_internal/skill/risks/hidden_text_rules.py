"""Rules for text that readers do not see: invisible characters, comments, base64.

Legitimate uses of invisible characters are never reported: emoji sequences, flags, ideographic
variants, and the joiners and marks of Arabic, Persian, Hebrew, Indic and South-East Asian scripts.
"""

from __future__ import annotations

import binascii
import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.invisible_characters import BLACK_FLAG, FLAG_TAGS
from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.rule_engine import (
    MAX_EXCERPT_LENGTH,
    MAX_PIECE_LENGTH,
    RuleHit,
    ScannedText,
    build_excerpt,
    escape_invisible,
    truncate,
)
from skillhall._internal.skill.risks.secret_rules import redact_secrets
from skillhall._internal.skill.risks.triggers import with_literals

_INVISIBLE_RUN = re.compile(
    "[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef]+"
)
_TAG = LazyPattern("[\U000e0000-\U000e007f]+")
_SELECTOR = LazyPattern("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_FLAG_TAGS = LazyPattern(FLAG_TAGS)
_DIRECTION_OVERRIDES = "\u202d\u202e"
_DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_JOINERS = "\u200c\u200d"
_EMOJI_JOINER, _ZERO_WIDTH_SPACE, _PRESENTATION_SELECTORS = "\u200d", "\u200b", "\ufe0e\ufe0f"
_RIGHT_TO_LEFT = LazyPattern(
    "[\u05d0-\u05f2\u0620-\u064a\u066e-\u06d3\u06fa-\u088e\ufb1d-\ufdfb\ufe70-\ufefc"
    "\U00010800-\U00010fff\U0001e800-\U0001eeff]"
)
# Scripts that join letters or are written without spaces.
_COMPLEX_SCRIPTS = LazyPattern(
    "[\u0590-\u109f\u1780-\u18af\u1900-\u1cff\u3000-\u30ff\u3400-\u9fff\ua800-\uabff\ufb1d-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_HAN = LazyPattern("[\u2e80-\u2fdf\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MAX_JOINERS = 2  # in one run


class _InvisibleRun(NamedTuple):
    """A run of invisible characters and its neighbors."""

    start: int
    characters: str
    before: str
    after: str


def has_invisible_characters(lines: ScannedText) -> bool:
    """Whether `find_invisible_characters` has anything to check."""
    return _INVISIBLE_RUN.search(lines.unusual) is not None


def find_invisible_characters(lines: ScannedText) -> Iterator[RuleHit]:
    """Find hidden text and stray invisible characters, one hit of each per line."""
    text = lines.text
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
    """Yield excerpts of hidden text that a field's source spells with escapes."""
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
_MOJIBAKE = LazyPattern("[\u00c2-\u00f4][\u0080-\u00bf]{1,3}")
_PAGE_BREAK = LazyPattern("^\x0c", re.MULTILINE)


def has_control_characters(lines: ScannedText) -> bool:
    """Whether `find_control_characters` has anything to check."""
    return _CONTROL.search(lines.unusual) is not None


def find_control_characters(lines: ScannedText) -> Iterator[RuleHit]:
    """Find lines with control characters other than page breaks."""
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


_OPEN, _CLOSE = "<!--", "-->"
COMMENT_TRIGGERS = with_literals({_OPEN: ""})
_FENCE = LazyPattern(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
# Instructions that are never notes to another author: send data, run something from the web, or
# ignore instructions or the user.
_EXTERNAL_DESTINATION = LazyPattern(
    r"\b(?:to|via|through|into)\s[^\n]{0,20}?"
    r"(?:https?://|ftp://|[\w.]{1,40}@[\w-]{1,40}\.\w|webhook|(?:remote|our|external) server)"
)
_SEND_VERB = LazyPattern(
    r"\b(?:send|post|upload|exfiltrate|forward|e-?mail|transmit|leak|submit|report|copy|append"
    r"|paste|include|embed|encode|attach|put|write|share|pass)(?:s|ing)?\b"
)
_MAX_SEND_DISTANCE = 100  # characters between the verb and the destination
_SECRETS = LazyPattern(
    r"\.env\b|\.ssh\b|\.aws\b|\bid_rsa\b|\bsecrets?\b|\bpasswords?\b|\bcredentials?\b|\bcookies?\b"
    r"|\btokens?\b(?!\s(?:page|name|count|limit|budget|usage|type))|\benvironment variables?\b"
    r"|\b(?:api|private|access|ssh)[ _-]keys?\b|\bwallets?\b|\bsystem prompt\b|\bfile contents?\b"
    r"|\b(?:chat|conversation|message) (?:history|log)\b|\bsource code\b"
)
_RUN_VERB = LazyPattern(
    r"\b(?:run|execute|install|download|fetch|curl|wget|load|read|open|visit|follow|call)\b"
)
_REMOTE_CODE = LazyPattern(
    r"\b(?:curl|wget|npx|pipx?|npm|bash|sh|powershell|iex)\b[^\n]{0,80}https?://"
    r"|https?://\S{1,200}\.(?:sh|ps1|py|js|exe|md|txt)\b|\|\s{0,4}(?:ba|z)?sh\b|\brm\s+-rf\b"
)
_INSTRUCTION_OVERRIDE = LazyPattern(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}\b(?:instructions?|rules|prompts?"
    r"|guidelines|safety|everything|warnings?|approvals?|confirmations?|polic(?:y|ies))\b"
    r"|\b(?:do not|don['’]t|never|without)\s+(?:tell|inform|mention|show|notify|reveal|ask|alert)"
    r"(?:ing)?\s+(?:this|the user|users?|anyone|it|them)\b|\bpretend\b|\b(?:act|behave) as\b"
)
_ADDRESSES_AGENT = LazyPattern(
    r"\b(?:you must|you should|you are|assistants?|agents?|the model|ai|llms?|claude|gpt|copilot"
    r"|gemini|important|system|when the user|if the user|whenever)\b"
)
# Notes to other authors, and directives for tools.
_AUTHOR_NOTE = LazyPattern(
    r"[\s\W]{0,20}(?:todo|fixme|markdownlint|prettier|eslint|textlint|vale|toc|cspell|optional"
    r"|replace|fill|insert|describe|delete this|remove this|example|template|generated"
    r"|auto-?generated|do not edit|source|see|begin|end|start|keep|customi[sz]e|add|list|edit"
    r"|placeholder|license|spdx|copyright|vim|omit|if you|when you|for each|use this|adapt|update"
    r"|change|note for|notes? to (?:the )?(?:author|maintainer|editor|contributor)s?)\b"
)
_WORDS = LazyPattern(r"[a-z0-9]+")
_MIN_WORDS = 4


def find_hidden_comments(lines: ScannedText) -> Iterator[RuleHit]:
    """Find comments with instructions that the visible text does not repeat."""
    comments = list(_find_comments(lines.lower))
    parts, at = [], 0
    for start, end in comments:
        parts.append(lines.lower[at:start])
        at = end
    visible = _normalize_words(" ".join([*parts, lines.lower[at:]]))
    for start, end in comments:
        inner = lines.lower[start + len(_OPEN) : end][:MAX_PIECE_LENGTH]
        if _is_instruction(inner) and _normalize_words(inner) not in visible:
            text = lines.text[start : min(end + len(_CLOSE), start + MAX_PIECE_LENGTH)]
            shown = build_excerpt(redact_secrets(text))
            number = lines.find_line_number(start)
            yield RuleHit(Code.HIDDEN_COMMENT, "hidden comment", number, shown)


def _is_instruction(comment: str) -> bool:
    if len(comment.split()) < _MIN_WORDS:
        return False
    # Whether it says to send something to an external destination.
    sends = any(
        _SEND_VERB.search(comment, max(0, match.start() - _MAX_SEND_DISTANCE), match.start())
        for match in _EXTERNAL_DESTINATION.finditer(comment)
    )
    secrets = _SECRETS.search(comment) is not None
    if sends and secrets:
        return True
    if _AUTHOR_NOTE.match(comment) is not None:
        return False
    if _INSTRUCTION_OVERRIDE.search(comment) or (
        _RUN_VERB.search(comment) and _REMOTE_CODE.search(comment)
    ):
        return True
    acts = sends or (secrets and _RUN_VERB.search(comment) is not None)
    return acts and _ADDRESSES_AGENT.search(comment) is not None


def _find_comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each comment outside fenced code."""
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
            # Fences inside a comment do not count.
            while passed < len(fences) and fences[passed] < end:
                del fences[passed]
        at = text.find(_OPEN, end if passed % 2 == 0 else at + 1)


def _normalize_words(text: str) -> str:
    return " ".join(_WORDS.findall(text))


_MAX_DECODED_LENGTH = 4000  # characters of a run that are decoded
_RUN_CHARACTERS = f"{string.ascii_letters}{string.digits}+/".encode()
_TO_RUNS = bytes(ord("x" if byte in _RUN_CHARACTERS else " ") for byte in range(256))
_SHORTEST_RUN = b"x" * 40  # that `_RUN` matches
_RUN = LazyPattern(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40,}+={0,2}")
# Two or more long lines, and a last one that may be shorter.
_WRAPPED = LazyPattern(
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
_COMMAND = LazyPattern(
    r"\b(?:curl|wget|iwr|irm|nc|ncat)\s[^\n]{0,200}(?:https?://|[0-9]{1,3}\.[0-9]{1,3}\.)"
    r"|/bin/(?:ba|z)?sh\b|\|\s{0,4}(?:ba|z)?sh\b|\b(?:ba|z)?sh\s+-c\b|/dev/tcp/"
    r"|\bos\.system\(|\bsubprocess\.|\bexec\(|\beval\(|(?i:invoke-expression|downloadstring)"
)


def has_base64_run(lines: ScannedText) -> bool:
    """Whether the text has a run that is long enough for `find_base64`."""
    if _SHORTEST_RUN not in lines.value_shape:
        return False
    # URLs are long too, but have other characters.
    return _SHORTEST_RUN in lines.encoded.translate(_TO_RUNS)


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
