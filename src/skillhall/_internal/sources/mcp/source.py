"""The skills of an MCP server, used where they are: listed, read file by file, never local.

A skill is known by its server's label and its URI together. Its entry is held for as long as the
skill is used: a file that is not in it, or not what it says, is refused.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.net.connection import Patience
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.selection import shown_to_models
from skillhall._internal.render.activation import render_activation
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, sha256_of
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE, MAX_TOTAL
from skillhall._internal.sources.mcp.entry import (
    ServedEntry,
    ServedFile,
    check_bytes,
    check_served_frontmatter,
    compare_entries,
    read_entry,
    unlisted_file,
)
from skillhall._internal.sources.mcp.servers_file import cache_folder, connect, find_server
from skillhall._internal.sources.ref import McpRef
from skillhall._internal.storage.content_store import ContentStore
from skillhall.errors import ServedSkillRejected, SkillNotFound, SourceRejected, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.skill.parsed import ParsedSkill
    from skillhall._internal.sources.mcp.client import SkillServer

_WHAT_IT_HAS: Final = "'skillhall mcp-servers skills {}' shows what it offers"


class ServedSkill(NamedTuple):
    """A skill of a server and the entry that is held for it; an entry of a listing, too."""

    label: str
    entry: ServedEntry

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
    def findings(self) -> tuple[Judged, ...]:
        """What was noticed about its entry; none of its files was read for it."""
        return LENIENT.load.judge(self.entry.findings)

    @property
    def is_usable(self) -> bool:
        """Whether nothing keeps it out."""
        return all(one.effect is not Effect.REJECT for one in self.findings)

    @property
    def hidden(self) -> bool:
        """Whether no model may see it: it asks for that, or something keeps it out."""
        return not (self.is_usable and shown_to_models(self.entry))


class ServedSkills:
    """The skills of one server that answers; `open_served` is the way to make one."""

    def __init__(self, label: str, server: SkillServer, cache: str) -> None:
        self.label = label
        self._server = server
        self._cache = cache

    def list(self) -> tuple[ServedSkill, ...]:
        """Every skill that the server announces; no file of any is fetched.

        A server need not announce all that it has: see `find`. Raises: SkillhallError.
        """
        entries = compare_entries([read_entry(value) for value in self._server.entries()])
        return tuple(ServedSkill(self.label, entry) for entry in entries)

    def visible(self) -> tuple[ServedSkill, ...]:
        """Those that a model may be told of: neither kept out nor hidden. Raises: as `list`."""
        return tuple(one for one in self.list() if shown_to_models(one))

    def find(self, word: str) -> ServedSkill:
        """The skill of a URI, of a path, or of a name, as the server has it at this moment.

        Raises: SkillNotFound, SourceRejected if a name is that of several, SkillhallError.
        """
        if "://" in word:
            return self._confirmed(word)
        skills = self.list()
        found = [one for one in skills if one.entry.path == word]
        found = found or [one for one in skills if one.entry.name == word]
        if len(found) > 1:
            told = ", ".join(one.entry.uri for one in found)
            problem = "several skills of the server are called that"
            raise SourceRejected("path", word, problem, f"name one of them: {told}")
        # What is not announced may be there all the same.
        return found[0] if found else self._confirmed(f"skill://{word}/{SKILL_MD}", word, skills)

    def read(self, skill: ServedSkill, path: str) -> bytes:
        """The bytes of a file, checked whether they were kept or come from the server.

        Raises: ServedSkillRejected, UnsafePath, SkillhallError.
        """
        file = self._held(skill, path)
        store = ContentStore(os.path.join(self._cache, sha256_of(skill.entry.uri.encode())))
        kept = store.find(file.digest.removeprefix("sha256:"))
        if kept is not None:
            return self._checked(skill, file, kept)
        data = self._fetched(skill, file)
        with suppress(OSError):  # it only saves the next fetch
            store.keep(data)
        return data

    def parse(self, skill: ServedSkill) -> ParsedSkill:
        """The skill's own file, read. Raises: as `read`."""
        return parse_skill(self.read(skill, SKILL_MD), skill.entry.name)

    def activate(self, skill: ServedSkill) -> str:
        """What a model gets when it asks for the skill: it says where the words come from.

        Nothing that the skill asks for, as `allowed-tools`, is granted. Raises: as `read`.
        """
        body = self.parse(skill).body
        folder = skill.location.removesuffix(f"/{SKILL_MD}")
        paths = [file.path for file in skill.entry.files if file.path != SKILL_MD]
        return render_activation(skill.name, folder, body, paths)

    def bundle(self, skill: ServedSkill) -> Bundle:
        """All files in memory, of which none is a program; one that is refused says why instead.

        Raises: SkillhallError for a server that fails.
        """
        return self.bundles([skill])[0]

    def bundles(self, skills: Iterable[ServedSkill]) -> tuple[Bundle, ...]:
        """The same for several, all within the time for one. Raises: as `bundle`."""
        patience = Patience(self._server.timing.fetching)
        return tuple(self._bundle(skill, patience) for skill in skills)

    def _bundle(self, skill: ServedSkill, patience: Patience) -> Bundle:
        entry = skill.entry
        try:
            self._refuse_unusable(skill)
            files = {file.path: self._taken(skill, file, patience) for file in entry.files}
        except ServedSkillRejected as error:
            found = Finding(Code(error.finding), error.problem)
            return Bundle(entry.name or "skill", {}, (found,), path=entry.uri)
        noted = tuple(found.at("", found.skill) for found in entry.findings)
        return Bundle(entry.name, dict(sorted(files.items())), noted, path=entry.uri)

    def _confirmed(
        self, uri: str, word: str = "", beside: Sequence[ServedSkill] = ()
    ) -> ServedSkill:
        """The skill at a URI, if the server says that it is one."""
        value = self._server.entry(uri)
        if value is None:
            close = get_close_matches(word, [one.entry.name for one in beside])
            raise SkillNotFound(word or uri, close, _WHAT_IT_HAS.format(self.label))
        entry = read_entry(value)
        if entry.uri != uri:
            problem = f"the server answers with the entry of {entry.uri[:100]!r}"
            raise ServedSkillRejected(self.label, uri, Code.MCP_ENTRY, problem)
        return ServedSkill(self.label, compare_entries([entry])[0])

    def _held(self, skill: ServedSkill, path: str) -> ServedFile:
        self._refuse_unusable(skill)
        file = skill.entry.file(RelativePath.parse(path).text)
        if file is None:
            raise self._rejected(skill, unlisted_file(skill.entry, path))
        return file

    def _refuse_unusable(self, skill: ServedSkill) -> None:
        for judged in skill.findings:
            if judged.effect is Effect.REJECT:
                raise self._rejected(skill, judged.finding)

    def _taken(self, skill: ServedSkill, file: ServedFile, patience: Patience) -> SkillFile:
        if file.size > MAX_FILE:
            message = f"{file.path!r} has {file.size} bytes; at most {MAX_FILE} are taken"
            raise self._rejected(skill, Finding(Code.MCP_LIMIT, message))
        data = self._fetched(skill, file, patience)
        path = RelativePath.parse(file.path)
        return SkillFile(path, len(data), executable=False, read=lambda: data)

    def _fetched(
        self, skill: ServedSkill, file: ServedFile, patience: Patience | None = None
    ) -> bytes:
        try:
            data = self._server.read(file.uri, file.size, patience)
        except TooLarge:
            message = f"{file.path!r} is far longer than the {file.size} bytes announced"
            raise self._rejected(skill, Finding(Code.MCP_SIZE, message)) from None
        if data is None:
            message = f"the server does not hand out {file.path!r}, which it announced"
            raise self._rejected(skill, Finding(Code.MCP_MISSING, message))
        return self._checked(skill, file, data)

    def _checked(self, skill: ServedSkill, file: ServedFile, data: bytes) -> bytes:
        found = check_bytes(file, data)
        if found is None and file.path == SKILL_MD:
            found = check_served_frontmatter(skill.entry, data)
        if found is not None:
            raise self._rejected(skill, found)
        return data

    def _rejected(self, skill: ServedSkill, found: Finding) -> ServedSkillRejected:
        return ServedSkillRejected(self.label, skill.entry.uri, found.code, found.message)


@contextmanager
def open_served(label: str, settings: Settings | None = None) -> Iterator[ServedSkills]:
    """The skills of the server that the person gave this label, while the block lasts.

    Raises: UnknownMcpServer, SkillsNotServed, SourceRejected, ConfigInvalid, SourceUnavailable.
    """
    known = Settings.read() if settings is None else settings
    with connect(known, find_server(known, label)) as found:
        yield ServedSkills(label, found, cache_folder(known, label))


def served_bundles(reference: McpRef, settings: Settings) -> tuple[Bundle, ...]:
    """The skills that a reference names, each with all its files, or with why it is refused.

    Raises: SkillNotFound, TooLarge, and what `open_served` raises.
    """
    with open_served(reference.label, settings) as served:
        skills = [served.find(reference.skill)] if reference.skill else served.list()
        if sum(one.entry.total for one in skills) > MAX_TOTAL:
            raise TooLarge(reference.text, MAX_TOTAL)
        return served.bundles(skills)
