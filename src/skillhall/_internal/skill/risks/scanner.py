"""Static scan: findings about risky content in the files of a skill."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

from skillhall._internal.skill.bundle import Bundle, SkillFile
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import (
    LFS_SIGNATURE,
    is_skill_md,
    normalize_newlines,
)
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.risks.command_rules import (
    COMMAND_RULES,
    PASTE_RULE,
    find_paste_requests,
)
from skillhall._internal.skill.risks.exfiltration_rules import find_sent_archives
from skillhall._internal.skill.risks.hidden_text_rules import (
    COMMENT_TRIGGERS,
    find_base64,
    find_control_characters,
    find_escaped_hidden_text,
    find_hidden_comments,
    find_invisible_characters,
    has_base64_run,
    has_control_characters,
    has_invisible_characters,
)
from skillhall._internal.skill.risks.levels import RiskLevel, rate_risk
from skillhall._internal.skill.risks.phrase_rules import LINK_RULES, PHRASE_RULES
from skillhall._internal.skill.risks.quoted_attack_detector import MentionDetector
from skillhall._internal.skill.risks.remote_instruction_rules import (
    REMOTE_INSTRUCTION_RULE,
    find_remote_instructions,
)
from skillhall._internal.skill.risks.rule_engine import (
    RuleHit,
    ScannedText,
    escape_invisible,
    split_words,
    truncate,
)
from skillhall._internal.skill.risks.secret_rules import KEY_TRIGGERS, find_secrets
from skillhall._internal.skill.risks.tiers import TIERS, Tier
from skillhall._internal.skill.risks.triggers import TriggerIndex
from skillhall._internal.skill.yaml.values import YamlValue
from skillhall.errors import SkillhallError

_MAX_NAMES = 3  # in one finding
_MAX_NAME_LENGTH = 40  # characters
_PROGRAM_SIGNATURES = (
    b"\x7fELF",
    b"MZ\x90\x00",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\x00asm",
)
_PROGRAM_EXTENSIONS = split_words(
    ".exe .dll .so .dylib .msi .scr .com .jar .class .wasm .pyc .node .app .dmg"
)
_ARCHIVE_SIGNATURES = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"BZh",
    b"\xfd7zXZ",
)
_ARCHIVE_EXTENSIONS = split_words(".zip .tar .gz .tgz .bz2 .xz .7z .rar .zst .whl .skill .iso .cab")
# Documents in zip or gzip format.
_DOCUMENT_EXTENSIONS = split_words(
    ".docx .xlsx .pptx .docm .xlsm .pptm .dotx .xltx .potx .odt .ods .odp .epub .jar .svgz"
)
_SCRIPT_EXTENSIONS = split_words(
    ".sh .bash .zsh .fish .py .js .mjs .cjs .ts .rb .pl .php .lua .ps1 .psm1 .bat .cmd .vbs"
)
_COMBINING_MARK = re.compile("[\u0300-\u036f]")
_UNRESTRICTED_TOOLS = frozenset(
    {"*", "bash", "bash(*)", "bash(**)", "bash(:*)", "bash(*:*)", "shell", "shell(*)"}
)
_SIGNATURES = (*_PROGRAM_SIGNATURES, *_ARCHIVE_SIGNATURES, b"#!", LFS_SIGNATURE)
_SPECIAL_EXTENSIONS = frozenset((*_PROGRAM_EXTENSIONS, *_ARCHIVE_EXTENSIONS, *_SCRIPT_EXTENSIONS))
_LEVEL_NAMES = frozenset(RiskLevel)
MAX_FILE_BYTES = 1024 * 1024  # of one file
MAX_TOTAL_BYTES = 16 * 1024 * 1024  # of all files of a skill
MAX_FINDINGS_PER_CODE = 5  # in one file; the hint of the last one counts the others
_HEAD_BYTES = 8192  # a binary file has a NUL byte among these
_MARKDOWN = (".md", ".mdx", ".markdown")
_TEXT_EXTENSIONS = (
    *_MARKDOWN,
    *_SCRIPT_EXTENSIONS,
    *split_words(".txt .json .yaml .yml .toml .xml .html .csv"),
)
# Binary files, which are often large.
_MEDIA_EXTENSIONS = split_words(
    ".png .jpg .jpeg .gif .webp .ico .bmp .tiff .svgz .pdf .ttf .otf .woff .woff2 .eot .mp3 .mp4"
    " .wav .ogg .mov .webm .zip .gz .tgz .7z .rar .xz .bz2 .docx .xlsx .pptx .db .sqlite .onnx .npy"
)
# Rules that may match in a text. Rules for single characters and for long strings have no triggers.
TRIGGERS = TriggerIndex(
    [
        *(
            (rule.code, trigger)
            for rule in (
                *COMMAND_RULES,
                *LINK_RULES,
                *PHRASE_RULES,
                REMOTE_INSTRUCTION_RULE,
                PASTE_RULE,
            )
            for trigger in rule.triggers
        ),
        *((Code.HIDDEN_COMMENT, trigger) for trigger in COMMENT_TRIGGERS),
        *((Code.HARDCODED_SECRET, trigger) for trigger in KEY_TRIGGERS),
    ]
)
_DESCRIPTIONS = {
    Code.HAS_EXECUTABLES: "compiled programs",
    Code.HAS_ARCHIVES: "archives, not scanned",
    Code.HAS_SCRIPTS: "scripts",
    Code.EXECUTE_BITS: "executable files",
    Code.LINKS_DROPPED: "skipped links",
    Code.LFS_FILES: "Git LFS pointers without content",
}


def scan_bundle(bundle: Bundle, front: Frontmatter) -> tuple[Finding, ...]:
    """Scan a skill; findings are sorted by path (relative to its folder) and line."""
    files: list[_FileHits] = []
    kinds: dict[Code, list[str]] = {}
    unread: list[str] = []
    remaining = MAX_TOTAL_BYTES
    for path, file in bundle.files.items():
        data = _read_file(file, min(remaining, MAX_FILE_BYTES))
        head = b"" if data is None else data[:_HEAD_BYTES]
        if head.startswith(_SIGNATURES) or _get_extension(path) in _SPECIAL_EXTENSIONS:
            for code in _classify_file(path, head):
                kinds.setdefault(code, []).append(path)
        if file.executable:
            kinds.setdefault(Code.EXECUTE_BITS, []).append(path)
        if data is None:
            unread.append(path)
            continue
        remaining -= len(data)
        if _may_be_text(path, head) and (hits := _scan_file(path, data, front)):
            files.append(_FileHits(path, hits))
    findings = [*_check_fields(front)]
    # Most skills have none of these.
    if kinds or unread or bundle.findings:
        findings += _check_kinds(bundle, kinds)
        findings += _check_unread(bundle, unread)
    if files:
        findings += (finding for file in files for finding in file.build_findings())
        findings += _build_info_findings(files)
    if findings or bundle.findings:
        findings += check_declared_level(front, (*findings, *bundle.findings))
    return tuple(sorted(findings, key=lambda f: (f.path, f.line or 0, f.code.value, f.message)))


def check_declared_level(front: Frontmatter, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield a finding if `risk_tier` is below the level of the other findings."""
    metadata = front.fields.get("metadata")
    nested = metadata.get("risk_tier") if isinstance(metadata, dict) else None
    declared = front.fields.get("risk_tier") or nested
    text = declared.strip().upper() if isinstance(declared, str) else ""
    if text not in _LEVEL_NAMES:
        return
    level = rate_risk(finding.code for finding in findings)
    if RiskLevel(text) < level:
        message = f"the skill declares the risk level {text}, but the scan finds {level.value}"
        hint = f"set risk_tier to {level.value}, or remove what raises the level"
        yield Finding(Code.RISK_UNDERSTATED, message, hint=hint)


