"""Skills as MCP servers announce them: an entry is read, then held against what is fetched.

An entry names every file of a skill with its digest and size (`io.modelcontextprotocol/skills`, the
stable text of the extension). Whatever does not fit is a finding; nothing here decides or fetches.
"""

from __future__ import annotations

import re
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from skillhall._internal.skill.bundle import find_collision, is_version_controlled, sha256_of
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import MAX_FRONTMATTER, SKILL_MD
from skillhall._internal.skill.parser import parse_head
from skillhall._internal.skill.skill_uri import MAX_URI, SkillUri
from skillhall._internal.skill.yaml.values import HIDING_FIELD, is_hiding
from skillhall.errors import UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.skill.yaml.values import Value

MAX_SERVED_FILES: Final = 512  # the extension, "Limits"
MAX_SERVED_TOTAL: Final = 16 * 1024 * 1024  # bytes; the same
DYNAMIC: Final = "dynamic"

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# How YAML 1.1 and 1.2 write what JSON has as true, false and null.
_WORDS: Mapping[object, frozenset[str]] = {
    True: frozenset({"true", "yes", "on", "y"}),
    False: frozenset({"false", "no", "off", "n"}),
    None: frozenset({"null", "~", ""}),
}
_HUGE = 2**53  # bytes; JSON that others read has no larger number
_SHOWN = 100  # characters of a wrong text that a message repeats
_FEW = 5  # names that a message repeats


class ServedFile(NamedTuple):
    """A file of a served skill: what its bytes must be."""

    uri: str
    path: str
    digest: str
    size: int


