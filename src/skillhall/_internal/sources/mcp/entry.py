"""Entries of MCP skills: parsing, and verification of fetched files against them.

An entry lists every file of a skill with its digest and size (`io.modelcontextprotocol/skills`, the
stable version of the extension). Mismatches are findings: this module neither judges them nor
fetches files.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.skill.bundle import (
    find_collision,
    is_in_version_control_folder,
    sha256_hex,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import MAX_FRONTMATTER_BYTES, SKILL_MD
from skillhall._internal.skill.parser import parse_frontmatter
from skillhall._internal.skill.skill_uri import MAX_URI_LENGTH, SkillUri
from skillhall._internal.skill.yaml.values import HIDDEN_FIELD, is_hidden_value
from skillhall.errors import UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.skill.yaml.values import YamlValue

MAX_ENTRY_FILES: Final = 512  # the extension's specification, "Limits"
MAX_ENTRY_BYTES: Final = 16 * 1024 * 1024  # likewise
DYNAMIC_RESOURCES: Final = "dynamic"

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# The spellings of true, false and null in YAML 1.1 and 1.2.
_YAML_SPELLINGS: Mapping[object, frozenset[str]] = {
    True: frozenset({"true", "yes", "on", "y"}),
    False: frozenset({"false", "no", "off", "n"}),
    None: frozenset({"null", "~", ""}),
}
_MAX_JSON_INTEGER = 2**53  # larger integers are not portable in JSON
_MAX_QUOTED_LENGTH = 100  # characters of a value quoted in a message
_MAX_NAMES = 5  # listed in a message


class McpFileEntry(NamedTuple):
    """Expected digest and size of a file."""

    uri: str
    path: str
    digest: str
    size: int


class McpSkillEntry(NamedTuple):
    """Entry of one skill; its findings may make it unusable."""

    uri: str
    path: str = ""  # of the URI, as in group/name
    name: str = ""
    description: str = ""
    frontmatter: Mapping[str, object] = MappingProxyType({})
    files: tuple[McpFileEntry, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def hidden(self) -> bool:
        """Whether the author hides the skill from models."""
        return is_hidden_value(self.frontmatter.get(HIDDEN_FIELD))

    @property
    def total_bytes(self) -> int:
        """Total size of all files."""
        return sum(file.size for file in self.files)

    def find_file(self, path: str) -> McpFileEntry | None:
        """Return the file at a path of the skill, if it is listed."""
        return next((file for file in self.files if file.path == path), None)


class _InvalidEntry(Exception):
    """Unusable entry, with its finding."""

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.finding = Finding(code, message, hint=hint)


def parse_entry(value: object) -> McpSkillEntry:
    """Parse an entry; problems become findings of the entry."""
    if not isinstance(value, dict) or not isinstance(value.get("uri"), str):
        finding = Finding(Code.MCP_ENTRY, "the entry is not an object with a 'uri'")
        return McpSkillEntry("", findings=(finding,))
    entry = McpSkillEntry(value["uri"][:MAX_URI_LENGTH])
    try:
        try:
            uri = SkillUri.parse(value["uri"])
        except UnsafePath as error:
            message = f"the URI of the skill is rejected: {error.reason}"
            raise _InvalidEntry(Code.MCP_URI, message) from None
        entry = entry._replace(path=uri.path, name=uri.name)
        entry = _add_frontmatter(entry, value.get("frontmatter"))
        entry = entry._replace(files=tuple(_parse_files(uri, value.get("resources"))))
        _check_files(entry)
    except _InvalidEntry as error:
        return entry._replace(findings=(error.finding.with_location(entry.uri, entry.name),))
    return entry


def _add_frontmatter(entry: McpSkillEntry, value: object) -> McpSkillEntry:
    if not isinstance(value, dict):
        raise _InvalidEntry(Code.MCP_ENTRY, "the entry's 'frontmatter' is not an object")
    name, description = value.get("name"), value.get("description")
    if not (isinstance(name, str) and isinstance(description, str)):
        raise _InvalidEntry(Code.MCP_ENTRY, "the entry's 'name' or 'description' is not a string")
    if name != entry.name:
        message = f"the name is {name[:_MAX_QUOTED_LENGTH]!r}, but the URI has {entry.name!r}"
        raise _InvalidEntry(Code.MCP_NAME, message)
    if len(description) > MAX_FRONTMATTER_BYTES:
        raise _InvalidEntry(
            Code.MCP_LIMIT, f"the description is too long: {len(description)} characters"
        )
    return entry._replace(description=description, frontmatter=value)


def _parse_files(uri: SkillUri, value: object) -> Iterator[McpFileEntry]:
    if value == DYNAMIC_RESOURCES:
        message = "its files are generated on demand and have no digests to verify them"
        raise _InvalidEntry(Code.MCP_DYNAMIC, message, "ask its publisher for static files")
    if not isinstance(value, list):
        message = f"'resources' is neither a list nor {DYNAMIC_RESOURCES!r}"
        raise _InvalidEntry(Code.MCP_ENTRY, message)
    if len(value) > MAX_ENTRY_FILES:
        message = f"the skill has {len(value)} files; the limit is {MAX_ENTRY_FILES}"
        raise _InvalidEntry(Code.MCP_LIMIT, message)
    for item in value:
        yield _parse_file(uri, item)


def _parse_file(uri: SkillUri, value: object) -> McpFileEntry:
    fields = value if isinstance(value, dict) else {}
    text, digest, size = fields.get("uri"), fields.get("digest"), fields.get("size")
    if not (
        isinstance(text, str)
        and isinstance(digest, str)
        and type(size) is int
        and 0 <= size <= _MAX_JSON_INTEGER
    ):
        message = "a file in the entry has no valid 'uri', 'digest' or 'size'"
        raise _InvalidEntry(Code.MCP_ENTRY, message)
    if not _DIGEST.fullmatch(digest):
        message = f"{digest[:_MAX_QUOTED_LENGTH]!r} is not a SHA-256 digest"
        raise _InvalidEntry(Code.MCP_ENTRY, message)
    try:
        return McpFileEntry(text, uri.to_relative_path(text).text, digest, size)
    except UnsafePath as error:
        message = f"{text[:_MAX_QUOTED_LENGTH]!r} is rejected: {error.reason}"
        raise _InvalidEntry(Code.MCP_URI, message) from None


def _check_files(entry: McpSkillEntry) -> None:
    paths = [file.path for file in entry.files]
    if (collision := find_collision(paths)) is not None:
        message = f"{collision.path!r} is rejected: {collision.reason}"
        raise _InvalidEntry(Code.MCP_REPEATED, message)
    if path := next((path for path in paths if is_in_version_control_folder(path)), ""):
        raise _InvalidEntry(Code.MCP_URI, f"{path!r} is rejected: it belongs to version control")
    skill_md = entry.find_file(SKILL_MD)
    if skill_md is None or skill_md.uri != entry.uri:
        raise _InvalidEntry(Code.MCP_ENTRY, f"the entry does not list its own {SKILL_MD}")
    if entry.total_bytes > MAX_ENTRY_BYTES:
        message = f"the skill has {entry.total_bytes} bytes; the limit is {MAX_ENTRY_BYTES}"
        raise _InvalidEntry(Code.MCP_LIMIT, message)


def cross_check_entries(entries: Sequence[McpSkillEntry]) -> list[McpSkillEntry]:
    """Add findings about duplicate and nested skills to a server's entries."""
    uris = Counter(entry.uri for entry in entries)
    names = Counter(entry.name for entry in entries)
    nested = _find_nested_skills(entries)
    checked = []
    for entry in entries:
        findings = []
        if uris[entry.uri] > 1:
            findings.append(Finding(Code.MCP_REPEATED, "the server lists this URI more than once"))
        elif entry.name and names[entry.name] > 1:
            message = f"the server has {names[entry.name]} skills named {entry.name!r}"
            findings.append(Finding(Code.SAME_NAME, message, hint=f"use the path {entry.path!r}"))
        listed = {file.uri for file in entry.files}
        for uri in nested.get(entry.uri, ()) if listed else ():
            if uri not in listed:
                message = f"the entry does not list {uri!r}, which the server has inside the skill"
                findings.append(Finding(Code.MCP_UNLISTED, message))
        if any(file.path.endswith(f"/{SKILL_MD}") for file in entry.files):
            message = "the skill contains another skill, which is not approved with it"
            findings.append(Finding(Code.MCP_NESTED, message))
        located = (finding.with_location(entry.uri, entry.name) for finding in findings)
        checked.append(entry._replace(findings=(*entry.findings, *located)))
    return checked