def finding_id(finding: Finding) -> str:
    """Return the id by which users dismiss a finding of `scan_bundle`.

    It depends on the code, the path and the excerpt, so it stays the same when lines move.
    """
    excerpt = finding.message.partition(": ")[2]
    normal = " ".join(unicodedata.normalize("NFC", excerpt).casefold().split())
    key = f"{finding.code.value}\0{finding.path}\0{normal}"
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _read_file(file: SkillFile, limit: int) -> bytes | None:
    """Return the content of a file; `None` if it is unreadable or has more than `limit` bytes."""
    if file.size > limit:
        return None
    try:
        data = file.read()
    except SkillhallError:
        return None
    return data if len(data) <= limit else None


def _may_be_text(path: str, head: bytes) -> bool:
    """Whether a file must be scanned: a text, or a script."""
    # Shells run scripts that contain NUL bytes, so a NUL byte must not hide a script.
    return b"\0" not in head or head.startswith(b"#!") or path.lower().endswith(_TEXT_EXTENSIONS)


def _scan_file(path: str, data: bytes, front: Frontmatter) -> list[RuleHit]:
    """Return the hits of all rules in a file; most files have nothing that a rule looks for."""
    lines = decode_file(data)
    codes = TRIGGERS.find_codes(lines)
    # An escape in YAML starts with a backslash.
    if codes or lines.unusual or lines.value_shape or b"\\" in lines.marks:
        return [*_search_file(lines, path, data, front, codes)]
    return []


