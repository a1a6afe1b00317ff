"""The collection: every skill that a server shows, of its run directory and of its repository.

A skill of the run directory can change at any moment; what is told about it is read when it is
asked for. One of the repository belongs to a commit, and what was found out about it stays true.
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
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.validate import examine_skill
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.fingerprint import read_signature
from skillhall._internal.catalog.reader import open_skill_bundle, read_published_file, with_bundle
from skillhall._internal.catalog.search.background_index import BackgroundIndex, IndexInput
from skillhall._internal.catalog.skill_view import SkillView
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.installer.preflight import compute_bundle_digest
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.skipped_items import collect_skipped
from skillhall._internal.skill.bundle import RelativePath, fold_name, sha256_hex
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.changes import SkillStoreChanges
from skillhall._internal.skill_store.draft import SkillDraft, draft_skill
from skillhall._internal.skill_store.input_checks import NOT_SHADOWED_HINT, SYSTEM, USER
from skillhall._internal.skill_store.revision_poller import RevisionPoller
from skillhall._internal.sources.archive.source import DEFAULT_ARCHIVE_LIMITS, read_archive
from skillhall._internal.sources.archive.zip_writer import pack_bundle
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall._internal.sources.opener import (
    OpenedSource,
    build_bundles,
    open_client_source,
    open_source,
    read_archive_or_skill_md,
)
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

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.edit import SkillText
    from skillhall._internal.skill_store.changes import SkillChangeResult
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.store import SkillStore
    from skillhall._internal.sources.folder.candidate import Signature

    SkillImportResult: TypeAlias = tuple[
        ImportReport, str
    ]  # and what takes it back; "" if nothing does
    ReadRepositorySkills: TypeAlias = Callable[[], "RepositorySkillSet"]

SOURCES = ("user", "system", "repository")
REPOSITORY_SOURCE = "repository"  # the source of skills that are not the run directory's own
_FOLDER_BY_SOURCE = {source: folder for folder, source in LOCAL_SKILLS.roots}
MAX_PAGE_SIZE = 1000  # skills
MAX_IMPORT_FILES = DEFAULT_ARCHIVE_LIMITS.entries  # that are imported at once
_PUBLISHED_SCAN = LOCAL_SKILLS.scan_policy.without_hidden_files
_LOG = logging.getLogger("skillhall.server")


class RepositoryOrigin(NamedTuple):
    """The repository that a skill is from, without credentials, and its commit."""

    repository: str = ""
    commit: str = ""


_UNKNOWN_ORIGIN = RepositoryOrigin("a repository")


class RepositorySkillSet(NamedTuple):
    """The skills of all repositories that a server reads, in order of precedence."""

    digest: str = ""  # changes with any of them
    skills: Sequence[Skill] = ()
    origins: Mapping[str, RepositoryOrigin] = MappingProxyType(
        {}
    )  # by the folder that skills are read from


class CollectionEntry(NamedTuple):
    """A skill as a list shows it."""

    id: str
    name: str
    description: str
    source: str  # system, user or repository
    hidden: bool
    repository: str = ""  # which one, for a skill of a repository


class CollectionPage(NamedTuple):
    """A part of the list, and where the next part begins."""

    skills: tuple[CollectionEntry, ...]
    total: int
    next_cursor: str = ""  # the id after which it goes on


@dataclass(frozen=True, slots=True)
class SkillDetails:
    """Everything about one skill at this moment."""

    entry: CollectionEntry
    frontmatter: Mapping[str, object]
    body: str
    tokens: int
    digest: str
    files: tuple[SkillFile, ...]
    findings: tuple[JudgedFinding, ...]
    shadowed: tuple[CollectionEntry, ...] = ()  # skills of the same id that are not served


class SearchPage(NamedTuple):
    """What a search found, the best first."""

    skills: tuple[CollectionEntry, ...]
    total: int


class SkillArtifact(NamedTuple):
    """A skill as one file for installers: its SKILL.md alone, or an archive."""

    entry: CollectionEntry
    is_archive: bool
    digest: str
    files: tuple[str, ...]


class SkillFileList(NamedTuple):
    """A skill and the paths of its files, SKILL.md first, whatever that is called here."""

    entry: CollectionEntry
    files: tuple[str, ...]


class SkillSize(NamedTuple):
    """What a list tells about a skill besides its words."""

    tokens: int
    files: int
    warnings: int  # findings that a person should look at


@dataclass(frozen=True, slots=True)
class CollectionSnapshot:
    """The collection at one moment."""

    revision: str
    skills: Mapping[str, Skill]
    findings: tuple[JudgedFinding, ...]
    ids: tuple[str, ...]  # in order
    index_input: IndexInput  # the same as a search takes it
    origins: Mapping[str, RepositoryOrigin]
    shadowed: Mapping[str, tuple[Skill, ...]]  # by id: those that another one hides
    skipped: tuple[SkippedItem, ...]  # what is not served, of the run directory and of repositories

    @property
    def published_ids(self) -> list[str]:
        """The ids of the skills that installers get: those that a model may see, in order."""
        return [identity for identity in self.ids if not self.skills[identity].hidden]

    def ids_of_source(self, source: str) -> list[str]:
        """The ids of one source, in order."""
        return [identity for identity in self.ids if self.skills[identity].source == source]

    def get_entry(self, identity: str) -> CollectionEntry:
        """One row of the list."""
        return self._build_entry(self.skills[identity])

    def get_shadowed_entries(self, identity: str) -> tuple[CollectionEntry, ...]:
        """The skills of the same id that are not served."""
        return tuple(map(self._build_entry, self.shadowed.get(identity, ())))

    def _build_entry(self, skill: Skill) -> CollectionEntry:
        name = self.origins.get(skill.root.path, RepositoryOrigin()).repository
        return CollectionEntry(
            skill.id, skill.name, skill.description, skill.source, skill.hidden, name
        )

    def page(self, after: str = "", limit: int = MAX_PAGE_SIZE, source: str = "") -> CollectionPage:
        """Up to `limit` skills that come after an id, in order; of one source, if it is named."""
        ids = self.ids_of_source(source) if source else self.ids
        rest = ids[bisect_right(ids, after) :]
        taken = rest[: min(limit, MAX_PAGE_SIZE)]
        following = taken[-1] if taken and len(rest) > len(taken) else ""
        return CollectionPage(tuple(map(self.get_entry, taken)), len(ids), following)


@dataclass(slots=True)
class Collection:
    """The verbs on a server's skills; safe to use from several threads."""

    store: SkillStore
    settings: Settings
    read_repositories: ReadRepositorySkills = field(default=RepositorySkillSet)
    clock: Callable[[], float] = time.monotonic
    _snapshot: CollectionSnapshot | None = None
    _last_repository_skills: tuple[str, Sequence[Skill]] = ("", ())  # what the repository gave last
    _logged_skips: frozenset[SkippedItem] = frozenset()  # what is skipped and was logged
    _move_count: int = 0  # how often that was the same in another place
    _background_index: BackgroundIndex = field(default_factory=BackgroundIndex)
    _view: SkillView | None = None
    _artifacts: dict[str, tuple[str, SkillArtifact]] = field(default_factory=dict)
    _sizes: dict[str, tuple[Signature | None, SkillSize]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    revision_poller: RevisionPoller = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is looked at before it is asked for."""
        self.revision_poller = RevisionPoller(self.store)

    def snapshot(self, max_age: float = 0.0) -> CollectionSnapshot:
        """What there is now; looked up again only if something changed.

        With a `max_age` in seconds, files that others edited since may not be seen yet.
        """
        digest, skills, origins = self.read_repositories()
        looked = self.revision_poller.revision(self.clock(), max_age)
        with self._lock:
            revision = f"{looked}{digest}{self._move_suffix(digest, skills)}"
            if self._snapshot is None or self._snapshot.revision != revision:
                self._snapshot = _build_snapshot(revision, self.store.catalog(), skills, origins)
                self._background_index.schedule(self._snapshot.index_input)
                self._log_skipped(self._snapshot.skipped)
            return self._snapshot

    def _log_skipped(self, skipped: Sequence[SkippedItem]) -> None:
        """Log what was not skipped before; repositories log their own at each commit."""
        log_skipped("skills", [one for one in skipped if one not in self._logged_skips])
        self._logged_skips = frozenset(skipped)

    def _move_suffix(self, digest: str, skills: Sequence[Skill]) -> str:
        """What tells skills from equal ones elsewhere, as before a cache was cleared."""
        before, were = self._last_repository_skills
        if skills is not were:
            self._move_count += before == digest and _get_locations(skills) != _get_locations(were)
            self._last_repository_skills = digest, skills
        return f"-{self._move_count}" if self._move_count else ""

    def search(self, query: str, limit: int = MAX_PAGE_SIZE, max_age: float = 0.0) -> SearchPage:
        """The skills that a text finds in names, descriptions and, once they are read, bodies."""
        shown = self.snapshot(max_age)
        skills, total = self._background_index.get_index(shown.index_input).find(query, limit)
        return SearchPage(tuple(shown.get_entry(skill.id) for skill in skills), total)

    def current_view(self) -> SkillView:
        """The skills that a model may be shown, for tools and for MCP."""
        shown = self.snapshot()
        with self._lock:
            if self._view is None or self._view.revision != shown.revision:
                index = partial(self._background_index.get_index, shown.index_input)
                skills = shown.skills.values()
                self._view = SkillView(shown.revision, LOCAL_SKILLS, skills, shown.findings, index)
            return self._view

    def import_source(
        self, text: str, identity: str | None = None, *, replace: bool = False
    ) -> SkillImportResult:
        """Take in the skills of a repository or web address: nothing of this machine.

        Raises: SourceRejected, and what opening the source and importing raise.
        """
        return self._import_bundles(self.open_remote(text).bundles, identity, replace=replace)

    def open_remote(self, text: str) -> OpenedSource:
        """The skills of a repository or web address. Raises: SourceRejected, as `open_source`."""
        return open_client_source(text, self.settings)

    def open_folder(self, text: str) -> OpenedSource:
        """The skills of a folder of this machine, if the operator lets pages read those.

        Raises: SourceRejected, and as `open_source`.
        """
        if not self.settings.server.folder_scan:
            problem, hint = "folders are not read here", "set SKILLHALL_FOLDER_SCAN=on"
            raise SourceRejected("path", text, problem, hint)
        path = os.path.abspath(os.path.expanduser(text.strip()))
        return open_source(path, self.settings)

    def import_archive(
        self, data: bytes, name: str, identity: str | None = None, *, replace: bool = False
    ) -> SkillImportResult:
        """Take in the skills of an archive. Raises: what reading it and importing raise."""
        return self._import_bundles(read_archive(data, name), identity, replace=replace)

    def import_file(
        self, data: bytes, name: str, identity: str | None = None, *, replace: bool = False
    ) -> SkillImportResult:
        """Take in the skills of an archive, or a SKILL.md. Raises: as `import_archive`."""
        return self._import_bundles(read_archive_or_skill_md(data, name), identity, replace=replace)

    def import_files(
        self,
        files: Sequence[tuple[str, bytes]],
        identity: str | None = None,
        *,
        replace: bool = False,
    ) -> SkillImportResult:
        """Take in the skills among loose files with paths. Raises: as `import_archive`."""
        return self._import_bundles(build_bundles(files), identity, replace=replace)

    def _import_bundles(
        self, bundles: Iterable[Bundle], identity: str | None, *, replace: bool
    ) -> SkillImportResult:
        return self.changes.import_([*bundles], identity, replace=replace)

    def find(self, identity: str) -> Skill:
        """The skill with that id. Raises: SkillNotFound."""
        skills = self.snapshot().skills
        if identity not in skills:
            raise SkillNotFound(identity, get_close_matches(identity, skills))
        return skills[identity]

    def details(self, identity: str) -> SkillDetails:
        """Everything about one skill. Raises: SkillNotFound, SkillFileNotFound."""
        skill = self.find(identity)

        def read(bundle: Bundle) -> SkillDetails:
            seen, shown = examine_skill(skill, LOCAL_SKILLS), self.snapshot()
            held = load_into_memory(bundle)
            return SkillDetails(
                shown.get_entry(identity),
                seen.parsed.frontmatter.fields,
                seen.parsed.body,
                estimate_tokens(seen.parsed.body),
                compute_bundle_digest(held),
                tuple(held.files.values()),
                tuple(_relativize_to_skill(one, skill) for one in seen.findings),
                shown.get_shadowed_entries(identity),
            )

        return with_bundle(skill, _PUBLISHED_SCAN, read)

    def origin(self, identity: str) -> RepositoryOrigin:
        """The repository that a skill is from now. Raises: SkillNotFound."""
        shown, folder = self.snapshot(), self.find(identity).root.path
        # A commit that changes no skill is news for this alone.
        now = self.read_repositories().origins
        return now.get(folder) or shown.origins.get(folder, RepositoryOrigin())

    def bundle(self, identity: str) -> Bundle:
        """All published files of a skill. Raises: SkillNotFound, SkillFileNotFound."""
        return open_skill_bundle(self.find(identity), _PUBLISHED_SCAN)

    def read_file(self, identity: str, path: str) -> bytes:
        """One file. Raises: SkillNotFound, SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        return read_published_file(self.find(identity), RelativePath.parse(path))

    def archive(self, identity: str) -> bytes:
        """All files as one zip file. Raises: as `bundle`, and what reading raises."""
        return with_bundle(self.find(identity), _PUBLISHED_SCAN, pack_bundle)

    def measure_skill(self, skill: Skill) -> SkillSize:
        """The figures of a skill, counted again if its SKILL.md changed."""
        signature = read_signature(skill.location)
        known = self._sizes.get(skill.location)
        if known is None or known[0] != signature:
            known = self._sizes[skill.location] = signature, _measure_skill(skill)
        return known[1]

    def system_ids(self) -> list[str]:
        """The ids that no user skill may have."""
        return self.snapshot().ids_of_source(SYSTEM)

    @property
    def changes(self) -> SkillStoreChanges:
        """The verbs on user skills that can be taken back."""
        return SkillStoreChanges(self.store, self.settings.data_directory)

    def edit(self, identity: str, text: SkillText, digest: str) -> SkillChangeResult:
        """Change the words of a user skill. Raises: ReadOnly, and as `LocalChanges.edit`."""
        self.check_writable(identity)
        return self.changes.edit(identity, text, digest)

    def delete(self, identity: str, *, shadowed: bool = False) -> str:
        """Remove a user skill; the id of the change, if it can be taken back.

        One that a system skill shadows is removed only if `shadowed` asks for it.
        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        if self.find(identity).source == REPOSITORY_SOURCE:
            self.check_writable(identity)
        return self.changes.delete(identity, shadowed=shadowed)

    def shadowed_bundle(self, identity: str) -> Bundle:
        """All published files of the user skill that a system skill shadows.

        Raises: SkillNotFound.
        """
        for skill in self.snapshot().shadowed.get(identity, ()):
            if skill.source == USER:
                return open_skill_bundle(skill, _PUBLISHED_SCAN)
        raise SkillNotFound(identity, hint=NOT_SHADOWED_HINT)

    def draft(self, identity: str, text: SkillText) -> SkillDraft:
        """What a new skill would be, and whether its id is free; nothing is written."""
        return draft_skill(identity, text, frozenset(map(fold_name, self.snapshot().ids)))

    def check_writable(self, identity: str) -> None:
        """Raises: ReadOnly unless it is a user skill, SkillNotFound."""
        listed = self.snapshot().get_entry(self.find(identity).id)
        if listed.source == REPOSITORY_SOURCE:
            raise ReadOnly(identity, repository=listed.repository or "its repository")
        if listed.source != USER:
            lost = self.snapshot().shadowed.get(identity, ())
            raise ReadOnly(identity, shadows=any(one.source == USER for one in lost))

    def artifacts(self) -> Iterator[SkillArtifact]:
        """Every published skill as one file, in order of their ids."""
        shown = self.snapshot()
        for identity in shown.published_ids:
            with _skip_unreadable(identity):
                yield self._get_artifact(shown, identity)

    def file_lists(self) -> Iterator[SkillFileList]:
        """Every published skill with the paths of its files, in order of their ids."""
        shown = self.snapshot()
        for identity in shown.published_ids:
            skill = shown.skills[identity]
            with _skip_unreadable(identity):
                paths = sorted(open_skill_bundle(skill, _PUBLISHED_SCAN).files)
                others = (path for path in paths if path != skill.file)
                yield SkillFileList(shown.get_entry(identity), (SKILL_MD, *others))

    def read_published_file(self, identity: str, path: str) -> bytes:
        """One file of an outline. Raises: as `read_file`."""
        skill = self.find(identity)
        if skill.hidden:
            raise SkillNotFound(identity)
        asked = skill.file if path == SKILL_MD else path
        return read_published_file(skill, RelativePath.parse(asked))

    def _get_artifact(self, shown: CollectionSnapshot, identity: str) -> SkillArtifact:
        known = self._artifacts.get(identity)
        is_settled = shown.skills[identity].source == REPOSITORY_SOURCE
        if known is not None and is_settled and known[0] == shown.revision:
            return known[1]
        pack = partial(_pack_artifact, shown.get_entry(identity))
        artifact = with_bundle(shown.skills[identity], _PUBLISHED_SCAN, pack)
        self._artifacts[identity] = shown.revision, artifact
        return artifact


def _pack_artifact(entry: CollectionEntry, bundle: Bundle) -> SkillArtifact:
    paths = tuple(sorted(bundle.files))
    is_archive = len(paths) > 1
    data = pack_bundle(bundle) if is_archive else bundle.files[paths[0]].read()
    digest = f"sha256:{sha256_hex(data)}"
    return SkillArtifact(entry, is_archive, digest, paths)


@contextmanager
def _skip_unreadable(identity: str) -> Iterator[None]:
    """One skill whose files cannot be read does not spoil a list of all of them."""
    try:
        yield
    except (SkillNotFound, SkillFileNotFound):  # it was removed in between
        pass
    except (SkillhallError, OSError) as error:
        problem = error if isinstance(error, SkillhallError) else format_os_error(error)
        _LOG.warning("skill %r is not published: %s", identity, problem)


def _get_locations(skills: Sequence[Skill]) -> list[str]:
    return [skill.location for skill in skills]


def _build_snapshot(
    revision: str,
    local: Catalog,
    repository: Iterable[Skill],
    origins: Mapping[str, RepositoryOrigin],
) -> CollectionSnapshot:
    """The skills by id: the run directory's own come first, then the first of a repository."""
    skills = {skill.id: skill for skill in local}
    findings = [_relativize_to_root(one, local) for one in local.findings]
    shadowed: dict[str, tuple[Skill, ...]] = {}
    for one in local.shadowed:
        shadowed[one.skill.id] = (*shadowed.get(one.skill.id, ()), one.skill)
    for given in repository:
        skill = given._replace(root=given.root._replace(source=REPOSITORY_SOURCE))
        winner = skills.setdefault(skill.id, skill)
        if winner is not skill:
            shadowed[skill.id] = (*shadowed.get(skill.id, ()), skill)
            findings += LOCAL_SKILLS.load_policy.judge(
                [_build_shadowed_finding(skill, winner, origins)]
            )
    ids = tuple(sorted(skills))
    state = IndexInput(revision, Catalog(LOCAL_SKILLS, (), skills.values()))
    told = tuple(findings)
    return CollectionSnapshot(
        revision, skills, told, ids, state, origins, shadowed, collect_skipped(told)
    )


def _build_shadowed_finding(
    skill: Skill, winner: Skill, origins: Mapping[str, RepositoryOrigin]
) -> Finding:
    """The finding about a skill of a repository whose id is taken."""
    place = origins.get(skill.root.path, _UNKNOWN_ORIGIN).repository
    other = f"the {winner.source} skill"
    if winner.source == REPOSITORY_SOURCE:
        other = f"the skill of {origins.get(winner.root.path, _UNKNOWN_ORIGIN).repository}"
    message = f"{skill.id!r} of {place} is shadowed by {other} with the same id"
    path = f"{skill.folder}/{skill.file}".lstrip("/")
    hint = "rename one of them, or remove the copy that is not needed"
    return Finding(Code.SHADOWED, message, hint=hint, path=path, skill=skill.name)


def _relativize_to_root(judged: JudgedFinding, local: Catalog) -> JudgedFinding:
    """The finding with paths as agents know them, without places on this machine."""
    found = judged.finding
    path, message = found.path, found.message
    for root in local.roots:
        folder = _FOLDER_BY_SOURCE.get(root.source, root.source)
        path, message = (text.replace(root.path, folder) for text in (path, message))
    return judged._replace(finding=found._replace(path=path, message=message))


def _measure_skill(skill: Skill) -> SkillSize:
    seen = examine_skill(skill, LOCAL_SKILLS)
    warnings = sum(1 for one in seen.findings if one.effect is not Effect.ACCEPT)
    return SkillSize(estimate_tokens(seen.parsed.body), max(1, len(seen.bundle.files)), warnings)


def _relativize_to_skill(judged: JudgedFinding, skill: Skill) -> JudgedFinding:
    """The finding with a path in the skill: where that stands is nobody's business."""
    found = judged.finding
    path = found.path.removeprefix(skill.directory).lstrip("/\\") or skill.file
    return judged._replace(finding=found._replace(path=path))
