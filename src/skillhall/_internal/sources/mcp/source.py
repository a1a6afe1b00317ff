"""The skills of an MCP server, used where they are: listed, read file by file, never local.

A skill is known by its server's label and its URI together. Its entry is held for as long as the
skill is used: a file that is not in it, or not what it says, is refused.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.net.connection import Timeout
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.selection import is_visible_to_models
from skillhall._internal.render.activation import render_activation
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, sha256_hex
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE_SIZE, MAX_TOTAL_SIZE
from skillhall._internal.sources.mcp.entry import (
    McpFileEntry,
    McpSkillEntry,
    build_unlisted_finding,
    cross_check_entries,
    parse_entry,
    verify_file,
    verify_frontmatter,
)
from skillhall._internal.sources.mcp.servers_file import cache_folder, connect, find_server
from skillhall._internal.sources.ref import McpRef
from skillhall._internal.storage.content_store import ContentStore
from skillhall.errors import McpSkillNotFound, ServedSkillRejected, SourceRejected, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.parsed import ParsedSkill
    from skillhall._internal.sources.mcp.client import McpSkillClient


class McpSkill(NamedTuple):
    """A skill of a server and the entry that is held for it; an entry of a listing, too."""

    label: str
    entry: McpSkillEntry

    @property
    def name(self) -> str:
        """What a model calls it: never a bare name, which could be a local skill's."""
        is_shared = any(found.code is Code.SAME_NAME for found in self.entry.findings)
        return f"{self.label}:{self.entry.path if is_shared else self.entry.name}"

    @property
    def description(self) -> str:
        """What it does and when to use it, as the server says."""
        return self.entry.description

    @property
    def location(self) -> str:
        """Its identity: the server's label and the URI."""
        return McpRef(self.label, self.entry.uri).text

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """What was noticed about its entry; none of its files was read for it."""
        return LENIENT.load_policy.judge(self.entry.findings)

    @property
    def is_usable(self) -> bool:
        """Whether nothing keeps it out."""
        return all(one.effect is not Effect.REJECT for one in self.findings)

    @property
    def hidden(self) -> bool:
        """Whether no model may see it: it asks for that, or something keeps it out."""
        return not (self.is_usable and is_visible_to_models(self.entry))


