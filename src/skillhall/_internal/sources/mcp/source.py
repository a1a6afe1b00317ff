"""Skills from an MCP server, listed and read file by file without installing them.

The server's label and the URI identify a skill. Its files are verified against its entry: a file
that is not listed there, or does not match, is rejected.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.hints import find_close_names
from skillhall._internal.net.connection import Timeout
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.render.activation import render_activation
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, sha256_hex
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
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
from skillhall._internal.sources.mcp.mcp_ref import McpRef
from skillhall._internal.sources.mcp.servers_file import cache_folder, connect, find_server
from skillhall._internal.storage.content_store import ContentStore
from skillhall.errors import (
    McpSkillNotFound,
    NoSkillThere,
    ServedSkillRejected,
    SourceRejected,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.parsed import ParsedSkill
    from skillhall._internal.sources.mcp.client import McpSkillClient


class McpSkill(NamedTuple):
    """Skill on an MCP server, with its entry.

    >>> with open_mcp_source("acme") as source:
    ...     skill = source.find("pdf")
    >>> skill.name, skill.location
    ('acme:pdf', 'mcp:acme/skill://pdf/SKILL.md')
    """

    label: str
    entry: McpSkillEntry

    @property
    def name(self) -> str:
        """Name for models, with the server's label to tell it from local skills."""
        is_shared = any(finding.code is Code.SAME_NAME for finding in self.entry.findings)
        return f"{self.label}:{self.entry.path if is_shared else self.entry.name}"

    @property
    def description(self) -> str:
        """Description in the entry."""
        return self.entry.description

    @property
    def location(self) -> str:
        """Source reference: the server's label and the URI."""
        return McpRef(self.label, self.entry.uri).text

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """Findings about the entry; no file is read for them."""
        return LENIENT.load_policy.judge(self.entry.findings)

    @property
    def is_usable(self) -> bool:
        """Whether no finding rejects the skill."""
        return all(finding.effect is not Effect.REJECT for finding in self.findings)

    @property
    def hidden(self) -> bool:
        """Whether the skill is hidden from models, or rejected."""
        return not (self.is_usable and is_visible_to_models(self.entry))