def _find_nested_skills(entries: Sequence[McpSkillEntry]) -> dict[str, list[str]]:
    """Return the URIs of nested skills by the URI of the outer skill."""
    uris = {entry.uri for entry in entries}
    nested: dict[str, list[str]] = {}
    for uri in uris:
        parts = uri.split("/")
        for count in range(3, len(parts) - 1):  # from "skill:", "" and the first name on
            outer = "/".join((*parts[:count], SKILL_MD))
            if outer in uris:
                nested.setdefault(outer, []).append(uri)
    return {outer: sorted(inner) for outer, inner in nested.items()}


def verify_file(file: McpFileEntry, data: bytes) -> Finding | None:
    """Return a finding if the bytes do not match the entry of the file."""
    if len(data) != file.size:
        message = f"{file.path!r} has {len(data)} bytes, but its entry says {file.size}"
        return Finding(Code.MCP_SIZE, message, path=file.uri)
    if f"sha256:{sha256_hex(data)}" != file.digest:
        message = f"{file.path!r} does not match the digest in its entry"
        return Finding(Code.MCP_DIGEST, message, path=file.uri)
    return None


def verify_frontmatter(entry: McpSkillEntry, data: bytes) -> Finding | None:
    """Return a finding if a fetched SKILL.md differs from the entry's frontmatter."""
    fields = parse_frontmatter(data, entry.name).frontmatter.fields
    names = find_differing_fields(entry.frontmatter, fields)
    if not names:
        return None
    shown = ", ".join(repr(name[:_MAX_QUOTED_LENGTH]) for name in names[:_MAX_NAMES])
    message = f"the frontmatter of {SKILL_MD} differs from its entry: {shown}"
    return Finding(Code.MCP_FRONTMATTER, message, path=entry.uri)


