"""The static scan: findings about risky content in the files of a skill. It never blocks one."""

from __future__ import annotations

import hashlib
import unicodedata
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.skill.risks.base64_rules import find_encoded
from skillhall._internal.skill.risks.bundle_rules import (
    SCRIPTS,
    check_package,
    is_dropped_link,
    named,
)
from skillhall._internal.skill.risks.command_rules import COMMANDS
from skillhall._internal.skill.risks.exfiltration_rules import find_archives_sent
from skillhall._internal.skill.risks.hidden_comments import find_hidden_comments
from skillhall._internal.skill.risks.lines import Hit, Lines, words
from skillhall._internal.skill.risks.mentions import Surroundings
from skillhall._internal.skill.risks.phrase_rules import LINKS, PHRASES
from skillhall._internal.skill.risks.remote_instruction_rules import find_remote_instructions
from skillhall._internal.skill.risks.secret_rules import find_secrets
from skillhall._internal.skill.risks.terminal_paste_rules import find_pasting
from skillhall._internal.skill.risks.tiers import TIERS, Tier
from skillhall._internal.skill.risks.unicode_rules import (
    find_controls,
    find_unseen,
    find_written_out,
)
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.parsed import Frontmatter
    from skillhall._internal.skill.risks.lines import Rule
    from skillhall._internal.skill.yaml.values import Value

MAX_FILE = 1024 * 1024  # bytes of one file
MAX_TOTAL = 16 * 1024 * 1024  # bytes of all files of a skill
MAX_SAME = 5  # findings of one code in one file; the last one says how many more there are
_HEAD = 8192  # bytes in which a file that is not text shows it
_MARKDOWN = (".md", ".mdx", ".markdown")
_TEXTS = (*_MARKDOWN, *SCRIPTS, *words(".txt .json .yaml .yml .toml .xml .html .csv"))
# Files that are large by nature, and that nobody reads as text.
_MEDIA = words(
    ".png .jpg .jpeg .gif .webp .ico .bmp .tiff .svgz .pdf .ttf .otf .woff .woff2 .eot .mp3 .mp4"
    " .wav .ogg .mov .webm .zip .gz .tgz .7z .rar .xz .bz2 .docx .xlsx .pptx .db .sqlite .onnx .npy"
)


def scan_bundle(bundle: Bundle, front: Frontmatter) -> tuple[Finding, ...]:
    """Everything risky in a skill, by path, line and code; paths are relative to its folder."""
    reading = _read(bundle)
    groups = [_Group(path, _scan_file(path, data, front)) for path, data in reading.texts.items()]
    findings = [
        *check_package(bundle, reading.heads, front),
        *(finding for group in groups for finding in group.told()),
        *_once_for_all(groups),
    ]
    if reading.unread:
        message = f"too large or unreadable, not looked at: {named(reading.unread)}"
        findings.append(Finding(Code.SCAN_INCOMPLETE, message, hint="look at them yourself"))
    return tuple(sorted(findings, key=_place))


def finding_id(found: Finding) -> str:
    """What a finding is known by when a person dismisses it: it outlives moved lines.

    The path is the one that `scan_bundle` gives, relative to the skill's folder.
    """
    told = found.message.partition(": ")[2]
    normal = " ".join(unicodedata.normalize("NFC", told).casefold().split())
    key = f"{found.code.value}\0{found.path}\0{normal}"
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _place(found: Finding) -> tuple[str, int, str, str]:
    return found.path, found.line or 0, found.code.value, found.message


class _Reading(NamedTuple):
    """The files of a bundle as far as they were read."""

    heads: dict[str, bytes]
    texts: dict[str, bytes]
    unread: list[str]


def _read(bundle: Bundle) -> _Reading:
    reading, left = _Reading({}, {}, []), MAX_TOTAL
    for path, file in bundle.files.items():
        data = _bytes(file, min(left, MAX_FILE))
        if data is None:
            reading.unread.extend(_worth_telling(path))
            continue
        left -= len(data)
        reading.heads[path] = head = data[:_HEAD]
        if _is_text(path, head):
            reading.texts[path] = data
    reading.unread.extend(_left_out(bundle))
    return reading


def _is_text(path: str, head: bytes) -> bool:
    # A shell runs a script in spite of a NUL byte; such a byte must not hide it.
    return b"\0" not in head or head.startswith(b"#!") or path.lower().endswith(_TEXTS)


def _left_out(bundle: Bundle) -> Iterator[str]:
    """What the listing of the files left out; links have a finding of their own."""
    for found in bundle.findings:
        if not is_dropped_link(found):
            yield from _worth_telling(found.path or found.message)


def _worth_telling(path: str) -> Iterator[str]:
    """A file that was not looked at; why a SKILL.md cannot be read is told by whoever parses it."""
    if not is_skill_md(path) and not path.lower().endswith(_MEDIA):
        yield path