class McpSkillSource:
    r"""Skills on one connected server. Create it with `open_mcp_source`.

    >>> with open_mcp_source("acme") as source:
    ...     source.read(source.find("pdf"), "references/forms.md")
    b'# Forms\r\n'
    """

    def __init__(self, label: str, server: McpSkillClient, cache: str) -> None:
        self.label = label
        self._server = server
        self._cache = cache

    def list(self) -> tuple[McpSkill, ...]:
        """Return all listed skills, without fetching files. Raises: SkillhallError.

        A server may have unlisted skills: see `find`.
        """
        entries = cross_check_entries([parse_entry(value) for value in self._server.list_entries()])
        return tuple(McpSkill(self.label, entry) for entry in entries)

    def visible(self) -> tuple[McpSkill, ...]:
        """Return the listed skills that are visible to models. Raises: as `list`."""
        return tuple(skill for skill in self.list() if is_visible_to_models(skill))

    def find(self, reference: str) -> McpSkill:
        """Return the skill that currently has this URI, path or name on the server.

        Raises: SkillNotFound, SourceRejected if a name is ambiguous, SkillhallError.
        """
        if "://" in reference:
            return self._fetch_entry(reference)
        skills = self.list()
        matches = [skill for skill in skills if skill.entry.path == reference]
        matches = matches or [skill for skill in skills if skill.entry.name == reference]
        if len(matches) > 1:
            uris = ", ".join(skill.entry.uri for skill in matches)
            problem = "several skills on the server have this name"
            raise SourceRejected("path", reference, problem, f"use one of these URIs: {uris}")
        if matches:
            return matches[0]
        # The server may have skills that it does not list.
        return self._fetch_entry(f"skill://{reference}/{SKILL_MD}", reference, skills)

    def read(self, skill: McpSkill, path: str) -> bytes:
        """Read a file from the cache or the server, and verify it.

        Raises: ServedSkillRejected, UnsafePath, SkillhallError.
        """
        self._check_usable(skill)
        file = skill.entry.find_file(RelativePath.parse(path).text)
        if file is None:
            raise self._build_rejection(skill, build_unlisted_finding(skill.entry, path))
        store = ContentStore(os.path.join(self._cache, sha256_hex(skill.entry.uri.encode())))
        cached = store.find(file.digest.removeprefix("sha256:"))
        if cached is not None:
            return self._verify_bytes(skill, file, cached)
        data = self._fetch_bytes(skill, file)
        with suppress(OSError):  # the cache is optional
            store.put(data)
        return data

    def parse(self, skill: McpSkill) -> ParsedSkill:
        """Parse the skill's SKILL.md. Raises: as `read`."""
        return parse_skill(self.read(skill, SKILL_MD), skill.entry.name)

    def activate(self, skill: McpSkill) -> str:
        """Return the instructions for a model, with their source. Raises: as `read`.

        Permissions that the skill requests, such as `allowed-tools`, are not granted.
        """
        body = self.parse(skill).body
        folder = skill.location.removesuffix(f"/{SKILL_MD}")
        paths = [file.path for file in skill.entry.files if file.path != SKILL_MD]
        return render_activation(skill.name, folder, body, paths)

    def bundle(self, skill: McpSkill) -> Bundle:
        """Download a skill; no file is executable.

        The bundle of a rejected skill has a finding instead of files. Raises: SkillhallError if the
        server fails.
        """
        return self.bundles([skill])[0]

    def bundles(self, skills: Iterable[McpSkill]) -> tuple[Bundle, ...]:
        """Download several skills, all within one timeout. Raises: as `bundle`."""
        timeout = Timeout(self._server.timeouts.download)
        return tuple([self._download_bundle(skill, timeout) for skill in skills])

    def _download_bundle(self, skill: McpSkill, timeout: Timeout) -> Bundle:
        entry = skill.entry
        try:
            self._check_usable(skill)
            files = {file.path: self._download_file(skill, file, timeout) for file in entry.files}
        except ServedSkillRejected as error:
            finding = Finding(Code(error.finding), error.problem)
            return Bundle(entry.name or "skill", {}, (finding,), path=entry.uri)
        findings = tuple(finding.with_location("", finding.skill) for finding in entry.findings)
        return Bundle(entry.name, dict(sorted(files.items())), findings, path=entry.uri)

    def _fetch_entry(
        self, uri: str, reference: str = "", listed_skills: Sequence[McpSkill] = ()
    ) -> McpSkill:
        """Return the skill with this URI. Raises: SkillNotFound, ServedSkillRejected."""
        value = self._server.get_entry(uri)
        if value is None:
            close = find_close_names(reference, [skill.entry.name for skill in listed_skills])
            raise McpSkillNotFound(reference or uri, close, label=self.label)
        entry = parse_entry(value)
        if entry.uri != uri:
            problem = f"the server sent the entry of {entry.uri[:100]!r} instead"
            raise ServedSkillRejected(self.label, uri, Code.MCP_ENTRY, problem)
        return McpSkill(self.label, cross_check_entries([entry])[0])

    def _check_usable(self, skill: McpSkill) -> None:
        for judged in skill.findings:
            if judged.effect is Effect.REJECT:
                raise self._build_rejection(skill, judged.finding)

    def _download_file(self, skill: McpSkill, file: McpFileEntry, timeout: Timeout) -> SkillFile:
        if file.size > MAX_FILE_SIZE:
            message = f"{file.path!r} has {file.size} bytes; the limit is {MAX_FILE_SIZE}"
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
            message = f"{file.path!r} is much larger than the {file.size} bytes in its entry"
            raise self._build_rejection(skill, Finding(Code.MCP_SIZE, message)) from None
        if data is None:
            message = f"the server does not have {file.path!r}, which the skill's entry lists"
            raise self._build_rejection(skill, Finding(Code.MCP_MISSING, message))
        return self._verify_bytes(skill, file, data)

    def _verify_bytes(self, skill: McpSkill, file: McpFileEntry, data: bytes) -> bytes:
        finding = verify_file(file, data)
        if finding is None and file.path == SKILL_MD:
            finding = verify_frontmatter(skill.entry, data)
        if finding is not None:
            raise self._build_rejection(skill, finding)
        return data

    def _build_rejection(self, skill: McpSkill, finding: Finding) -> ServedSkillRejected:
        return ServedSkillRejected(self.label, skill.entry.uri, finding.code, finding.message)


@contextmanager
def open_mcp_source(label: str, settings: Settings | None = None) -> Iterator[McpSkillSource]:
    """Connect to the server with this label, for the duration of a `with` block.

    Raises: UnknownMcpServer, SkillsNotServed, SourceRejected, ConfigInvalid, SourceUnavailable.

    >>> with open_mcp_source("acme") as source:
    ...     print([skill.name for skill in source.list()])
    ['acme:pdf']
    """
    settings = Settings.read() if settings is None else settings
    with connect(settings, find_server(settings, label)) as client:
        yield McpSkillSource(label, client, cache_folder(settings, label))


def read_mcp_bundles(reference: McpRef, settings: Settings) -> tuple[Bundle, ...]:
    """Download the skills of a reference.

    Bundles of rejected skills have a finding instead of files.
    Raises: NoSkillThere, SkillNotFound, TooLarge, and as `open_mcp_source`.
    """
    with open_mcp_source(reference.label, settings) as source:
        skills = [source.find(reference.skill)] if reference.skill else source.list()
        if sum(skill.entry.total_bytes for skill in skills) > MAX_TOTAL_SIZE:
            raise TooLarge(reference.text, MAX_TOTAL_SIZE)
        bundles = source.bundles(skills)
    if not bundles:
        hint = f"it may have unlisted skills: name one, as in {reference.text}/name"
        raise NoSkillThere(reference.text, hint)
    return bundles
