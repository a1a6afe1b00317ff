"""Collection: all skills that a server shows, from its store and its repositories.

Skills of the store can change at any moment, so their details are read on each request. Skills of a
repository belong to a commit, so their artifacts are cached.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.validate import examine_skill
from skillhall._internal.catalog.fingerprint import read_signature
from skillhall._internal.catalog.repository_skills import RepositoryOrigin, RepositorySkillSet
from skillhall._internal.catalog.search.background_index import BackgroundIndex, IndexInput
from skillhall._internal.catalog.skill_content import (
    open_skill_bundle,
    read_published_file,
    with_bundle,
)
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.installer.install import compute_bundle_digest
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
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
)
from skillhall._internal.skill_store.revision_poller import RevisionPoller
from skillhall._internal.skill_store.store import FOLDER_BY_SOURCE
from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS, read_archive
from skillhall._internal.sources.archive.upload import build_bundles, read_archive_or_skill_md
from skillhall._internal.sources.archive.zip_writer import pack_bundle
from skillhall._internal.sources.base import OpenedSource
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall._internal.sources.opener import open_source
from skillhall._internal.sources.token_scope import open_client_source
from skillhall.errors import (
    ReadOnly,
    SkillFileNotFound,
    SkillhallError,
    SkillNotFound,
    SourceRejected,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.lossless_editor import SkillText
    from skillhall._internal.skill_store.store import ImportReport, SkillStore
    from skillhall._internal.skill_store.undoable_changes import SkillChangeResult
    from skillhall._internal.sources.folder.candidate import Signature

    # The second item is the id that undoes the change, or "" if it cannot be undone.
    SkillImportResult: TypeAlias = tuple[ImportReport, str]
    ReadRepositorySkills: TypeAlias = Callable[[], "RepositorySkillSet"]

SOURCES = ("user", "system", "repository")
REPOSITORY_SOURCE = "repository"
MAX_PAGE_SIZE = 1000  # skills
MAX_IMPORT_FILES = DEFAULT_ARCHIVE_LIMITS.entries  # per import
_UNKNOWN_ORIGIN = RepositoryOrigin("a repository")
_PUBLISHED_SCAN = LOCAL_SKILLS.scan_policy.without_hidden_files
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


class SkillArtifact(NamedTuple):
    """Skill as one download for installers: its SKILL.md alone, or an archive."""

    entry: SkillSummary
    is_archive: bool
    digest: str
    files: tuple[str, ...]


class SkillSize(NamedTuple):
    """Numbers that a list shows for a skill."""

    tokens: int
    files: int
    warnings: int  # findings that are not accepted


@dataclass(frozen=True, slots=True)
class CollectionSnapshot:
    """Immutable state of the collection at one moment."""

    revision: str
    skills: Mapping[str, CatalogSkill]
    findings: tuple[JudgedFinding, ...]
    ids: tuple[str, ...]  # sorted
    origins: Mapping[str, RepositoryOrigin]
    shadowed: Mapping[str, tuple[CatalogSkill, ...]]  # skills that are not served, by id
    skipped: tuple[SkippedItem, ...]  # of the store and of repositories

    @property
    def index_input(self) -> IndexInput:
        """The same skills, for the search index."""
        return IndexInput(self.revision, self.skills.values())

    @property
    def published_ids(self) -> list[str]:
        """Sorted ids of the skills that installers get: those that are not hidden."""
        return [identity for identity in self.ids if not self.skills[identity].hidden]

    def ids_of_source(self, source: str) -> list[str]:
        """Sorted ids of the skills of one source."""
        return [identity for identity in self.ids if self.skills[identity].source == source]

    def get_entry(self, identity: str) -> SkillSummary:
        """Return the list row of a skill."""
        return self.summarize(self.skills[identity])

    def summarize(self, skill: CatalogSkill) -> SkillSummary:
        """Return the list row of a served or shadowed skill."""
        name = self.origins.get(skill.root.path, RepositoryOrigin()).repository
        return SkillSummary(
            skill.id, skill.name, skill.description, skill.source, skill.hidden, name
        )

    def page(self, after: str = "", limit: int = MAX_PAGE_SIZE, source: str = "") -> CollectionPage:
        """Return up to `limit` skills after an id, sorted; optionally only of one source."""
        ids = self.ids_of_source(source) if source else self.ids
        rest = ids[bisect_right(ids, after) :]
        page_ids = rest[: min(limit, MAX_PAGE_SIZE)]
        next_cursor = page_ids[-1] if page_ids and len(rest) > len(page_ids) else ""
        return CollectionPage(tuple(map(self.get_entry, page_ids)), len(ids), next_cursor)


@dataclass(slots=True)
class Collection:
    """Operations on a server's skills. Thread-safe."""

    store: SkillStore
    settings: Settings
    read_repositories: ReadRepositorySkills = field(default=RepositorySkillSet)
    clock: Callable[[], float] = time.monotonic
    _snapshot: CollectionSnapshot | None = None
    _last_repository_skills: tuple[str, Sequence[CatalogSkill]] = ("", ())  # digest and skills
    _logged_skips: frozenset[SkippedItem] = frozenset()
    _move_count: int = 0  # how often equal repository skills moved to other folders
    _background_index: BackgroundIndex = field(default_factory=BackgroundIndex)
    _view: SkillView | None = None
    _artifacts: dict[str, tuple[str, SkillArtifact]] = field(default_factory=dict)
    _sizes: dict[str, tuple[Signature | None, SkillSize]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    revision_poller: RevisionPoller = field(init=False)

    def __post_init__(self) -> None:
        """Create the poller; nothing is read before the first request."""
        self.revision_poller = RevisionPoller(self.store)

    def snapshot(self, max_age: float = 0.0) -> CollectionSnapshot:
        """Return the current collection. It is rebuilt only if a revision changed.

        With a `max_age` in seconds, recent edits by other processes may be missing.
        """
        digest, skills, origins = self.read_repositories()
        store_revision = self.revision_poller.revision(self.clock(), max_age)
        with self._lock:
            revision = f"{store_revision}{digest}{self._move_suffix(digest, skills)}"
            if self._snapshot is None or self._snapshot.revision != revision:
                self._snapshot = _build_snapshot(revision, self.store.catalog(), skills, origins)
                self._background_index.schedule(self._snapshot.index_input)
                # Log only newly skipped items. Repositories log their own with each new commit.
                skipped = self._snapshot.skipped
                log_skipped("skills", [item for item in skipped if item not in self._logged_skips])
                self._logged_skips = frozenset(skipped)
            return self._snapshot

    def _move_suffix(self, digest: str, skills: Sequence[CatalogSkill]) -> str:
        """Suffix of the revision that changes if equal skills move to other folders.

        This happens when a cache is cleared and the repository is fetched again.
        """
        last_digest, last_skills = self._last_repository_skills
        if skills is not last_skills:
            locations = [skill.location for skill in skills]
            last_locations = [skill.location for skill in last_skills]
            self._move_count += last_digest == digest and locations != last_locations
            self._last_repository_skills = digest, skills
        return f"-{self._move_count}" if self._move_count else ""

    def search(
        self, query: str, limit: int = MAX_PAGE_SIZE, max_age: float = 0.0
    ) -> CollectionPage:
        """Search names, descriptions and, as soon as they are indexed, bodies."""
        snapshot = self.snapshot(max_age)
        skills, total = self._background_index.get_index(snapshot.index_input).find(query, limit)
        return CollectionPage(tuple(snapshot.get_entry(skill.id) for skill in skills), total)

    def current_view(self) -> SkillView:
        """Return the skills that models may see, for tools and MCP."""
        snapshot = self.snapshot()
        with self._lock:
            if self._view is None or self._view.revision != snapshot.revision:
                index = partial(self._background_index.get_index, snapshot.index_input)
                skills = snapshot.skills.values()
                self._view = SkillView(
                    snapshot.revision, LOCAL_SKILLS, skills, snapshot.findings, index
                )
            return self._view

    def import_source(
        self, text: str, identity: str | None = None, *, replace: bool = False
    ) -> SkillImportResult:
        """Import the skills of a repository or URL; local paths are rejected.

        Raises: SourceRejected, and errors of opening the source and of importing.
        """
        bundles = [*self.open_remote(text).bundles]
        return self.changes.import_(bundles, identity, replace=replace)

    def open_remote(self, text: str) -> OpenedSource:
        """Open a repository or URL. Raises: SourceRejected, and as `open_source`."""
        return open_client_source(text, self.settings)

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
        self, data: bytes, name: str, identity: str | None = None, *, replace: bool = False
    ) -> SkillImportResult:
        """Import the skills of an archive. Raises: errors of reading and importing."""
        return self.changes.import_([*read_archive(data, name)], identity, replace=replace)

    def import_file(
        self, data: bytes, name: str, identity: str | None = None, *, replace: bool = False
    ) -> SkillImportResult:
        """Import the skills of an archive, or a SKILL.md. Raises: as `import_archive`."""
        bundles = [*read_archive_or_skill_md(data, name)]
        return self.changes.import_(bundles, identity, replace=replace)

    def import_files(
        self,
        files: Sequence[tuple[str, bytes]],
        identity: str | None = None,
        *,
        replace: bool = False,
    ) -> SkillImportResult:
        """Import the skills found in (path, content) pairs. Raises: as `import_archive`."""
        return self.changes.import_([*build_bundles(files)], identity, replace=replace)

    def find(self, identity: str) -> CatalogSkill:
        """Return the skill with this id. Raises: SkillNotFound."""
        skills = self.snapshot().skills
        if identity not in skills:
            raise SkillNotFound(identity, get_close_matches(identity, skills))
        return skills[identity]

    def details(self, identity: str) -> SkillDetails:
        """Return all details of a skill. Raises: SkillNotFound, SkillFileNotFound."""
        skill = self.find(identity)

        def read(bundle: Bundle) -> SkillDetails:
            examined, snapshot = examine_skill(skill, LOCAL_SKILLS), self.snapshot()
            loaded = load_into_memory(bundle)
            findings = []
            for finding, effect in examined.findings:  # make paths relative to the skill
                path = finding.path.removeprefix(skill.directory).lstrip("/\\") or skill.file
                findings.append(JudgedFinding(finding._replace(path=path), effect))
            return SkillDetails(
                snapshot.get_entry(identity),
                examined.parsed.frontmatter.fields,
                examined.parsed.body,
                estimate_tokens(examined.parsed.body),
                compute_bundle_digest(loaded),
                tuple(loaded.files.values()),
                tuple(findings),
                tuple(map(snapshot.summarize, snapshot.shadowed.get(identity, ()))),
            )

        return with_bundle(skill, _PUBLISHED_SCAN, read)

    def origin(self, identity: str) -> RepositoryOrigin:
        """Return the current repository and commit of a skill; empty for other sources.

        Raises: SkillNotFound.
        """
        snapshot, folder = self.snapshot(), self.find(identity).root.path
        # The snapshot keeps its origins when a new commit changes no skill, so ask again.
        origins = self.read_repositories().origins
        return origins.get(folder) or snapshot.origins.get(folder, RepositoryOrigin())

    def bundle(self, identity: str) -> Bundle:
        """Open all published files of a skill. Raises: SkillNotFound, SkillFileNotFound."""
        return open_skill_bundle(self.find(identity), _PUBLISHED_SCAN)

    def read_file(self, identity: str, path: str) -> bytes:
        """Read a file of a skill.

        Raises: SkillNotFound, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        return read_published_file(self.find(identity), RelativePath.parse(path))

    def archive(self, identity: str) -> bytes:
        """Pack all published files of a skill as a zip file.

        Raises: as `bundle`, and errors of reading.
        """
        return with_bundle(self.find(identity), _PUBLISHED_SCAN, pack_bundle)

    def measure_skill(self, skill: CatalogSkill) -> SkillSize:
        """Return the numbers that lists show, cached until the SKILL.md changes."""
        signature = read_signature(skill.location)
        cached = self._sizes.get(skill.location)
        if cached is None or cached[0] != signature:
            examined = examine_skill(skill, LOCAL_SKILLS)
            size = SkillSize(
                estimate_tokens(examined.parsed.body),
                max(1, len(examined.bundle.files)),
                sum(1 for finding in examined.findings if finding.effect is not Effect.ACCEPT),
            )
            cached = self._sizes[skill.location] = signature, size
        return cached[1]

    def system_ids(self) -> list[str]:
        """Return the ids of the system skills, which no user skill may have."""
        return self.snapshot().ids_of_source(SYSTEM)

    @property
    def changes(self) -> SkillStoreChanges:
        """Undoable operations on user skills."""
        return SkillStoreChanges(self.store, self.settings.data_directory)

    def edit(self, identity: str, text: SkillText, digest: str) -> SkillChangeResult:
        """Edit a user skill. Raises: ReadOnly, and as `SkillStoreChanges.edit`."""
        self.check_writable(identity)
        return self.changes.edit(identity, text, digest)

    def delete(self, identity: str, *, shadowed: bool = False) -> str:
        """Delete a user skill; return the id that undoes it, or "" if it cannot be undone.

        A user skill that a system skill shadows is deleted only if `shadowed` is set.
        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        if self.find(identity).source == REPOSITORY_SOURCE:
            self.check_writable(identity)
        return self.changes.delete(identity, shadowed=shadowed)

    def shadowed_bundle(self, identity: str) -> Bundle:
        """Open all published files of the user skill that a system skill shadows.

        Raises: SkillNotFound.
        """
        for skill in self.snapshot().shadowed.get(identity, ()):
            if skill.source == USER:
                return open_skill_bundle(skill, _PUBLISHED_SCAN)
        raise SkillNotFound(identity, hint=NOT_SHADOWED_HINT)

    def draft(self, identity: str, text: SkillText) -> SkillDraft:
        """Check a new skill and whether its id is free, without writing it."""
        return draft_skill(identity, text, frozenset(map(fold_name, self.snapshot().ids)))

    def check_writable(self, identity: str) -> None:
        """Check that a skill is a user skill. Raises: ReadOnly, SkillNotFound."""
        entry = self.snapshot().get_entry(self.find(identity).id)
        if entry.source == REPOSITORY_SOURCE:
            raise ReadOnly(identity, repository=entry.repository or "its repository")
        if entry.source != USER:
            shadowed = self.snapshot().shadowed.get(identity, ())
            raise ReadOnly(identity, shadows=any(skill.source == USER for skill in shadowed))

    def artifacts(self) -> Iterator[SkillArtifact]:
        """Iterate over the published skills as downloads, sorted by id."""
        snapshot = self.snapshot()
        for identity in snapshot.published_ids:
            with _skip_unreadable(identity):
                yield self._get_artifact(snapshot, identity)

    def file_lists(self) -> Iterator[tuple[SkillSummary, tuple[str, ...]]]:
        """Iterate over the published skills, sorted by id, with the paths of their files.

        The main file is first, always as `SKILL.md`.
        """
        snapshot = self.snapshot()
        for identity in snapshot.published_ids:
            skill = snapshot.skills[identity]
            with _skip_unreadable(identity):
                paths = sorted(open_skill_bundle(skill, _PUBLISHED_SCAN).files)
                others = (path for path in paths if path != skill.file)
                yield snapshot.get_entry(identity), (SKILL_MD, *others)

    def read_published_file(self, identity: str, path: str) -> bytes:
        """Read a file listed by `file_lists`. Raises: as `read_file`."""
        skill = self.find(identity)
        if skill.hidden:
            raise SkillNotFound(identity)
        real_path = skill.file if path == SKILL_MD else path
        return read_published_file(skill, RelativePath.parse(real_path))

    def _get_artifact(self, snapshot: CollectionSnapshot, identity: str) -> SkillArtifact:
        cached = self._artifacts.get(identity)
        is_immutable = snapshot.skills[identity].source == REPOSITORY_SOURCE
        if cached is not None and is_immutable and cached[0] == snapshot.revision:
            return cached[1]

        def pack(bundle: Bundle) -> SkillArtifact:
            paths = tuple(sorted(bundle.files))
            is_archive = len(paths) > 1
            data = pack_bundle(bundle) if is_archive else bundle.files[paths[0]].read()
            digest = f"sha256:{sha256_hex(data)}"
            return SkillArtifact(snapshot.get_entry(identity), is_archive, digest, paths)

        artifact = with_bundle(snapshot.skills[identity], _PUBLISHED_SCAN, pack)
        self._artifacts[identity] = snapshot.revision, artifact
        return artifact


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
    for original in repository_skills:
        skill = original._replace(root=original.root._replace(source=REPOSITORY_SOURCE))
        winner = skills.setdefault(skill.id, skill)
        if winner is not skill:
            shadowed[skill.id] = (*shadowed.get(skill.id, ()), skill)
            other = f"the {winner.source} skill"
            if winner.source == REPOSITORY_SOURCE:
                other = f"the skill of {origins.get(winner.root.path, _UNKNOWN_ORIGIN).repository}"
            repository = origins.get(skill.root.path, _UNKNOWN_ORIGIN).repository
            message = f"{skill.id!r} of {repository} is shadowed by {other} with the same id"
            path = f"{skill.folder}/{skill.file}".lstrip("/")
            hint = "rename one of them, or remove the copy that is not needed"
            finding = Finding(Code.SHADOWED, message, None, hint, path, skill.name)
            findings += LOCAL_SKILLS.load_policy.judge([finding])
    ids = tuple(sorted(skills))
    skipped = collect_skipped(findings)
    return CollectionSnapshot(revision, skills, tuple(findings), ids, origins, shadowed, skipped)


def _relativize_to_root(judged: JudgedFinding, local: Catalog) -> JudgedFinding:
    """Replace absolute paths in a finding with paths relative to the run directory."""
    finding = judged.finding
    path, message = finding.path, finding.message
    for root in local.roots:
        folder = FOLDER_BY_SOURCE.get(root.source, root.source)
        path, message = (text.replace(root.path, folder) for text in (path, message))
    return judged._replace(finding=finding._replace(path=path, message=message))