def _search_file(
    lines: ScannedText, path: str, data: bytes, front: Frontmatter, codes: Collection[Code]
) -> Iterator[RuleHit]:
    has_invisible = bool(lines.unusual) and has_invisible_characters(lines)
    if has_invisible:
        yield from find_invisible_characters(lines)
    if (has_invisible or b"\\" in lines.marks) and is_skill_md(path):
        for value in _iterate_strings(front.fields):
            for shown in find_escaped_hidden_text(value, lines.text):
                yield RuleHit(Code.HIDDEN_UNICODE, "text in escaped invisible characters", 1, shown)
    has_controls = bool(lines.unusual) and b"\0" not in data and has_control_characters(lines)
    if has_controls and _is_text(path.lower(), lines.text):
        yield from find_control_characters(lines)
    if codes:
        yield from apply_rules(lines, path, codes)
    if Code.HIDDEN_COMMENT in codes and path.lower().endswith(_MARKDOWN):
        yield from find_hidden_comments(lines)
    if codes or lines.value_shape:
        yield from _find_values(lines, codes)


def _find_values(lines: ScannedText, codes: Collection[Code]) -> Iterator[RuleHit]:
    """Yield base64 and secrets."""
    if has_base64_run(lines):
        yield from find_base64(lines)
    for secret in find_secrets(lines, has_key_trigger=Code.HARDCODED_SECRET in codes):
        number = lines.find_line_number(secret.start)
        yield RuleHit(Code.HARDCODED_SECRET, "possible secret", number, secret.preview)


