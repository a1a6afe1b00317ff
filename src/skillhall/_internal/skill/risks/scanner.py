"""The static scan: findings about risky content in the files of a skill. It never blocks one."""

from __future__ import annotations

import hashlib
import unicodedata
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.skill.risks.base64_rules import find_base64
from skillhall._internal.skill.risks.bundle_rules import (
    SCRIPT_EXTENSIONS,
    check_bundle,
    format_names,
    is_dropped_link,
)
from skillhall._internal.skill.risks.command_rules import COMMAND_RULES
from skillhall._internal.skill.risks.exfiltration_rules import find_sent_archives
from skillhall._internal.skill.risks.hidden_comments import find_hidden_comments
from skillhall._internal.skill.risks.lines import RuleHit, ScannedText, split_words
from skillhall._internal.skill.risks.mentions import MentionDetector
from skillhall._internal.skill.risks.phrase_rules import LINK_RULES, PHRASE_RULES
from skillhall._internal.skill.risks.remote_instruction_rules import find_remote_instructions
from skillhall._internal.skill.risks.secret_rules import find_secrets
from skillhall._internal.skill.risks.terminal_paste_rules import find_paste_requests
from skillhall._internal.skill.risks.tiers import TIERS, Tier
from skillhall._internal.skill.risks.unicode_rules import (
    find_control_characters,
    find_escaped_hidden_text,
    find_invisible_characters,
)
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.parsed import Frontmatter
    from skillhall._internal.skill.risks.lines import RiskRule
    from skillhall._internal.skill.yaml.values import YamlValue

MAX_FILE_BYTES = 1024 * 1024  # bytes of one file
MAX_TOTAL_BYTES = 16 * 1024 * 1024  # bytes of all files of a skill
MAX_FINDINGS_PER_CODE = (
    5  # findings of one code in one file; the last one says how many more there are
)
_HEAD_BYTES = 8192  # bytes in which a file that is not text shows it
_MARKDOWN = (".md", ".mdx", ".markdown")
_TEXT_EXTENSIONS = (
    *_MARKDOWN,
    *SCRIPT_EXTENSIONS,
    *split_words(".txt .json .yaml .yml .toml .xml .html .csv"),
)
# Files that are large by nature, and that nobody reads as text.
_MEDIA_EXTENSIONS = split_words(
    ".png .jpg .jpeg .gif .webp .ico .bmp .tiff .svgz .pdf .ttf .otf .woff .woff2 .eot .mp3 .mp4"
    " .wav .ogg .mov .webm .zip .gz .tgz .7z .rar .xz .bz2 .docx .xlsx .pptx .db .sqlite .onnx .npy"
)


def scan_bundle(bundle: Bundle, front: Frontmatter) -> tuple[Finding, ...]:
    """Everything risky in a skill, by path, line and code; paths are relative to its folder."""
    reading = _read_files(bundle)
    groups = [
        _FileHits(path, _scan_file(path, data, front)) for path, data in reading.texts.items()
    ]
    findings = [
        *check_bundle(bundle, reading.heads, front),
        *(finding for group in groups for finding in group.build_findings()),
        *_build_info_findings(groups),
    ]
    if reading.unread:
        message = f"too large or unreadable, not looked at: {format_names(reading.unread)}"
        findings.append(Finding(Code.SCAN_INCOMPLETE, message, hint="look at them yourself"))
    return tuple(sorted(findings, key=_sort_key))


def finding_id(finding: Finding) -> str:
    """What a finding is known by when a person dismisses it: it outlives moved lines.

    The path is the one that `scan_bundle` gives, relative to the skill's folder.
    """
    told = finding.message.partition(": ")[2]
    normal = " ".join(unicodedata.normalize("NFC", told).casefold().split())
    key = f"{finding.code.value}\0{finding.path}\0{normal}"
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _sort_key(found: Finding) -> tuple[str, int, str, str]:
    return found.path, found.line or 0, found.code.value, found.message


class _FilesRead(NamedTuple):
    """The files of a bundle as far as they were read."""

    heads: dict[str, bytes]
    texts: dict[str, bytes]
    unread: list[str]


def _read_files(bundle: Bundle) -> _FilesRead:
    reading, left = _FilesRead({}, {}, []), MAX_TOTAL_BYTES
    for path, file in bundle.files.items():
        data = _read_bytes(file, min(left, MAX_FILE_BYTES))
        if data is None:
            reading.unread.extend(_filter_reportable(path))
            continue
        left -= len(data)
        reading.heads[path] = head = data[:_HEAD_BYTES]
        if _is_text(path, head):
            reading.texts[path] = data
    reading.unread.extend(_find_omitted_files(bundle))
    return reading


def _is_text(path: str, head: bytes) -> bool:
    # A shell runs a script in spite of a NUL byte; such a byte must not hide it.
    return b"\0" not in head or head.startswith(b"#!") or path.lower().endswith(_TEXT_EXTENSIONS)


def _find_omitted_files(bundle: Bundle) -> Iterator[str]:
    """What the listing of the files left out; links have a finding of their own."""
    for found in bundle.findings:
        if not is_dropped_link(found):
            yield from _filter_reportable(found.path or found.message)