class ServedEntry(NamedTuple):
    """One skill as a server announces it; with findings, it may be known and not be used."""

    uri: str
    path: str = ""  # of the skill in the server's own order
    name: str = ""
    description: str = ""
    frontmatter: Mapping[str, object] = MappingProxyType({})
    files: tuple[ServedFile, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def hidden(self) -> bool:
        """Whether no model may be told of it, as its author says."""
        return is_hiding(self.frontmatter.get(HIDING_FIELD))

    @property
    def total(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def file(self, path: str) -> ServedFile | None:
        """The file at a path of the skill."""
        return next((file for file in self.files if file.path == path), None)


class _Wrong(Exception):
    """An entry that cannot be used, and why."""

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.finding = Finding(code, message, hint=hint)


# Reading


def read_entry(value: object) -> ServedEntry:
    """The entry that a server's JSON holds; what is wrong with it is among its findings."""
    if not isinstance(value, dict) or not isinstance(value.get("uri"), str):
        found = Finding(Code.MCP_ENTRY, "the entry is no object with a 'uri'")
        return ServedEntry("", findings=(found,))
    entry = ServedEntry(value["uri"][:MAX_URI])
    try:
        uri = _uri(value["uri"])
        entry = entry._replace(path=uri.path, name=uri.name)
        entry = _with_frontmatter(entry, value.get("frontmatter"))
        entry = entry._replace(files=tuple(_files(uri, value.get("resources"))))
        _check_files(entry)
    except _Wrong as wrong:
        return entry._replace(findings=(wrong.finding.at(entry.uri, entry.name),))
    return entry


def _uri(text: str) -> SkillUri:
    try:
        return SkillUri.parse(text)
    except UnsafePath as error:
        raise _Wrong(Code.MCP_URI, f"the URI of the skill is refused: {error.reason}") from None


def _with_frontmatter(entry: ServedEntry, value: object) -> ServedEntry:
    if not isinstance(value, dict):
        raise _Wrong(Code.MCP_ENTRY, "'frontmatter' of the entry is no object")
    name, description = value.get("name"), value.get("description")
    if not (isinstance(name, str) and isinstance(description, str)):
        raise _Wrong(Code.MCP_ENTRY, "'name' or 'description' of the entry is no text")
    if name != entry.name:
        message = f"the skill calls itself {name[:_SHOWN]!r}, and its URI {entry.name!r}"
        raise _Wrong(Code.MCP_NAME, message)
    if len(description) > MAX_FRONTMATTER:
        raise _Wrong(Code.MCP_LIMIT, f"the description has {len(description)} characters")
    return entry._replace(description=description, frontmatter=value)


def _files(uri: SkillUri, value: object) -> Iterator[ServedFile]:
    if value == DYNAMIC:
        message = "its files are made on demand and have no digests, so nobody can check them"
        raise _Wrong(Code.MCP_DYNAMIC, message, "ask its server for files that stay as they are")
    if not isinstance(value, list):
        raise _Wrong(Code.MCP_ENTRY, f"'resources' is neither a list nor {DYNAMIC!r}")
    if len(value) > MAX_SERVED_FILES:
        message = f"the skill has {len(value)} files; at most {MAX_SERVED_FILES} are taken"
        raise _Wrong(Code.MCP_LIMIT, message)
    for one in value:
        yield _file(uri, one)


def _file(uri: SkillUri, value: object) -> ServedFile:
    fields = value if isinstance(value, dict) else {}
    text, digest, size = fields.get("uri"), fields.get("digest"), fields.get("size")
    if not (isinstance(text, str) and isinstance(digest, str) and _is_size(size)):
        raise _Wrong(Code.MCP_ENTRY, "a file of the entry lacks its 'uri', 'digest' or 'size'")
    if not _DIGEST.fullmatch(digest):
        raise _Wrong(Code.MCP_ENTRY, f"{digest[:_SHOWN]!r} is no digest of a file")
    try:
        return ServedFile(text, uri.path_of(text).text, digest, size)
    except UnsafePath as error:
        raise _Wrong(Code.MCP_URI, f"{text[:_SHOWN]!r} is refused: {error.reason}") from None


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _HUGE


def _check_files(entry: ServedEntry) -> None:
    paths = [file.path for file in entry.files]
    if (collision := find_collision(paths)) is not None:
        raise _Wrong(Code.MCP_REPEATED, f"{collision.path!r} is refused: {collision.reason}")
    if inside := next((path for path in paths if is_version_controlled(path)), ""):
        raise _Wrong(Code.MCP_URI, f"{inside!r} is refused: it belongs to version control")
    own = entry.file(SKILL_MD)
    if own is None or own.uri != entry.uri:
        raise _Wrong(Code.MCP_ENTRY, f"the entry does not list its own {SKILL_MD}")
    if entry.total > MAX_SERVED_TOTAL:
        message = f"the skill has {entry.total} bytes; at most {MAX_SERVED_TOTAL} are taken"
        raise _Wrong(Code.MCP_LIMIT, message)


# Several entries together


def compare_entries(entries: Sequence[ServedEntry]) -> list[ServedEntry]:
    """The entries of one server, each with what the others mean for it. None is left out."""
    uris = Counter(entry.uri for entry in entries)
    names = Counter(entry.name for entry in entries)
    within = _within(entries)
    return [
        entry._replace(findings=(*entry.findings, *_beside(entry, uris, names, within)))
        for entry in entries
    ]


def _beside(
    entry: ServedEntry,
    uris: Mapping[str, int],
    names: Mapping[str, int],
    within: Mapping[str, Sequence[str]],
) -> Iterator[Finding]:
    """What the other entries mean for this one."""
    found = []
    if uris[entry.uri] > 1:
        found.append(Finding(Code.MCP_REPEATED, "the server announces this URI more than once"))
    elif entry.name and names[entry.name] > 1:
        message = f"the server has {names[entry.name]} skills named {entry.name!r}"
        found.append(Finding(Code.SAME_NAME, message, hint=f"call this one {entry.path!r}"))
    listed = {file.uri for file in entry.files}
    for uri in within.get(entry.uri, ()) if entry.files else ():
        if uri not in listed:
            message = f"the entry does not list {uri!r}, which the server has inside the skill"
            found.append(Finding(Code.MCP_UNLISTED, message))
    if any(file.path.endswith(f"/{SKILL_MD}") for file in entry.files):
        message = "the skill holds another skill, which is not approved along with it"
        found.append(Finding(Code.MCP_NESTED, message))
    return (finding.at(entry.uri, entry.name) for finding in found)


def _within(entries: Sequence[ServedEntry]) -> dict[str, list[str]]:
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


def check_bytes(file: ServedFile, data: bytes) -> Finding | None:
    """What keeps the bytes from being the file that was announced."""
    if len(data) != file.size:
        message = f"{file.path!r} has {len(data)} bytes; the server announced {file.size}"
        return Finding(Code.MCP_SIZE, message, path=file.uri)
    if f"sha256:{sha256_of(data)}" != file.digest:
        message = f"{file.path!r} is not what the server announced: its digest is another one"
        return Finding(Code.MCP_DIGEST, message, path=file.uri)
    return None


def check_served_frontmatter(entry: ServedEntry, data: bytes) -> Finding | None:
    """What the frontmatter of a fetched SKILL.md says otherwise than its entry did."""
    fields = parse_head(data, entry.name).frontmatter.fields
    names = differing_fields(entry.frontmatter, fields)
    if not names:
        return None
    told = ", ".join(repr(name[:_SHOWN]) for name in names[:_FEW])
    message = f"{SKILL_MD} says otherwise than the server announced: {told}"
    return Finding(Code.MCP_FRONTMATTER, message, path=entry.uri)


def unlisted_file(entry: ServedEntry, path: str) -> Finding:
    """The finding for a file that is asked for and not in the entry."""
    message = f"{path[:_SHOWN]!r} is not among the files that the server announced"
    return Finding(Code.MCP_UNLISTED, message, path=entry.uri)


def differing_fields(announced: Mapping[str, object], fields: Mapping[str, Value]) -> list[str]:
    """The fields that only one side has, or that differ, by name.

    Readers of YAML differ in what is more than text: `1.10` may arrive as 1.1, `yes` as true.
    """
    return [
        name
        for name in sorted({*announced, *fields})
        if name not in announced
        or name not in fields
        or not _is_same(announced[name], fields[name])
    ]


def _is_same(value: object, own: Value) -> bool:
    if isinstance(value, dict):
        return isinstance(own, dict) and not differing_fields(value, own)
    if isinstance(value, list):
        return (
            isinstance(own, list)
            and len(value) == len(own)
            and all(_is_same(one, other) for one, other in zip(value, own, strict=True))
        )
    if isinstance(own, list | dict):
        return False
    if isinstance(value, bool) or value is None:
        return own is value or (isinstance(own, str) and own.strip().lower() in _WORDS[value])
    if isinstance(value, str):
        return isinstance(own, str) and value.rstrip() == own.rstrip()
    return isinstance(own, str) and any(value == number for number in _numbers(own.strip()))


def _numbers(text: str) -> Iterator[float]:
    """The numbers that a reader of YAML may take a text for."""
    for reader in (float, _whole, _octal):
        try:
            yield reader(text)
        except (ValueError, OverflowError):
            continue


def _whole(text: str) -> int:
    return int(text, 0)


def _octal(text: str) -> int:
    return int(text, 8)