def build_unlisted_finding(entry: McpSkillEntry, path: str) -> Finding:
    """Return the finding for a requested file that is not in the entry."""
    message = f"{path[:_MAX_QUOTED_LENGTH]!r} is not in the skill's entry"
    return Finding(Code.MCP_UNLISTED, message, path=entry.uri)


def find_differing_fields(
    announced: Mapping[str, object], fields: Mapping[str, YamlValue]
) -> list[str]:
    """Return the names of fields that differ or are missing on one side.

    YAML parsers disagree about values that are not strings: `1.10` may be 1.1, `yes` may be true.
    Values that any of these parsers reads as equal are not reported.
    """
    return [
        name
        for name in sorted({*announced, *fields})
        if name not in announced
        or name not in fields
        or not _is_equal_value(announced[name], fields[name])
    ]


def _is_equal_value(value: object, parsed: YamlValue) -> bool:
    if isinstance(value, dict):
        return isinstance(parsed, dict) and not find_differing_fields(value, parsed)
    if isinstance(value, list):
        return (
            isinstance(parsed, list)
            and len(value) == len(parsed)
            and all(_is_equal_value(*pair) for pair in zip(value, parsed, strict=True))
        )
    if isinstance(parsed, list | dict):
        return False
    if isinstance(value, bool) or value is None:
        return parsed is value or (
            isinstance(parsed, str) and parsed.strip().lower() in _YAML_SPELLINGS[value]
        )
    if isinstance(value, str):
        return isinstance(parsed, str) and value.rstrip() == parsed.rstrip()
    return isinstance(parsed, str) and any(
        value == number for number in _parse_numbers(parsed.strip())
    )


def _parse_numbers(text: str) -> Iterator[float]:
    """Yield the numbers that a YAML parser may read from a string."""
    for parse in (float, partial(int, base=0), partial(int, base=8)):
        try:
            yield parse(text)
        except (ValueError, OverflowError):
            continue