def _filter_reportable(path: str) -> Iterator[str]:
    """A file that was not looked at; why a SKILL.md cannot be read is told by whoever parses it."""
    if not is_skill_md(path) and not path.lower().endswith(_MEDIA_EXTENSIONS):
        yield path


def _read_bytes(file: SkillFile, limit: int) -> bytes | None:
    if file.size > limit:
        return None
    try:
        data = file.read()
    except SkillhallError:
        return None
    return data if len(data) <= limit else None


def _scan_file(path: str, data: bytes, front: Frontmatter) -> Iterator[RuleHit]:
    # One byte that is not UTF-8 would otherwise hide a script, which its shell runs all the same.
    text = (
        data.replace(b"\0", b"")
        .decode("utf-8", "replace")
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )
    lines = ScannedText(unicodedata.normalize("NFC", text))
    yield from find_invisible_characters(lines)
    if is_skill_md(path):
        yield from _check_field_values(front, lines.text)
    if not data.count(b"\0") and _is_known_text(path, text):
        yield from find_control_characters(lines)
    is_markdown = path.lower().endswith(_MARKDOWN)
    around = MentionDetector(lines, path, is_markdown=is_markdown)
    is_shown, is_cited = (partial(around.is_mention, is_phrase=one) for one in (False, True))
    for rule in (*COMMAND_RULES, *LINK_RULES):
        if is_markdown or not rule.is_markdown_only:
            yield from lines.apply_rule(rule, is_shown if _is_above_info(rule) else _never_mention)
    yield from find_sent_archives(lines, is_shown)
    flowing = lines.join_paragraphs() if is_markdown else lines
    for rule in PHRASE_RULES:
        yield from flowing.apply_rule(rule, is_cited)
    is_prose = not path.lower().endswith(SCRIPT_EXTENSIONS)
    yield from find_remote_instructions(lines, is_cited, is_prose=is_prose)
    yield from find_paste_requests(lines, is_cited)
    yield from find_base64(lines)
    if is_markdown:
        yield from find_hidden_comments(lines)
    for secret in find_secrets(lines):
        number = lines.find_line_number(secret.start)
        yield RuleHit(
            Code.HARDCODED_SECRET, "what looks like a live secret", number, secret.preview
        )


def _is_above_info(rule: RiskRule) -> bool:
    return TIERS[rule.code] is not Tier.INFO


def _never_mention(_: int) -> bool:
    """Information is information, whether it is used or mentioned."""
    return False


def _is_known_text(path: str, text: str) -> bool:
    """Whether a file is text by its name or by all its bytes; not a picture or a program."""
    name = path.lower()
    return name.endswith(_TEXT_EXTENSIONS) or (
        "\ufffd" not in text and not name.endswith(_MEDIA_EXTENSIONS)
    )


def _check_field_values(front: Frontmatter, text: str) -> Iterator[RuleHit]:
    for value in _iterate_strings(front.fields):
        for shown in find_escaped_hidden_text(value, text):
            yield RuleHit(Code.HIDDEN_UNICODE, "escapes in a field spell an unseen text", 1, shown)


def _iterate_strings(value: YamlValue | dict[str, YamlValue]) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _iterate_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_strings(item)


class _FileHits:
    """What was found in one file: the first few of each code, and how many in all."""

    def __init__(self, path: str, hits: Iterable[RuleHit]) -> None:
        self.path = path
        self.first_hits: dict[Code, dict[str, RuleHit]] = {}
        self.counts: dict[Code, int] = {}
        for hit in hits:
            kept = self.first_hits.setdefault(hit.code, {})
            self.counts[hit.code] = self.counts.get(hit.code, 0) + 1
            known = kept.get(hit.excerpt)
            if known is not None and hit.line < known.line:
                kept[hit.excerpt] = hit
            elif len(kept) < MAX_FINDINGS_PER_CODE:
                kept.setdefault(hit.excerpt, hit)

    def build_findings(self) -> Iterator[Finding]:
        """A finding for each of the first hits; codes that are only information wait."""
        for code, kept in self.first_hits.items():
            if TIERS[code] is Tier.INFO:
                continue
            left = self.counts[code] - len(kept)
            for number, hit in enumerate(kept.values(), start=1):
                hint = _format_more_hint(left, "in this file") if number == len(kept) else ""
                yield _build_finding(hit, self.path, hint)


def _build_info_findings(groups: list[_FileHits]) -> Iterator[Finding]:
    """One finding for each code that is only information: its first place, and how many more."""
    firsts: dict[Code, tuple[RuleHit, str]] = {}
    counts: dict[Code, int] = {}
    for group in groups:
        for code, kept in group.first_hits.items():
            if TIERS[code] is Tier.INFO:
                counts[code] = counts.get(code, 0) + group.counts[code]
                firsts.setdefault(code, (min(kept.values(), key=_get_line), group.path))
    for code, (hit, path) in firsts.items():
        yield _build_finding(hit, path, _format_more_hint(counts[code] - 1, "in this skill"))


def _get_line(hit: RuleHit) -> int:
    return hit.line


def _format_more_hint(count: int, where: str) -> str:
    return f"{count} more {where}" if count > 0 else ""


def _build_finding(hit: RuleHit, path: str, hint: str) -> Finding:
    return Finding(hit.code, f"{hit.description}: {hit.excerpt}", hit.line, hint, path)