def _bytes(file: SkillFile, at_most: int) -> bytes | None:
    if file.size > at_most:
        return None
    try:
        data = file.read()
    except SkillhallError:
        return None
    return data if len(data) <= at_most else None


def _scan_file(path: str, data: bytes, front: Frontmatter) -> Iterator[Hit]:
    # One byte that is not UTF-8 would otherwise hide a script, which its shell runs all the same.
    text = (
        data.replace(b"\0", b"")
        .decode("utf-8", "replace")
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )
    lines = Lines(unicodedata.normalize("NFC", text))
    yield from find_unseen(lines)
    if is_skill_md(path):
        yield from _check_values(front, lines.text)
    if not data.count(b"\0") and _is_surely_text(path, text):
        yield from find_controls(lines)
    is_markdown = path.lower().endswith(_MARKDOWN)
    around = Surroundings(lines, path, is_markdown=is_markdown)
    is_shown, is_cited = (partial(around.is_mention, spoken=one) for one in (False, True))
    for rule in (*COMMANDS, *LINKS):
        if is_markdown or not rule.markdown_only:
            yield from lines.apply(rule, is_shown if _raises_alarm(rule) else _is_used)
    yield from find_archives_sent(lines, is_shown)
    flowing = lines.flowing() if is_markdown else lines
    for rule in PHRASES:
        yield from flowing.apply(rule, is_cited)
    is_prose = not path.lower().endswith(SCRIPTS)
    yield from find_remote_instructions(lines, is_cited, is_prose=is_prose)
    yield from find_pasting(lines, is_cited)
    yield from find_encoded(lines)
    if is_markdown:
        yield from find_hidden_comments(lines)
    for secret in find_secrets(lines):
        number = lines.number(secret.start)
        yield Hit(Code.HARDCODED_SECRET, "what looks like a live secret", number, secret.shown)


def _raises_alarm(rule: Rule) -> bool:
    return TIERS[rule.code] is not Tier.INFO


def _is_used(_: int) -> bool:
    """Information is information, whether it is used or mentioned."""
    return False


def _is_surely_text(path: str, text: str) -> bool:
    """Whether a file is text by its name or by all its bytes; not a picture or a program."""
    name = path.lower()
    return name.endswith(_TEXTS) or ("\ufffd" not in text and not name.endswith(_MEDIA))


def _check_values(front: Frontmatter, text: str) -> Iterator[Hit]:
    for value in _texts(front.fields):
        for shown in find_written_out(value, text):
            yield Hit(Code.HIDDEN_UNICODE, "escapes in a field spell an unseen text", 1, shown)


def _texts(value: Value | dict[str, Value]) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


class _Group:
    """What was found in one file: the first few of each code, and how many in all."""

    def __init__(self, path: str, hits: Iterable[Hit]) -> None:
        self.path = path
        self.first: dict[Code, dict[str, Hit]] = {}
        self.counts: dict[Code, int] = {}
        for hit in hits:
            kept = self.first.setdefault(hit.code, {})
            self.counts[hit.code] = self.counts.get(hit.code, 0) + 1
            known = kept.get(hit.excerpt)
            if known is not None and hit.line < known.line:
                kept[hit.excerpt] = hit
            elif len(kept) < MAX_SAME:
                kept.setdefault(hit.excerpt, hit)

    def told(self) -> Iterator[Finding]:
        """A finding for each of the first hits; codes that are only information wait."""
        for code, kept in self.first.items():
            if TIERS[code] is Tier.INFO:
                continue
            left = self.counts[code] - len(kept)
            for number, hit in enumerate(kept.values(), start=1):
                hint = _more(left, "in this file") if number == len(kept) else ""
                yield _finding(hit, self.path, hint)


def _once_for_all(groups: list[_Group]) -> Iterator[Finding]:
    """One finding for each code that is only information: its first place, and how many more."""
    firsts: dict[Code, tuple[Hit, str]] = {}
    counts: dict[Code, int] = {}
    for group in groups:
        for code, kept in group.first.items():
            if TIERS[code] is Tier.INFO:
                counts[code] = counts.get(code, 0) + group.counts[code]
                firsts.setdefault(code, (min(kept.values(), key=_line), group.path))
    for code, (hit, path) in firsts.items():
        yield _finding(hit, path, _more(counts[code] - 1, "in this skill"))


def _line(hit: Hit) -> int:
    return hit.line


def _more(count: int, where: str) -> str:
    return f"{count} more {where}" if count > 0 else ""


def _finding(hit: Hit, path: str, hint: str) -> Finding:
    return Finding(hit.code, f"{hit.what}: {hit.excerpt}", hit.line, hint, path)
