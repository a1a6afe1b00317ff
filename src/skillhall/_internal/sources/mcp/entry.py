"""Skills as MCP servers announce them: an entry is read, then held against what is fetched.

An entry names every file of a skill with its digest and size (`io.modelcontextprotocol/skills`, the
stable text of the extension). Whatever does not fit is a finding; nothing here decides or fetches.
"""

from __future__ import annotations

import re
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from skillhall._internal.skill.bundle import (
    find_collision,
    is_in_version_control_folder,
    sha256_hex,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import MAX_FRONTMATTER_BYTES, SKILL_MD
from skillhall._internal.skill.parser import parse_frontmatter
from skillhall._internal.skill.skill_uri import MAX_URI_LENGTH, SkillUri
from skillhall._internal.skill.yaml.values import HIDDEN_FIELD, is_hidden_value
from skillhall.errors import UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.skill.yaml.values import YamlValue

MAX_ENTRY_FILES: Final = 512  # the extension, "Limits"
MAX_ENTRY_BYTES: Final = 16 * 1024 * 1024  # bytes; the same
DYNAMIC_RESOURCES: Final = "dynamic"

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# How YAML 1.1 and 1.2 write what JSON has as true, false and null.
_YAML_SPELLINGS: Mapping[object, frozenset[str]] = {
    True: frozenset({"true", "yes", "on", "y"}),
    False: frozenset({"false", "no", "off", "n"}),
    None: frozenset({"null", "~", ""}),
}
_MAX_JSON_INTEGER = 2**53  # bytes; JSON that others read has no larger number
_MAX_QUOTED_LENGTH = 100  # characters of a wrong text that a message repeats
_MAX_NAMES = 5  # names that a message repeats


class McpFileEntry(NamedTuple):
    """A file of a served skill: what its bytes must be."""

    uri: str
    path: str
    digest: str
    size: int


class McpSkillEntry(NamedTuple):
    """One skill as a server announces it; with findings, it may be known and not be used."""

    uri: str
    path: str = ""  # of the skill in the server's own order
    name: str = ""
    description: str = ""
    frontmatter: Mapping[str, object] = MappingProxyType({})
    files: tuple[McpFileEntry, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def hidden(self) -> bool:
        """Whether no model may be told of it, as its author says."""
        return is_hidden_value(self.frontmatter.get(HIDDEN_FIELD))

    @property
    def total_bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def find_file(self, path: str) -> McpFileEntry | None:
        """The file at a path of the skill."""
        return next((file for file in self.files if file.path == path), None)


class _InvalidEntry(Exception):
    """An entry that cannot be used, and why."""

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.finding = Finding(code, message, hint=hint)


# Reading


def parse_entry(value: object) -> McpSkillEntry:
    """The entry that a server's JSON holds; what is wrong with it is among its findings."""
    if not isinstance(value, dict) or not isinstance(value.get("uri"), str):
        found = Finding(Code.MCP_ENTRY, "the entry is no object with a 'uri'")
        return McpSkillEntry("", findings=(found,))
    entry = McpSkillEntry(value["uri"][:MAX_URI_LENGTH])
    try:
        uri = _parse_uri(value["uri"])
        entry = entry._replace(path=uri.path, name=uri.name)
        entry = _add_frontmatter(entry, value.get("frontmatter"))
        entry = entry._replace(files=tuple(_parse_files(uri, value.get("resources"))))
        _check_files(entry)
    except _InvalidEntry as wrong:
        return entry._replace(findings=(wrong.finding.with_location(entry.uri, entry.name),))
    return entry


def _parse_uri(text: str) -> SkillUri:
    try:
        return SkillUri.parse(text)
    except UnsafePath as error:
        raise _InvalidEntry(
            Code.MCP_URI, f"the URI of the skill is refused: {error.reason}"
        ) from None


def _add_frontmatter(entry: McpSkillEntry, value: object) -> McpSkillEntry:
    if not isinstance(value, dict):
        raise _InvalidEntry(Code.MCP_ENTRY, "'frontmatter' of the entry is no object")
    name, description = value.get("name"), value.get("description")
    if not (isinstance(name, str) and isinstance(description, str)):
        raise _InvalidEntry(Code.MCP_ENTRY, "'name' or 'description' of the entry is no text")
    if name != entry.name:
        message = (
            f"the skill calls itself {name[:_MAX_QUOTED_LENGTH]!r}, and its URI {entry.name!r}"
        )
        raise _InvalidEntry(Code.MCP_NAME, message)
    if len(description) > MAX_FRONTMATTER_BYTES:
        raise _InvalidEntry(Code.MCP_LIMIT, f"the description has {len(description)} characters")
    return entry._replace(description=description, frontmatter=value)


def _parse_files(uri: SkillUri, value: object) -> Iterator[McpFileEntry]:
    if value == DYNAMIC_RESOURCES:
        message = "its files are made on demand and have no digests, so nobody can check them"
        raise _InvalidEntry(
            Code.MCP_DYNAMIC, message, "ask its server for files that stay as they are"
        )
    if not isinstance(value, list):
        raise _InvalidEntry(
            Code.MCP_ENTRY, f"'resources' is neither a list nor {DYNAMIC_RESOURCES!r}"
        )
    if len(value) > MAX_ENTRY_FILES:
        message = f"the skill has {len(value)} files; at most {MAX_ENTRY_FILES} are taken"
        raise _InvalidEntry(Code.MCP_LIMIT, message)
    for one in value:
        yield _parse_file(uri, one)


def _parse_file(uri: SkillUri, value: object) -> McpFileEntry:
    fields = value if isinstance(value, dict) else {}
    text, digest, size = fields.get("uri"), fields.get("digest"), fields.get("size")
    if not (isinstance(text, str) and isinstance(digest, str) and _is_size(size)):
        raise _InvalidEntry(
            Code.MCP_ENTRY, "a file of the entry lacks its 'uri', 'digest' or 'size'"
        )
    if not _DIGEST.fullmatch(digest):
        raise _InvalidEntry(
            Code.MCP_ENTRY, f"{digest[:_MAX_QUOTED_LENGTH]!r} is no digest of a file"
        )
    try:
        return McpFileEntry(text, uri.to_relative_path(text).text, digest, size)
    except UnsafePath as error:
        raise _InvalidEntry(
            Code.MCP_URI, f"{text[:_MAX_QUOTED_LENGTH]!r} is refused: {error.reason}"
        ) from None


def _is_size(value: object) -> TypeGuard[int]:
    return (
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_JSON_INTEGER
    )


def _check_files(entry: McpSkillEntry) -> None:
    paths = [file.path for file in entry.files]
    if (collision := find_collision(paths)) is not None:
        raise _InvalidEntry(Code.MCP_REPEATED, f"{collision.path!r} is refused: {collision.reason}")
    if inside := next((path for path in paths if is_in_version_control_folder(path)), ""):
        raise _InvalidEntry(Code.MCP_URI, f"{inside!r} is refused: it belongs to version control")
    own = entry.find_file(SKILL_MD)
    if own is None or own.uri != entry.uri:
        raise _InvalidEntry(Code.MCP_ENTRY, f"the entry does not list its own {SKILL_MD}")
    if entry.total_bytes > MAX_ENTRY_BYTES:
        message = f"the skill has {entry.total_bytes} bytes; at most {MAX_ENTRY_BYTES} are taken"
        raise _InvalidEntry(Code.MCP_LIMIT, message)


# Several entries together


def cross_check_entries(entries: Sequence[McpSkillEntry]) -> list[McpSkillEntry]:
    """The entries of one server, each with what the others mean for it. None is left out."""
    uris = Counter(entry.uri for entry in entries)
    names = Counter(entry.name for entry in entries)
    within = _find_nested_skills(entries)
    return [
        entry._replace(
            findings=(*entry.findings, *_check_against_others(entry, uris, names, within))
        )
        for entry in entries
    ]


def _check_against_others(
    entry: McpSkillEntry,
    uris: Mapping[str, int],
    names: Mapping[str, int],
    nested: Mapping[str, Sequence[str]],
) -> Iterator[Finding]:
    """What the other entries mean for this one."""
    found = []
    if uris[entry.uri] > 1:
        found.append(Finding(Code.MCP_REPEATED, "the server announces this URI more than once"))
    elif entry.name and names[entry.name] > 1:
        message = f"the server has {names[entry.name]} skills named {entry.name!r}"
        found.append(Finding(Code.SAME_NAME, message, hint=f"call this one {entry.path!r}"))
    listed = {file.uri for file in entry.files}
    for uri in nested.get(entry.uri, ()) if entry.files else ():
        if uri not in listed:
            message = f"the entry does not list {uri!r}, which the server has inside the skill"
            found.append(Finding(Code.MCP_UNLISTED, message))
    if any(file.path.endswith(f"/{SKILL_MD}") for file in entry.files):
        message = "the skill holds another skill, which is not approved along with it"
        found.append(Finding(Code.MCP_NESTED, message))
    return (finding.with_location(entry.uri, entry.name) for finding in found)


def _find_nested_skills(entries: Sequence[McpSkillEntry]) -> dict[str, list[str]]:
    """For each skill, the URIs of the skills inside it."""
    known = {entry.uri for entry in entries}
    found: dict[str, list[str]] = {}
    for uri in known:
        parts = uri.split("/")
        for count in range(3, len(parts) - 1):  # scheme, nothing, and the first name
            outer = "/".join((*parts[:count], SKILL_MD))
            if outer in known:
                found.setdefault(outer, []).append(uri)
    return {outer: sorted(inner) for outer, inner in found.items()}


# What was fetched


def verify_file(file: McpFileEntry, data: bytes) -> Finding | None:
    """What keeps the bytes from being the file that was announced."""
    if len(data) != file.size:
        message = f"{file.path!r} has {len(data)} bytes; the server announced {file.size}"
        return Finding(Code.MCP_SIZE, message, path=file.uri)
    if f"sha256:{sha256_hex(data)}" != file.digest:
        message = f"{file.path!r} is not what the server announced: its digest is another one"
        return Finding(Code.MCP_DIGEST, message, path=file.uri)
    return None


def verify_frontmatter(entry: McpSkillEntry, data: bytes) -> Finding | None:
    """What the frontmatter of a fetched SKILL.md says otherwise than its entry did."""
    fields = parse_frontmatter(data, entry.name).frontmatter.fields
    names = find_differing_fields(entry.frontmatter, fields)
    if not names:
        return None
    told = ", ".join(repr(name[:_MAX_QUOTED_LENGTH]) for name in names[:_MAX_NAMES])
    message = f"{SKILL_MD} says otherwise than the server announced: {told}"
    return Finding(Code.MCP_FRONTMATTER, message, path=entry.uri)


def build_unlisted_finding(entry: McpSkillEntry, path: str) -> Finding:
    """The finding for a file that is asked for and not in the entry."""
    message = f"{path[:_MAX_QUOTED_LENGTH]!r} is not among the files that the server announced"
    return Finding(Code.MCP_UNLISTED, message, path=entry.uri)


def find_differing_fields(
    announced: Mapping[str, object], fields: Mapping[str, YamlValue]
) -> list[str]:
    """The fields that only one side has, or that differ, by name.

    Readers of YAML differ in what is more than text: `1.10` may arrive as 1.1, `yes` as true.
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
            and all(_is_equal_value(one, other) for one, other in zip(value, parsed, strict=True))
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
    """The numbers that a reader of YAML may take a text for."""
    for reader in (float, _parse_integer, _parse_octal):
        try:
            yield reader(text)
        except (ValueError, OverflowError):
            continue


def _parse_integer(text: str) -> int:
    return int(text, 0)


def _parse_octal(text: str) -> int:
    return int(text, 8)
