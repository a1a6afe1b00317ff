"""Collection: all skills that a server shows, from its store and its repositories.

A request reads only the files of the skills that it asks for: the store's live catalog detects
changes to the others.
"""

from __future__ import annotations

import gzip
import logging
import operator
import os
import threading
import time
from bisect import bisect_right
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.portability import check_agents, judge_skill_md
from skillhall._internal.authoring.skill_examination import examine_skill
from skillhall._internal.catalog.duplicates.near_copies import PresentSkill, find_near_copy
from skillhall._internal.catalog.repository_skills import RepositoryOrigin, RepositorySkillSet
from skillhall._internal.catalog.search.background_index import (
    BackgroundIndex,
    IndexInput,
    build_index_path,
)
from skillhall._internal.catalog.skill_content import (
    open_skill_bundle,
    read_published_file,
    read_skill_md,
    with_bundle,
)
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.catalog.trust.server_gate import ServedClearance, ServerGate
from skillhall._internal.catalog.trust.trust_summary import (
    SkillProvenance,
    TrustSummary,
)
from skillhall._internal.hints import find_close_names
from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.installer.install_rules import InstallRules, load_install_rules
from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import remove_hidden_files
from skillhall._internal.policy.skipped_items import collect_skipped
from skillhall._internal.skill.bundle import RelativePath, fold_name, sha256_hex
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.draft import SkillDraft, draft_skill
from skillhall._internal.skill_store.input_checks import (
    NOT_SHADOWED_HINT,
    SYSTEM,
    USER,
    SkillSummary,
    find_skill_md,
)
from skillhall._internal.skill_store.serializers import serialize_table_row
from skillhall._internal.skill_store.skill_analysis import PUBLISHED_SCAN, FactCache
from skillhall._internal.skill_store.skill_table import (
    SkillQuery,
    SkillTable,
    TablePage,
    TableRow,
)
from skillhall._internal.skill_store.store import (
    ALL_FILES_SCAN,
    FOLDER_BY_SOURCE,
    WRITTEN_HERE,
    ImportOrigin,
)
from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
from skillhall._internal.skill_store.versions.pinned_versions import PinnedSkill, PinnedVersions
from skillhall._internal.skill_store.versions.skill_versions import PUBLIC_STATES, parse_pin
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS, read_archive
from skillhall._internal.sources.archive.upload import build_bundles, read_archive_or_skill_md
from skillhall._internal.sources.archive.zip_writer import pack_bundle, pack_bundles
from skillhall._internal.sources.base import OpenedSource, Ref
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall._internal.sources.opener import open_source
from skillhall._internal.sources.token_scope import open_client_source
from skillhall._internal.storage.server_revocations import RevokedDigests
from skillhall.errors import (
    ReadOnly,
    SkillFileNotFound,
    SkillhallError,
    SkillNotApproved,
    SkillNotFound,
    SourceRejected,
    TooLarge,
    VersionYanked,
    without_credentials,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.catalog.live_catalog import LoadedCatalog
    from skillhall._internal.catalog.search.search_index import SearchIndex
    from skillhall._internal.catalog.search.snippets import Snippet
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.policy.portability.client_rules import ClientVerdict
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.policy.trust.revocations import Revocation
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.lossless_editor import SkillText
    from skillhall._internal.skill_store.file_changes import ChangeFiles
    from skillhall._internal.skill_store.store import ImportReport, SkillStore
    from skillhall._internal.skill_store.undoable_changes import SkillChangeResult
    from skillhall._internal.skill_store.versions.skill_versions import SkillVersions
    from skillhall._internal.storage.records import SkillVersion

    # The second item is the id that undoes the change, or "" if it cannot be undone.
    SkillImportResult: TypeAlias = tuple[ImportReport, str]
    ReadRepositorySkills: TypeAlias = Callable[[], "RepositorySkillSet"]

SOURCES = ("user", "system", "repository")
REPOSITORY_SOURCE = "repository"
MAX_PAGE_SIZE = 1000  # skills
MAX_IMPORT_FILES = DEFAULT_ARCHIVE_LIMITS.entries  # per import
TABLE_TTL = 2.0  # seconds, while a thread examines the skills
MAX_ARCHIVED_BYTES = 100 * 1024 * 1024  # of several skills in one archive
MAX_EXAMINED_AT_ONCE = 50  # skills, by a request for the table
_SOURCE_LABELS = {USER: "on this server", SYSTEM: "part of this server"}
_UNKNOWN_ORIGIN = RepositoryOrigin("a repository")
_LOG = logging.getLogger("skillhall.server")


class CollectionPage(NamedTuple):
    """Page of the list or of search results, with the cursor of the next page."""

    skills: tuple[SkillSummary, ...]
    total: int
    next_cursor: str = ""  # last id of this page; "" on the last page


@dataclass(frozen=True, slots=True)
class SkillDetails:
    """All details of one skill at this moment."""

    entry: SkillSummary
    frontmatter: Mapping[str, object]
    body: str
    tokens: int
    digest: str
    files: tuple[SkillFile, ...]
    findings: tuple[JudgedFinding, ...]
    shadowed: tuple[SkillSummary, ...] = ()  # skills with the same id that are not served
    version: SkillVersion | None = None  # that the request named

    def judge_portability(
        self, skill: CatalogSkill, agents: Sequence[str] = ()
    ) -> tuple[ClientVerdict, ...]:
        """Return what each client would make of the skill. Raises: UnknownAgent."""
        check_agents(agents, AGENTS)
        data = next((file.read() for file in self.files if file.path.text == skill.file), b"")
        return judge_skill_md(data, skill.folder.rpartition("/")[2] or skill.id, agents)


class SkillArtifact(NamedTuple):
    """Skill as one download for installers: its SKILL.md alone, or an archive."""

    entry: SkillSummary
    is_archive: bool
    digest: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class EncodedDocument:
    """A document about all skills, encoded once."""

    data: bytes
    digest: str

    @cached_property
    def gzipped(self) -> bytes:
        """The data, compressed once."""
        return gzip.compress(self.data, mtime=0)


@dataclass(frozen=True)
class CollectionSnapshot:
    """Immutable state of the collection at one moment."""

    revision: str
    skills: Mapping[str, CatalogSkill]
    findings: tuple[JudgedFinding, ...]
    ids: tuple[str, ...]  # sorted
    origins: Mapping[str, RepositoryOrigin]
    shadowed: Mapping[str, tuple[CatalogSkill, ...]]  # skills that are not served, by id
    skipped: tuple[SkippedItem, ...]  # of the store and of repositories
    revoked: Mapping[str, Revocation] = field(default_factory=dict)  # by id
    documents: dict[str, EncodedDocument] = field(default_factory=dict, compare=False)  # by name

    @property
    def index_input(self) -> IndexInput:
        """The same skills, for the search index."""
        return IndexInput(self.revision, self.skills.values())

    @cached_property
    def _folded_names(self) -> Sequence[tuple[str, str]]:
        """Folded name and id of each skill, the shortest names first."""
        names = ((self.skills[identity].name.casefold(), identity) for identity in self.ids)
        return sorted(names, key=lambda row: (len(row[0]), row))

    def find_names(self, text: str, limit: int) -> list[str]:
        """Return the ids of skills whose name contains a text; names that start with it first."""
        folded = text.casefold()
        found = [row for row in self._folded_names if folded in row[0]]
        found.sort(key=lambda row: not row[0].startswith(folded))
        return [identity for _, identity in found[:limit]]

    @property
    def published_ids(self) -> list[str]:
        """Sorted ids of the skills that installers get: neither hidden nor revoked."""
        return [identity for identity in self.available_ids if not self.skills[identity].hidden]

    @property
    def available_ids(self) -> Sequence[str]:
        """Sorted ids of the skills that are not revoked."""
        if not self.revoked:
            return self.ids
        return [identity for identity in self.ids if identity not in self.revoked]

    @cached_property
    def _ids_by_source(self) -> Mapping[str, list[str]]:
        by_source: dict[str, list[str]] = {source: [] for source in SOURCES}
        for identity in self.ids:
            by_source[self.skills[identity].source].append(identity)
        return by_source

    def ids_of_source(self, source: str) -> list[str]:
        """Sorted ids of the skills of one source."""
        return self._ids_by_source[source]

    def get_entry(self, identity: str) -> SkillSummary:
        """Return the list row of a skill."""
        return self.summarize(self.skills[identity])

    def summarize(self, skill: CatalogSkill) -> SkillSummary:
        """Return the list row of a served or shadowed skill."""
        name = self.origins.get(skill.root.path, RepositoryOrigin()).repository
        revocation = self.revoked.get(skill.id) if self.skills.get(skill.id) is skill else None
        return SkillSummary(
            skill.id,
            skill.name,
            skill.description,
            skill.source,
            skill.hidden,
            name,
            revocation=revocation,
        )

    def page(self, after: str = "", limit: int = MAX_PAGE_SIZE, source: str = "") -> CollectionPage:
        """Return up to `limit` skills after an id, sorted by id; optionally of one source."""
        ids = self.ids_of_source(source) if source else self.ids
        start = bisect_right(ids, after)
        page_ids = ids[start : start + min(limit, MAX_PAGE_SIZE)]
        next_cursor = page_ids[-1] if page_ids and start + len(page_ids) < len(ids) else ""
        return CollectionPage(tuple(map(self.get_entry, page_ids)), len(ids), next_cursor)


class _CachedTable(NamedTuple):
    snapshot: CollectionSnapshot
    table: SkillTable
    is_complete: bool  # every skill has been examined
    expiry: float  # monotonic time, unless it is complete


@dataclass(slots=True)
class Collection:
    """Operations on a server's skills. Thread-safe."""

    store: SkillStore
    settings: Settings
    read_repositories: ReadRepositorySkills = field(default=RepositorySkillSet)
    read_revoked: Callable[[], RevokedDigests] = RevokedDigests
    on_change: Callable[[Iterable[CatalogSkill]], None] = lambda _: None  # with all skills
    semantic: SemanticRanking | None = None  # for search
    versions: SkillVersions | None = None  # None if they are not recorded
    served: ServerGate = field(default_factory=ServerGate)  # the gate
    _snapshot: CollectionSnapshot | None = None
    # Of the snapshot.
    _inputs: tuple[LoadedCatalog, RepositorySkillSet, RevokedDigests] | None = None
    _last_repository_skills: tuple[str, Sequence[CatalogSkill]] = ("", ())  # digest and skills
    _served_repository_skills: Sequence[CatalogSkill] = ()  # the same, as the snapshot has them
    _logged_skips: frozenset[SkippedItem] = frozenset()
    _move_count: int = 0  # how often equal repository skills moved to other folders
    _background_index: BackgroundIndex = field(init=False)
    _view: SkillView | None = None
    _table: _CachedTable | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    facts: FactCache = field(init=False)

    def __post_init__(self) -> None:
        """Create the caches; nothing is read before the first request."""
        cache_directory, location = self.settings.cache_directory, self.store.location
        self.facts = FactCache(cache_directory, location)
        path = build_index_path(cache_directory, "server", location)
        self._background_index = BackgroundIndex(path, semantic=self.semantic)

    def watch(self) -> None:
        """Detect changes and examine skills in the background. Call `close` when done."""
        self.facts.start()
        self.store.watch(self.snapshot)

    def close(self) -> None:
        """Stop the work in the background. Idempotent."""
        self.store.close()
        self.facts.close()
        self._background_index.close()

    def snapshot(self) -> CollectionSnapshot:
        """Return the current collection. It is rebuilt only after a change."""
        local, repositories, revoked = inputs = (
            self.store.current(),
            self.read_repositories(),
            self.read_revoked(),
        )
        snapshot, last = self._snapshot, self._inputs
        # Not `==`, which would compare every skill.
        if snapshot and last and all(map(operator.is_, inputs, last)):
            return snapshot
        with self._lock:
            digest, skills, origins = repositories
            revision = f"{local.revision}{digest}{self._move_suffix(digest, skills)}"
            revision += f"-{revoked.number}" if revoked.number else ""
            snapshot, last = self._snapshot, self._inputs
            is_same = snapshot is not None and snapshot.revision == revision
            if snapshot is None or last is None or not is_same or last[0] is not local:
                served = self._served_repository_skills
                built = _build_snapshot(revision, local.catalog, served, origins)
                found = self._find_revoked(built.skills, revoked)
                self._snapshot = built if not found else replace(built, revoked=found)
                if not is_same:
                    self._background_index.schedule(self._snapshot.index_input)
                self.facts.schedule(self._snapshot.skills.values())
                self.on_change(self._snapshot.skills.values())
                # Log only newly skipped items. Repositories log their own with each new commit.
                skipped = self._snapshot.skipped
                log_skipped("skills", [item for item in skipped if item not in self._logged_skips])
                self._logged_skips = frozenset(skipped)
                snapshot = self._snapshot
            self._inputs = inputs
            return snapshot

    def _find_revoked(
        self, skills: Mapping[str, CatalogSkill], revoked: RevokedDigests
    ) -> dict[str, Revocation]:
        """Return the skills whose files are revoked, by id."""
        if not revoked.by_digest:
            return {}
        found = {}
        for identity, skill in skills.items():
            # A skill that cannot be read is not served either.
            with suppress(SkillhallError, OSError):
                for digest in self.facts.get_digests(skill):
                    if digest in revoked.by_digest:
                        found[identity] = revoked.by_digest[digest]
        return found

    def _move_suffix(self, digest: str, skills: Sequence[CatalogSkill]) -> str:
        """Return a revision suffix that changes when equal skills move to other folders.

        This happens when a cache is cleared and the repository is fetched again.
        """
        last_digest, last_skills = self._last_repository_skills
        if skills is not last_skills:
            locations = [skill.location for skill in skills]
            last_locations = [skill.location for skill in last_skills]
            self._move_count += last_digest == digest and locations != last_locations
            self._last_repository_skills = digest, skills
            self._served_repository_skills = [*map(_set_repository_source, skills)]
        return f"-{self._move_count}" if self._move_count else ""

    def search(self, query: str, limit: int = MAX_PAGE_SIZE) -> CollectionPage:
        """Search names and descriptions, and complete texts once they are indexed."""
        snapshot = self.snapshot()
        groups, total = self.get_index(snapshot).find(query, limit)
        skills = (
            snapshot.get_entry(skill.id)._replace(copies=tuple(copy.id for copy in copies))
            for skill, *copies in groups
        )
        return CollectionPage(tuple(skills), total)

    def search_ids(self, snapshot: CollectionSnapshot, query: str) -> list[str]:
        """Return the ids of the best matches in a snapshot, each followed by its copies."""
        groups, _ = self.get_index(snapshot).find(query, MAX_PAGE_SIZE)
        return [skill.id for group in groups for skill in group]

    def archive_all(self, ids: Iterable[str]) -> bytes:
        """Pack the published files of several skills as a zip file, with one folder for each.

        Raises: as `find_available`, TooLarge, and errors from reading.
        """
        bundles, size = {}, 0
        for identity in ids:
            bundle = bundles[identity] = self.cleared_bundle(identity)
            size += sum(file.size for file in bundle.files.values())
            if size > MAX_ARCHIVED_BYTES:
                raise TooLarge("skills.zip", MAX_ARCHIVED_BYTES)
        return pack_bundles(bundles)

    def serialize_row(self, snapshot: CollectionSnapshot, identity: str) -> dict[str, object]:
        """Serialize a skill as a row of the table, with its facts."""
        facts = self.facts.get_or_default(snapshot.skills[identity])
        return serialize_table_row(snapshot.get_entry(identity), facts)

    def build_snippets(
        self, snapshot: CollectionSnapshot, query: str, ids: Iterable[str]
    ) -> list[tuple[Snippet, Snippet]]:
        """Return the name of each skill and the excerpt that matches a query."""
        skills = (snapshot.skills[identity] for identity in ids)
        return [*self.get_index(snapshot).build_snippets(query, skills)]

    def get_index(self, snapshot: CollectionSnapshot) -> SearchIndex:
        """Return the search index of a snapshot."""
        return self._background_index.get_index(snapshot.index_input)

    def current_view(self) -> SkillView:
        """Return the skills that models may see, for tools and MCP."""
        snapshot = self.snapshot()
        revision, clearance = self.clear(snapshot)
        with self._lock:
            if self._view is None or self._view.revision != revision:
                self._view = SkillView(
                    revision,
                    LOCAL_SKILLS,
                    clearance.cleared,
                    snapshot.findings,
                    partial(self.get_index, snapshot),
                    clearance=clearance,
                    summarize_trust=self.summarize_trust,
                )
            return self._view

    def clear(self, snapshot: CollectionSnapshot) -> ServedClearance:
        """Return which skills of a snapshot models get."""
        available = (snapshot.skills[identity] for identity in snapshot.available_ids)
        return self.served.clear(snapshot.revision, available)

    def summarize_trust(self, skill: CatalogSkill) -> TrustSummary:
        """Return who wrote and approved a skill, and whether models get it."""
        [summary] = self.summarize_all([skill])
        return summary

    def summarize_all(self, skills: Sequence[CatalogSkill]) -> list[TrustSummary]:
        """Return the summaries of several skills, in order."""
        revoked = self.snapshot().revoked
        summaries = self.served.summarize_all(
            skills,
            [*map(self._find_source, skills)],
            [self.store.find_approval(one.id) if one.source == USER else None for one in skills],
        )
        return [
            summary.with_revocation(revoked[skill.id].describe())
            if skill.id in revoked
            else summary
            for skill, summary in zip(skills, summaries, strict=True)
        ]

    def _find_source(self, skill: CatalogSkill) -> SkillProvenance:
        if skill.source == REPOSITORY_SOURCE:
            folder = skill.root.path
            origins = self.read_repositories().origins
            origin = origins.get(folder) or self.snapshot().origins.get(folder, _UNKNOWN_ORIGIN)
            return SkillProvenance(origin.repository, origin.commit)
        return SkillProvenance(_SOURCE_LABELS[skill.source])

    def import_source(
        self,
        text: str,
        identity: str | None = None,
        *,
        actor: Actor,
        replace: bool = False,
        allow_tokens: bool = True,
    ) -> SkillImportResult:
        """Import the skills of a repository or URL; local paths are rejected.

        Raises: as `open_remote`, and errors from importing.
        """
        opened = self.open_remote(text, allow_tokens=allow_tokens)
        provenance = ImportOrigin(without_credentials(text), opened.commit)
        rules = self.load_rules(opened.reference)
        return self._import(
            opened.bundles, identity, actor, provenance, replace=replace, rules=rules
        )

    def load_rules(self, reference: Ref | None = None) -> InstallRules:
        """Load the rules for skills from a source, or from an upload."""
        return load_install_rules(reference, self.settings)

    def open_remote(self, text: str, *, allow_tokens: bool = True) -> OpenedSource:
        """Open a repository or URL, with the server's git tokens only if that is allowed.

        Raises: SourceRejected, ScopeRequired, and as `open_source`.
        """
        return open_client_source(text, self.settings, allow_tokens=allow_tokens)

    def open_folder(self, text: str) -> OpenedSource:
        """Open a folder on this machine, if folder scans are enabled.

        Raises: SourceRejected, and as `open_source`.
        """
        if not self.settings.server.folder_scan:
            problem, hint = "folder scans are disabled", "set SKILLHALL_FOLDER_SCAN=on"
            raise SourceRejected("path", text, problem, hint)
        path = os.path.abspath(os.path.expanduser(text.strip()))
        return open_source(path, self.settings)

    def import_archive(
        self,
        data: bytes,
        name: str,
        identity: str | None = None,
        *,
        actor: Actor,
        replace: bool = False,
    ) -> SkillImportResult:
        """Import the skills of an archive. Raises: errors from reading or importing."""
        return self._import(read_archive(data, name), identity, actor, replace=replace)

    def import_file(
        self,
        data: bytes,
        name: str,
        identity: str | None = None,
        *,
        actor: Actor,
        replace: bool = False,
    ) -> SkillImportResult:
        """Import the skills of an archive, or a SKILL.md. Raises: as `import_archive`."""
        bundles = read_archive_or_skill_md(data, name)
        return self._import(bundles, identity, actor, replace=replace)

    def import_files(
        self,
        files: Sequence[tuple[str, bytes]],
        identity: str | None = None,
        *,
        actor: Actor,
        replace: bool = False,
    ) -> SkillImportResult:
        """Import the skills found in (path, content) pairs. Raises: as `import_archive`."""
        return self._import(build_bundles(files), identity, actor, replace=replace)

    def _import(  # noqa: PLR0913 - what an import consists of
        self,
        bundles: Iterable[Bundle],
        identity: str | None,
        actor: Actor,
        provenance: ImportOrigin = WRITTEN_HERE,
        *,
        replace: bool,
        rules: InstallRules | None = None,
    ) -> SkillImportResult:
        """Import bundles, and add a finding for each near copy of another skill."""
        loaded, present = [*bundles], [*self.present_skills()]
        rules = rules or self.load_rules()
        report, change = self.changes(actor).import_(
            loaded, identity, provenance, replace=replace, rules=rules
        )
        copies = []
        for skill, bundle in zip(report.imported, loaded, strict=True):
            data = bundle.files[find_skill_md(bundle)].read()
            if found := find_near_copy(data, skill.id, present):
                copies.append(found._replace(path=f"{skill.id}/{SKILL_MD}"))
        judged = LOCAL_SKILLS.load_policy.judge(copies)
        return report._replace(findings=(*report.findings, *judged)), change

    def find(self, identity: str, *, with_drafts: bool = False) -> CatalogSkill:
        """Return the skill with this id, after checking the disk for changes.

        The id may name a version: `pdf@4` or `pdf@sha256:…`.
        Raises: SkillNotFound, VersionNotFound, VersionYanked.
        """
        self.store.live_catalog.recheck(identity)
        skills = self.snapshot().skills
        if identity in skills:
            return skills[identity]
        if pinned := self.find_pinned(identity, with_drafts=with_drafts):
            return pinned.skill
        pin = parse_pin(identity)
        served = skills.get(pin.skill) if pin else None
        # Skills of repositories have no versions, but a digest.
        if pin and served and self.facts.get_digests(served)[0].startswith(pin.version):
            return served
        raise SkillNotFound(identity, find_close_names(identity, skills))

    def find_pinned(self, identity: str, *, with_drafts: bool = False) -> PinnedSkill | None:
        """Return the version that an id names; None if it names none.

        Raises: VersionNotFound, VersionYanked, DatabaseUnavailable.
        """
        pin, skills = parse_pin(identity), self.snapshot().skills
        if pin is None or self.versions is None or identity in skills:
            return None
        if pin.skill in skills and skills[pin.skill].source != USER:
            return None
        pinned = self._pins(self.versions).open(pin, with_drafts=with_drafts)
        revoked = self.read_revoked().by_digest.get(pinned.version.digest)
        if revoked is not None and not with_drafts:
            raise VersionYanked(pin.skill, pinned.version.number, revoked.reason)
        return pinned

    def pinned_view(self, identity: str) -> SkillView | None:
        """Return a view with the version that an id names; None if it names none.

        Raises: as `find_pinned`.
        """
        pinned = self.find_pinned(identity)
        if pinned is None:
            return None
        clearance = self.served.clear_uncached([pinned.skill])
        return SkillView(pinned.version.digest, LOCAL_SKILLS, clearance.cleared)

    def _pins(self, versions: SkillVersions) -> PinnedVersions:
        name = sha256_hex(os.fsencode(self.store.location))[:16]
        folder = os.path.join(self.settings.cache_directory, "versions", name)
        return PinnedVersions(versions, folder)

    @property
    def is_reviewed(self) -> bool:
        """Whether versions of user skills are served only after a review."""
        return self.versions is not None and self.versions.is_on

    def pin_draft(self, identity: str) -> str:
        """Return the id of the newest version of a skill, if it is not approved yet.

        Otherwise, returns the id itself. Raises: DatabaseUnavailable.
        """
        if self.versions is None:
            return identity
        versions = self.versions.list(identity).versions
        if not versions or versions[0].state in PUBLIC_STATES:
            return identity
        return f"{identity}@{versions[0].number}"

    def read_working_copy(self, identity: str) -> tuple[bytes, str]:
        """Return the SKILL.md to edit, and the digest of the skill that an edit replaces.

        With review, they are those of the newest draft. Raises: SkillNotFound, and as `read_file`.
        """
        if not self.is_reviewed:
            data = self.read_file(identity, self.find(identity).file)
            return data, self.details(identity).digest
        bundle = self.store.files(identity)
        if bundle is None:
            raise SkillNotFound(identity)
        loaded = load_into_memory(bundle)
        return loaded.files[find_skill_md(loaded)].read(), loaded.digest()

    def read_working_files(self, identity: str) -> Bundle:
        """Return the files to edit; with review, those of the newest draft.

        Raises: as `check_writable`.
        """
        self.check_writable(identity)
        bundle = self.store.files(identity)
        if bundle is None:
            raise SkillNotFound(identity)
        return load_into_memory(bundle)

    def _is_only_draft(self, identity: str) -> bool:
        """Whether a user skill exists, but no version of it is served."""
        is_served = identity in self.snapshot().skills
        return self.is_reviewed and not is_served and self.store.files(identity) is not None

    def details(self, identity: str, *, with_drafts: bool = False) -> SkillDetails:
        """Return all details of a skill. Raises: as `find`, SkillFileNotFound."""
        pinned = self.find_pinned(identity, with_drafts=with_drafts)
        skill = pinned.skill if pinned else self.find(identity)

        def read(bundle: Bundle) -> SkillDetails:
            examined, snapshot = examine_skill(skill, LOCAL_SKILLS), self.snapshot()
            loaded = load_into_memory(bundle)
            findings = []
            for finding, effect in examined.findings:  # make paths relative to the skill
                path = finding.path.removeprefix(skill.directory).lstrip("/\\") or skill.file
                findings.append(JudgedFinding(finding._replace(path=path), effect))
            return SkillDetails(
                snapshot.summarize(skill),
                examined.parsed.frontmatter.fields,
                examined.parsed.body,
                estimate_tokens(examined.parsed.body),
                loaded.digest(),
                tuple(remove_hidden_files(loaded).files.values()),
                tuple(findings),
                tuple(map(snapshot.summarize, snapshot.shadowed.get(identity, ()))),
                pinned.version if pinned else None,
            )

        return with_bundle(skill, ALL_FILES_SCAN, read)

    def origin(self, identity: str) -> RepositoryOrigin:
        """Return the current repository and commit of a skill; empty for other sources.

        Raises: SkillNotFound.
        """
        snapshot, folder = self.snapshot(), self.find(identity).root.path
        # The snapshot keeps its origins when a new commit changes no skill, so ask again.
        origins = self.read_repositories().origins
        return origins.get(folder) or snapshot.origins.get(folder, RepositoryOrigin())

    def find_available(self, identity: str, *, with_drafts: bool = False) -> CatalogSkill:
        """Return the skill with this id, for a download or a model.

        Drafts are for their authors, so no rule holds them.
        Raises: as `find`, SkillNotApproved if it is revoked, or if a rule holds it.
        """
        skill = self.find(identity, with_drafts=with_drafts)
        snapshot = self.snapshot()
        is_served = snapshot.skills.get(skill.id) is skill  # not a version that the id names
        revocation = snapshot.revoked.get(skill.id) if is_served else None
        if revocation is not None:
            raise SkillNotApproved(skill.name, f"it is revoked: {revocation.describe()}")
        clearance = self.clear(snapshot).clearance
        if not is_served:
            clearance = self.served.clear_uncached([] if with_drafts else [skill])
        for one in clearance.held:
            if one.skill is skill:
                raise SkillNotApproved(skill.name, one.decision.rule)
        return skill

    def bundle(self, identity: str) -> Bundle:
        """Open all published files of a skill. Raises: SkillNotFound, SkillFileNotFound."""
        return open_skill_bundle(self.find(identity), PUBLISHED_SCAN)

    def cleared_bundle(self, identity: str) -> Bundle:
        """Open all published files of a skill, for a model. Raises: as `find_available`."""
        return open_skill_bundle(self.find_available(identity), PUBLISHED_SCAN)

    def read_file(self, identity: str, path: str) -> bytes:
        """Read a file of a skill, even if it is revoked.

        Raises: as `find`, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        return read_published_file(self.find(identity), RelativePath.parse(path))

    def download_file(self, identity: str, path: str, *, with_drafts: bool = False) -> bytes:
        """Read a file of a skill for an installer. Raises: as `read_file` and `find_available`."""
        skill = self.find_available(identity, with_drafts=with_drafts)
        return read_published_file(skill, RelativePath.parse(path))

    def archive(self, identity: str, *, with_drafts: bool = False) -> bytes:
        """Pack all published files of a skill as a zip file.

        Raises: as `find_available`, and errors from reading.
        """
        skill = self.find_available(identity, with_drafts=with_drafts)
        return with_bundle(skill, PUBLISHED_SCAN, pack_bundle)

    def query(
        self,
        query: SkillQuery,
        snapshot: CollectionSnapshot | None = None,
        start: int = 0,
        limit: int = MAX_PAGE_SIZE,
    ) -> TablePage:
        """Return the skills that match a query, from number `start` on, with facets."""
        snapshot = snapshot or self.snapshot()
        matches = self.search_ids(snapshot, query.text) if query.text else None
        return self._get_table(snapshot).find(query, matches, start, limit)

    def _get_table(self, snapshot: CollectionSnapshot) -> SkillTable:
        """Return the table of a snapshot.

        It is built once, and every two seconds while a thread examines many skills.
        """
        known, is_complete = self._table, self.facts.progress is None
        if known is not None and known.snapshot is snapshot:
            is_usable = not is_complete and time.monotonic() < known.expiry
            if known.is_complete or is_usable:
                return known.table
        skills = snapshot.skills
        facts = {identity: self.facts.find(skill) for identity, skill in skills.items()}
        missing = [identity for identity, one in facts.items() if one is None]
        # A few, as after an edit, are examined at once, so that the page shows them.
        is_complete = is_complete or len(missing) <= MAX_EXAMINED_AT_ONCE
        for identity in missing if is_complete else ():
            facts[identity] = self.facts.get_or_default(skills[identity])
        rows = (TableRow(snapshot.get_entry(one), facts[one]) for one in snapshot.ids)
        table = SkillTable(rows)
        expiry = time.monotonic() + TABLE_TTL
        self._table = _CachedTable(snapshot, table, is_complete, expiry)
        return table

    def present_skills(self) -> Iterator[PresentSkill]:
        """Yield the examined skills, to find near copies of new ones; reads no file."""
        for identity, skill in self.snapshot().skills.items():
            facts = self.facts.find(skill)
            if facts is not None and facts.summary:
                yield PresentSkill(identity, facts.summary, partial(read_skill_md, skill))

    def system_ids(self) -> list[str]:
        """Return the ids of the system skills, which no user skill may have."""
        return self.snapshot().ids_of_source(SYSTEM)

    def changes(self, actor: Actor) -> SkillStoreChanges:
        """Return the undoable operations on user skills, by an actor."""
        return SkillStoreChanges(self.store, self.settings.data_directory, actor)

    def edit(
        self,
        identity: str,
        text: SkillText,
        digest: str,
        *,
        actor: Actor,
        is_repaired: bool = False,
    ) -> SkillChangeResult:
        """Edit a user skill. Raises: ReadOnly, and as `SkillStoreChanges.edit`."""
        self.check_writable(identity)
        return self.changes(actor).edit(identity, text, digest, is_repaired=is_repaired)

    def change_files(
        self, identity: str, change: ChangeFiles, digest: str, *, actor: Actor
    ) -> SkillChangeResult:
        """Change files of a user skill. Raises: ReadOnly, as `SkillStoreChanges.change_files`."""
        self.check_writable(identity)
        return self.changes(actor).change_files(identity, change, digest)

    def delete(self, identity: str, *, actor: Actor, shadowed: bool = False) -> str:
        """Delete a user skill; return the change's id, or "" if it cannot be undone.

        A user skill that a system skill shadows is deleted only if `shadowed` is set.
        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        is_draft = self._is_only_draft(identity)
        if not is_draft and self.find(identity).source == REPOSITORY_SOURCE:
            self.check_writable(identity)
        return self.changes(actor).delete(identity, shadowed=shadowed)

    def delete_all(self, ids: Sequence[str], *, actor: Actor) -> str:
        """Delete several user skills; return the change's id, as `delete`.

        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        for identity in ids:
            self.check_writable(identity)
        return self.changes(actor).delete_all(ids)

    def restore(
        self, identity: str, number: int | None = None, *, actor: Actor
    ) -> SkillChangeResult:
        """Restore a version of a user skill or, without a number, a deleted skill.

        Raises: ReadOnly, SkillNotFound, VersionNotFound, and as `SkillStoreChanges.restore`.
        """
        if self.versions is None:
            raise SkillNotFound(identity)
        if self.store.files(identity) is not None:
            self.check_writable(identity)
        _, files = self.versions.read_files(identity, number)
        return self.changes(actor).restore(identity, files)

    def shadowed_bundle(self, identity: str) -> Bundle:
        """Open all published files of the user skill that a system skill shadows.

        Raises: SkillNotFound.
        """
        for skill in self.snapshot().shadowed.get(identity, ()):
            if skill.source == USER:
                return open_skill_bundle(skill, PUBLISHED_SCAN)
        raise SkillNotFound(identity, hint=NOT_SHADOWED_HINT)

    def draft(self, identity: str, text: SkillText) -> SkillDraft:
        """Check a new skill and whether its id is free, without writing it."""
        return draft_skill(identity, text, frozenset(map(fold_name, self.snapshot().ids)))

    def check_writable(self, identity: str) -> None:
        """Check that a skill is a user skill. Raises: ReadOnly, SkillNotFound."""
        if self._is_only_draft(identity):
            return
        entry = self.snapshot().get_entry(self.find(identity).id)
        if entry.source == REPOSITORY_SOURCE:
            raise ReadOnly(identity, repository=entry.repository or "its repository")
        if entry.source != USER:
            shadowed = self.snapshot().shadowed.get(identity, ())
            raise ReadOnly(identity, shadows=any(skill.source == USER for skill in shadowed))

    def is_writable(self, identity: str) -> bool:
        """Whether a skill is a user skill. Raises: SkillNotFound."""
        with suppress(ReadOnly):
            self.check_writable(identity)
            return True
        return False

    def artifacts(self, snapshot: CollectionSnapshot | None = None) -> Iterator[SkillArtifact]:
        """Iterate over the published skills as downloads, sorted by id."""
        snapshot = snapshot or self.snapshot()
        held = self.clear(snapshot).held_ids
        for identity in snapshot.published_ids:
            if identity in held:
                continue
            with _skip_unreadable(identity):
                packed = self.facts.get_packed(snapshot.skills[identity])
                entry = snapshot.get_entry(identity)
                yield SkillArtifact(entry, packed.is_archive, packed.digest, packed.paths)

    def file_lists(
        self, snapshot: CollectionSnapshot | None = None
    ) -> Iterator[tuple[SkillSummary, tuple[str, ...]]]:
        """Iterate over the published skills, sorted by id, with the paths of their files.

        The main file is first, always as `SKILL.md`.
        """
        snapshot = snapshot or self.snapshot()
        for entry, _, _, paths in self.artifacts(snapshot):
            main = snapshot.skills[entry.id].file
            yield entry, (SKILL_MD, *(path for path in paths if path != main))

    def get_document(
        self, name: str, encode: Callable[[CollectionSnapshot], bytes]
    ) -> EncodedDocument:
        """Return a document about all skills; it is encoded once for each change."""
        snapshot = self.snapshot()
        key = f"{name} {self.clear(snapshot).revision}"
        document = snapshot.documents.get(key)
        if document is None:
            data = encode(snapshot)
            document = snapshot.documents[key] = EncodedDocument(data, sha256_hex(data))
        return document

    def read_published_file(self, identity: str, path: str) -> bytes:
        """Read a file listed by `file_lists`. Raises: as `read_file`."""
        if identity in self.clear(self.snapshot()).held_ids:
            raise SkillNotFound(identity)
        skill = self.find_available(identity)
        if skill.hidden:
            raise SkillNotFound(identity)
        real_path = skill.file if path == SKILL_MD else path
        return read_published_file(skill, RelativePath.parse(real_path))


@contextmanager
def _skip_unreadable(identity: str) -> Iterator[None]:
    """Log a skill whose files cannot be read, so that a list shows the others."""
    try:
        yield
    except (SkillNotFound, SkillFileNotFound):  # removed since the list was made
        pass
    except (SkillhallError, OSError) as error:
        problem = error if isinstance(error, SkillhallError) else format_os_error(error)
        _LOG.warning("skill %r is not published: %s", identity, problem)


def _build_snapshot(
    revision: str,
    local: Catalog,
    repository_skills: Iterable[CatalogSkill],
    origins: Mapping[str, RepositoryOrigin],
) -> CollectionSnapshot:
    """Merge skills by id. The store's skills win, then the first repository."""
    skills = {skill.id: skill for skill in local}
    findings = [_relativize_to_root(finding, local) for finding in local.findings]
    shadowed: dict[str, tuple[CatalogSkill, ...]] = {}
    for loser in local.shadowed:
        shadowed[loser.skill.id] = (*shadowed.get(loser.skill.id, ()), loser.skill)
    for skill in repository_skills:
        winner = skills.setdefault(skill.id, skill)
        if winner is not skill:
            shadowed[skill.id] = (*shadowed.get(skill.id, ()), skill)
            other = f"the {winner.source} skill"
            if winner.source == REPOSITORY_SOURCE:
                other = (
                    f"the skill from {origins.get(winner.root.path, _UNKNOWN_ORIGIN).repository}"
                )
            repository = origins.get(skill.root.path, _UNKNOWN_ORIGIN).repository
            message = f"{skill.id!r} from {repository} is shadowed by {other} with the same id"
            path = f"{skill.folder}/{skill.file}".lstrip("/")
            hint = "rename one of them, or remove the copy that is not needed"
            finding = Finding(Code.SHADOWED, message, None, hint, path, skill.name)
            findings += LOCAL_SKILLS.load_policy.judge([finding])
    ids = tuple(sorted(skills))
    skipped = collect_skipped(findings)
    return CollectionSnapshot(revision, skills, tuple(findings), ids, origins, shadowed, skipped)


def _set_repository_source(skill: CatalogSkill) -> CatalogSkill:
    root = skill.root._replace(source=REPOSITORY_SOURCE)
    return skill._replace(catalog_root=skill.catalog_root._replace(root=root))


def _relativize_to_root(judged: JudgedFinding, local: Catalog) -> JudgedFinding:
    """Replace absolute paths in a finding with paths relative to the run directory."""
    finding = judged.finding
    path, message = finding.path, finding.message
    for root in local.roots:
        folder = FOLDER_BY_SOURCE.get(root.source, root.source)
        path, message = (text.replace(root.path, folder) for text in (path, message))
    return judged._replace(finding=finding._replace(path=path, message=message))