def decode_file(data: bytes) -> ScannedText:
    """Decode a file for the rules: without NUL bytes, with LF line breaks, and normalized."""
    if b"\r" not in data and b"\0" not in data:
        if data.isascii():
            return ScannedText(data)
        if _is_utf8(data) and _is_normalized((lines := ScannedText(data)).unusual):
            return lines
    # Shells also run scripts that are not UTF-8, so invalid bytes must not hide a script.
    text = normalize_newlines(data.replace(b"\0", b"").decode("utf-8", "replace"))
    return ScannedText(unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass"))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_normalized(unusual: str) -> bool:
    """Whether a text is normalized, judged by its characters outside ASCII alone.

    They are a fraction of most texts. False does not mean that the text is not normalized.
    """
    # Only these marks combine with an ASCII character.
    return _COMBINING_MARK.search(unusual) is None and unicodedata.is_normalized("NFC", unusual)


def _is_text(name: str, decoded: str) -> bool:
    """Whether a file is text by its lowercase name, else by its content."""
    if name.endswith(_TEXT_EXTENSIONS):
        return True
    return "\ufffd" not in decoded and not name.endswith(_MEDIA_EXTENSIONS)


def apply_rules(lines: ScannedText, path: str, codes: Collection[Code]) -> Iterator[RuleHit]:
    """Yield the hits of the rules with these codes in a file."""
    name = path.lower()
    is_markdown = name.endswith(_MARKDOWN)
    mentions = MentionDetector(lines, path, is_markdown=is_markdown)
    is_mention = partial(mentions.is_mention, is_phrase=False)
    is_phrase_mention = partial(mentions.is_mention, is_phrase=True)
    for rule in (*COMMAND_RULES, *LINK_RULES):
        if rule.code in codes and (is_markdown or not rule.is_markdown_only):
            # In the info tier, it does not matter whether something is used or mentioned.
            is_info = TIERS[rule.code] is Tier.INFO
            yield from lines.apply_rule(rule, (lambda _: False) if is_info else is_mention)
    if Code.CREDENTIAL_EXFIL in codes:
        yield from find_sent_archives(lines, is_mention)
    phrase_rules = [rule for rule in PHRASE_RULES if rule.code in codes]
    paragraphs = lines.join_paragraphs() if phrase_rules and is_markdown else lines
    for rule in phrase_rules:
        yield from paragraphs.apply_rule(rule, is_phrase_mention)
    if Code.REMOTE_INSTRUCTIONS in codes:
        is_prose = not name.endswith(_SCRIPT_EXTENSIONS)
        yield from find_remote_instructions(lines, is_phrase_mention, is_prose=is_prose)
    if Code.PASTE_INTO_TERMINAL in codes:
        yield from find_paste_requests(lines, is_phrase_mention)


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
    """Hits in one file: the first few of each code, and the total for each code."""

    def __init__(self, path: str, hits: Iterable[RuleHit]) -> None:
        self.path = path
        self.first_hits: dict[Code, dict[str, RuleHit]] = {}
        self.counts: dict[Code, int] = {}
        for hit in hits:
            first = self.first_hits.setdefault(hit.code, {})
            self.counts[hit.code] = self.counts.get(hit.code, 0) + 1
            known = first.get(hit.excerpt)
            if known is not None and hit.line < known.line:
                first[hit.excerpt] = hit
            elif len(first) < MAX_FINDINGS_PER_CODE:
                first.setdefault(hit.excerpt, hit)

    def build_findings(self) -> Iterator[Finding]:
        """Yield a finding for each of the first hits, except those of tier info."""
        for code, first in self.first_hits.items():
            if TIERS[code] is Tier.INFO:
                continue
            more = self.counts[code] - len(first)
            for number, hit in enumerate(first.values(), start=1):
                hint = _format_more_hint(more, "in this file") if number == len(first) else ""
                yield _build_finding(hit, self.path, hint)


def _build_info_findings(files: list[_FileHits]) -> Iterator[Finding]:
    """Yield one finding per code of tier info: the first hit and a count of others."""
    firsts: dict[Code, tuple[RuleHit, str]] = {}
    counts: dict[Code, int] = {}
    for file in files:
        for code, hits in file.first_hits.items():
            if TIERS[code] is Tier.INFO:
                counts[code] = counts.get(code, 0) + file.counts[code]
                first = min(hits.values(), key=lambda hit: hit.line)
                firsts.setdefault(code, (first, file.path))
    for code, (hit, path) in firsts.items():
        yield _build_finding(hit, path, _format_more_hint(counts[code] - 1, "in this skill"))


def _format_more_hint(count: int, where: str) -> str:
    return f"{count} more {where}" if count > 0 else ""


def _build_finding(hit: RuleHit, path: str, hint: str) -> Finding:
    return Finding(hit.code, f"{hit.description}: {hit.excerpt}", hit.line, hint, path)


def _check_kinds(bundle: Bundle, kinds: dict[Code, list[str]]) -> Iterator[Finding]:
    """Yield findings about risky kinds of files, and about links."""
    if links := [finding.path for finding in bundle.findings if _is_dropped_link(finding)]:
        kinds[Code.LINKS_DROPPED] = links
    for code, paths in kinds.items():
        yield Finding(code, f"{_DESCRIPTIONS[code]}: {_format_names(paths)}")


def _check_fields(front: Frontmatter) -> Iterator[Finding]:
    if hooks := front.fields.get("hooks"):
        events = _format_names([*hooks]) if isinstance(hooks, dict) else "hooks"
        yield Finding(Code.HOOKS_FIELD, f"the frontmatter defines hooks: {events}")
    if broad := [tool for tool in front.allowed_tools if tool.lower() in _UNRESTRICTED_TOOLS]:
        yield Finding(Code.BROAD_TOOLS, f"unrestricted tools: {_format_names(broad)}")


def _check_unread(bundle: Bundle, unread: Sequence[str]) -> Iterator[Finding]:
    # Links that the source skipped have a finding of their own.
    skipped = (f.path or f.message for f in bundle.findings if not _is_dropped_link(f))
    # The parser reports an unreadable SKILL.md.
    reported = (path for path in (*unread, *skipped) if not is_skill_md(path))
    if paths := [path for path in reported if not path.lower().endswith(_MEDIA_EXTENSIONS)]:
        message = f"too large or unreadable, not scanned: {_format_names(paths)}"
        yield Finding(Code.SCAN_INCOMPLETE, message, hint="review them manually")


def _format_names(paths: Sequence[str]) -> str:
    """Return the first few paths and the number of others."""
    names = [truncate(escape_invisible(path), _MAX_NAME_LENGTH) for path in paths[:_MAX_NAMES]]
    more = len(paths) - _MAX_NAMES
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _get_extension(path: str) -> str:
    return path[path.rfind(".") :].lower()


def _classify_file(path: str, head: bytes) -> Iterator[Code]:
    name = path.lower()
    if head.startswith(_PROGRAM_SIGNATURES) or name.endswith(_PROGRAM_EXTENSIONS):
        yield Code.HAS_EXECUTABLES
    elif name.endswith(_ARCHIVE_EXTENSIONS) or (
        head.startswith(_ARCHIVE_SIGNATURES) and not name.endswith(_DOCUMENT_EXTENSIONS)
    ):
        yield Code.HAS_ARCHIVES
    elif head.startswith(b"#!") or name.endswith(_SCRIPT_EXTENSIONS):
        yield Code.HAS_SCRIPTS
    if head.startswith(LFS_SIGNATURE) and not is_skill_md(path):
        yield Code.LFS_FILES


def _is_dropped_link(finding: Finding) -> bool:
    """Whether a finding is about a link that the source left out of the bundle."""
    # The folder and repository sources end the message of such a finding with these words.
    return finding.code is Code.FILE_LEFT_OUT and finding.message.endswith("it is a link")