class McpSkillSource:
    """The skills of one server that answers; `open_served` is the way to make one."""

    def __init__(self, label: str, server: McpSkillClient, cache: str) -> None:
        self.label = label
        self._server = server
        self._cache = cache

    def list(self) -> tuple[McpSkill, ...]:
        """Every skill that the server announces; no file of any is fetched.

        A server need not announce all that it has: see `find`. Raises: SkillhallError.
        """
        entries = cross_check_entries([parse_entry(value) for value in self._server.list_entries()])
        return tuple(McpSkill(self.label, entry) for entry in entries)

    def visible(self) -> tuple[McpSkill, ...]:
        """Those that a model may be told of: neither kept out nor hidden. Raises: as `list`."""
        return tuple(one for one in self.list() if is_visible_to_models(one))

    def find(self, reference: str) -> McpSkill:
        """The skill of a URI, of a path, or of a name, as the server has it at this moment.

        Raises: SkillNotFound, SourceRejected if a name is that of several, SkillhallError.
        """
        if "://" in reference:
            return self._fetch_entry(reference)
        skills = self.list()
        found = [one for one in skills if one.entry.path == reference]
        found = found or [one for one in skills if one.entry.name == reference]
        if len(found) > 1:
            told = ", ".join(one.entry.uri for one in found)
            problem = "several skills of the server are called that"
            raise SourceRejected("path", reference, problem, f"name one of them: {told}")
        # What is not announced may be there all the same.
        return (
            found[0]
            if found
            else self._fetch_entry(f"skill://{reference}/{SKILL_MD}", reference, skills)
        )

    def read(self, skill: McpSkill, path: str) -> bytes:
        """The bytes of a file, checked whether they were kept or come from the server.

        Raises: ServedSkillRejected, UnsafePath, SkillhallError.
        """
        file = self._find_file(skill, path)
        store = ContentStore(os.path.join(self._cache, sha256_hex(skill.entry.uri.encode())))
        kept = store.find(file.digest.removeprefix("sha256:"))
        if kept is not None:
            return self._verify_bytes(skill, file, kept)
        data = self._fetch_bytes(skill, file)
        with suppress(OSError):  # it only saves the next fetch
            store.put(data)
        return data

    def parse(self, skill: McpSkill) -> ParsedSkill:
        """The skill's own file, read. Raises: as `read`."""
        return parse_skill(self.read(skill, SKILL_MD), skill.entry.name)

    def activate(self, skill: McpSkill) -> str:
        """What a model gets when it asks for the skill: it says where the words come from.

        Nothing that the skill asks for, as `allowed-tools`, is granted. Raises: as `read`.
        """
        body = self.parse(skill).body
        folder = skill.location.removesuffix(f"/{SKILL_MD}")
        paths = [file.path for file in skill.entry.files if file.path != SKILL_MD]
        return render_activation(skill.name, folder, body, paths)

    def bundle(self, skill: McpSkill) -> Bundle:
        """All files in memory, of which none is a program; one that is refused says why instead.

        Raises: SkillhallError for a server that fails.
        """
        return self.bundles([skill])[0]

    def bundles(self, skills: Iterable[McpSkill]) -> tuple[Bundle, ...]:
        """The same for several, all within the time for one. Raises: as `bundle`."""
        patience = Timeout(self._server.timeouts.download)
        return tuple(self._download_bundle(skill, patience) for skill in skills)

    def _download_bundle(self, skill: McpSkill, timeout: Timeout) -> Bundle:
        entry = skill.entry
        try:
            self._check_usable(skill)
            files = {file.path: self._download_file(skill, file, timeout) for file in entry.files}
        except ServedSkillRejected as error:
            found = Finding(Code(error.finding), error.problem)
            return Bundle(entry.name or "skill", {}, (found,), path=entry.uri)
        noted = tuple(found.with_location("", found.skill) for found in entry.findings)
        return Bundle(entry.name, dict(sorted(files.items())), noted, path=entry.uri)

    def _fetch_entry(
        self, uri: str, reference: str = "", listed_skills: Sequence[McpSkill] = ()
    ) -> McpSkill:
        """The skill at a URI, if the server says that it is one."""
        value = self._server.get_entry(uri)
        if value is None:
            close = get_close_matches(reference, [one.entry.name for one in listed_skills])
            raise McpSkillNotFound(reference or uri, close, label=self.label)
        entry = parse_entry(value)
        if entry.uri != uri:
            problem = f"the server answers with the entry of {entry.uri[:100]!r}"
            raise ServedSkillRejected(self.label, uri, Code.MCP_ENTRY, problem)
        return McpSkill(self.label, cross_check_entries([entry])[0])

    def _find_file(self, skill: McpSkill, path: str) -> McpFileEntry:
        self._check_usable(skill)
        file = skill.entry.find_file(RelativePath.parse(path).text)
        if file is None:
            raise self._build_rejection(skill, build_unlisted_finding(skill.entry, path))
        return file

    def _check_usable(self, skill: McpSkill) -> None:
        for judged in skill.findings:
            if judged.effect is Effect.REJECT:
                raise self._build_rejection(skill, judged.finding)

    def _download_file(self, skill: McpSkill, file: McpFileEntry, timeout: Timeout) -> SkillFile:
        if file.size > MAX_FILE_SIZE:
            message = f"{file.path!r} has {file.size} bytes; at most {MAX_FILE_SIZE} are taken"
            raise self._build_rejection(skill, Finding(Code.MCP_LIMIT, message))
        data = self._fetch_bytes(skill, file, timeout)
        path = RelativePath.parse(file.path)
        return SkillFile(path, len(data), executable=False, read=lambda: data)

    def _fetch_bytes(
        self, skill: McpSkill, file: McpFileEntry, timeout: Timeout | None = None
    ) -> bytes:
        try:
            data = self._server.read_file(file.uri, file.size, timeout)
        except TooLarge:
            message = f"{file.path!r} is far longer than the {file.size} bytes announced"
            raise self._build_rejection(skill, Finding(Code.MCP_SIZE, message)) from None
        if data is None:
            message = f"the server does not hand out {file.path!r}, which it announced"
            raise self._build_rejection(skill, Finding(Code.MCP_MISSING, message))
        return self._verify_bytes(skill, file, data)

    def _verify_bytes(self, skill: McpSkill, file: McpFileEntry, data: bytes) -> bytes:
        found = verify_file(file, data)
        if found is None and file.path == SKILL_MD:
            found = verify_frontmatter(skill.entry, data)
        if found is not None:
            raise self._build_rejection(skill, found)
        return data

    def _build_rejection(self, skill: McpSkill, found: Finding) -> ServedSkillRejected:
        return ServedSkillRejected(self.label, skill.entry.uri, found.code, found.message)


@contextmanager
def open_mcp_source(label: str, settings: Settings | None = None) -> Iterator[McpSkillSource]:
    """The skills of the server that the person gave this label, while the block lasts.

    Raises: UnknownMcpServer, SkillsNotServed, SourceRejected, ConfigInvalid, SourceUnavailable.
    """
    known = Settings.read() if settings is None else settings
    with connect(known, find_server(known, label)) as found:
        yield McpSkillSource(label, found, cache_folder(known, label))


def read_mcp_bundles(reference: McpRef, settings: Settings) -> tuple[Bundle, ...]:
    """The skills that a reference names, each with all its files, or with why it is refused.

    Raises: SkillNotFound, TooLarge, and what `open_served` raises.
    """
    with open_mcp_source(reference.label, settings) as served:
        skills = [served.find(reference.skill)] if reference.skill else served.list()
        if sum(one.entry.total_bytes for one in skills) > MAX_TOTAL_SIZE:
            raise TooLarge(reference.text, MAX_TOTAL_SIZE)
        return served.bundles(skills)
