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
from skillhall._internal.catalog.fingerprint import take_signature
from skillhall._internal.catalog.reader import bundle_of, read_published_file, with_bundle
from skillhall._internal.catalog.search.background_index import Searching, State
from skillhall._internal.catalog.skill_view import Offer
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.installer.preflight import digest_of
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.skipped_items import skipped_in
from skillhall._internal.skill.bundle import RelativePath, folded, sha256_of
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.changes import LocalChanges
from skillhall._internal.skill_store.draft import Draft, draft
from skillhall._internal.skill_store.input_checks import NOT_SHADOWED, SYSTEM, USER
from skillhall._internal.skill_store.revision_poller import Looks
from skillhall._internal.sources.archive.source import LIMITS, read_archive
from skillhall._internal.sources.archive.zip_writer import pack_bundle
from skillhall._internal.sources.folder.bundle_reader import in_memory
from skillhall._internal.sources.folder.candidate import reason
from skillhall._internal.sources.opener import (
    Opened,
    bundles_in_file,
    bundles_of_files,
    open_client_source,
    open_source,
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
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.policy.skipped_items import Skipped
    from skillhall._internal.settings import Settings
    from skillhall._internal.skill.bundle import Bundle, SkillFile
    from skillhall._internal.skill.edit import SkillText
    from skillhall._internal.skill_store.changes import Changed
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.store import OwnSkills
    from skillhall._internal.sources.folder.candidate import Signature

    Imported: TypeAlias = tuple[ImportReport, str]  # and what takes it back; "" if nothing does
    Repository: TypeAlias = Callable[[], "Supplied"]

SOURCES = ("user", "system", "repository")
REPOSITORY = "repository"  # the source of skills that are not the run directory's own
_FOLDERS = {source: folder for folder, source in LOCAL_SKILLS.roots}
MAX_PAGE = 1000  # skills
MAX_FILES = LIMITS.entries  # that are imported at once
_PUBLISHED = LOCAL_SKILLS.scan.published
_LOG = logging.getLogger("skillhall.server")


class Origin(NamedTuple):
    """The repository that a skill is from, without credentials, and its commit."""

    repository: str = ""
    commit: str = ""


_UNKNOWN = Origin("a repository")


class Supplied(NamedTuple):
    """The skills of all repositories that a server reads, in order of precedence."""

    digest: str = ""  # changes with any of them
    skills: Sequence[Skill] = ()
    origins: Mapping[str, Origin] = MappingProxyType({})  # by the folder that skills are read from


class Listed(NamedTuple):
    """A skill as a list shows it."""

    id: str
    name: str
    description: str
    source: str  # system, user or repository
    hidden: bool
    repository: str = ""  # which one, for a skill of a repository


class Page(NamedTuple):
    """A part of the list, and where the next part begins."""

    skills: tuple[Listed, ...]
    total: int
    following: str = ""  # the id after which it goes on


@dataclass(frozen=True, slots=True)
class Details:
    """Everything about one skill at this moment."""

    listed: Listed
    frontmatter: Mapping[str, object]
    body: str
    tokens: int
    digest: str
    files: tuple[SkillFile, ...]
    findings: tuple[Judged, ...]
    shadowed: tuple[Listed, ...] = ()  # skills of the same id that are not served


class Found(NamedTuple):
    """What a search found, the best first."""

    skills: tuple[Listed, ...]
    total: int


class Artifact(NamedTuple):
    """A skill as one file for installers: its SKILL.md alone, or an archive."""

    listed: Listed
    is_archive: bool
    digest: str
    files: tuple[str, ...]


class Outline(NamedTuple):
    """A skill and the paths of its files, SKILL.md first, whatever that is called here."""

    listed: Listed
    files: tuple[str, ...]


class Figures(NamedTuple):
    """What a list tells about a skill besides its words."""

    tokens: int
    files: int
    warnings: int  # findings that a person should look at


@dataclass(frozen=True, slots=True)
class Shown:
    """The collection at one moment."""

    revision: str
    skills: Mapping[str, Skill]
    findings: tuple[Judged, ...]
    ids: tuple[str, ...]  # in order
    state: State  # the same as a search takes it
    origins: Mapping[str, Origin]
    shadowed: Mapping[str, tuple[Skill, ...]]  # by id: those that another one hides
    skipped: tuple[Skipped, ...]  # what is not served, of the run directory and of repositories

    @property
    def published(self) -> list[str]:
        """The ids of the skills that installers get: those that a model may see, in order."""
        return [identity for identity in self.ids if not self.skills[identity].hidden]

    def of_source(self, source: str) -> list[str]:
        """The ids of one source, in order."""
        return [identity for identity in self.ids if self.skills[identity].source == source]

    def listed(self, identity: str) -> Listed:
        """One row of the list."""
        return self._row(self.skills[identity])

    def shadowed_by(self, identity: str) -> tuple[Listed, ...]:
        """The skills of the same id that are not served."""
        return tuple(map(self._row, self.shadowed.get(identity, ())))

    def _row(self, skill: Skill) -> Listed:
        name = self.origins.get(skill.root.path, Origin()).repository
        return Listed(skill.id, skill.name, skill.description, skill.source, skill.hidden, name)

    def page(self, after: str = "", limit: int = MAX_PAGE, source: str = "") -> Page:
        """Up to `limit` skills that come after an id, in order; of one source, if it is named."""
        ids = self.of_source(source) if source else self.ids
        rest = ids[bisect_right(ids, after) :]
        taken = rest[: min(limit, MAX_PAGE)]
        following = taken[-1] if taken and len(rest) > len(taken) else ""
        return Page(tuple(map(self.listed, taken)), len(ids), following)


@dataclass(slots=True)
class Collection:
    """The verbs on a server's skills; safe to use from several threads."""

    local: OwnSkills
    settings: Settings
    repository: Repository = field(default=Supplied)
    clock: Callable[[], float] = time.monotonic
    _shown: Shown | None = None
    _stock: tuple[str, Sequence[Skill]] = ("", ())  # what the repository gave last
    _logged: frozenset[Skipped] = frozenset()  # what is skipped and was logged
    _moves: int = 0  # how often that was the same in another place
    _searching: Searching = field(default_factory=Searching)
    _offer: Offer | None = None
    _artifacts: dict[str, tuple[str, Artifact]] = field(default_factory=dict)
    _figures: dict[str, tuple[Signature | None, Figures]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is looked at before it is asked for."""
        self.looks = Looks(self.local)

    def show(self, max_age: float = 0.0) -> Shown:
        """What there is now; looked up again only if something changed.

        With a `max_age` in seconds, files that others edited since may not be seen yet.
        """
        digest, skills, origins = self.repository()
        looked = self.looks.revision(self.clock(), max_age)
        with self._lock:
            revision = f"{looked}{digest}{self._moved(digest, skills)}"
            if self._shown is None or self._shown.revision != revision:
                self._shown = _shown(revision, self.local.catalog(), skills, origins)
                self._searching.prepare(self._shown.state)
                self._log_skipped(self._shown.skipped)
            return self._shown

    def _log_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Log what was not skipped before; repositories log their own at each commit."""
        log_skipped("skills", [one for one in skipped if one not in self._logged])
        self._logged = frozenset(skipped)

    def _moved(self, digest: str, skills: Sequence[Skill]) -> str:
        """What tells skills from equal ones elsewhere, as before a cache was cleared."""
        before, were = self._stock
        if skills is not were:
            self._moves += before == digest and _places(skills) != _places(were)
            self._stock = digest, skills
        return f"-{self._moves}" if self._moves else ""

    def search(self, text: str, limit: int = MAX_PAGE, max_age: float = 0.0) -> Found:
        """The skills that a text finds in names, descriptions and, once they are read, bodies."""
        shown = self.show(max_age)
        skills, total = self._searching.index(shown.state).find(text, limit)
        return Found(tuple(shown.listed(skill.id) for skill in skills), total)

    def offer(self) -> Offer:
        """The skills that a model may be shown, for tools and for MCP."""
        shown = self.show()
        with self._lock:
            if self._offer is None or self._offer.revision != shown.revision:
                index = partial(self._searching.index, shown.state)
                skills = shown.skills.values()
                self._offer = Offer(shown.revision, LOCAL_SKILLS, skills, shown.findings, index)
            return self._offer

    def import_source(
        self, text: str, identity: str | None = None, *, replace: bool = False
    ) -> Imported:
        """Take in the skills of a repository or web address: nothing of this machine.

        Raises: SourceRejected, and what opening the source and importing raise.
        """
        return self._import(self.open_remote(text).bundles, identity, replace=replace)

    def open_remote(self, text: str) -> Opened:
        """The skills of a repository or web address. Raises: SourceRejected, as `open_source`."""
        return open_client_source(text, self.settings)

    def open_folder(self, text: str) -> Opened:
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
    ) -> Imported:
        """Take in the skills of an archive. Raises: what reading it and importing raise."""
        return self._import(read_archive(data, name), identity, replace=replace)

    def import_file(
        self, data: bytes, name: str, identity: str | None = None, *, replace: bool = False
    ) -> Imported:
        """Take in the skills of an archive, or a SKILL.md. Raises: as `import_archive`."""
        return self._import(bundles_in_file(data, name), identity, replace=replace)

    def import_files(
        self,
        files: Sequence[tuple[str, bytes]],
        identity: str | None = None,
        *,
        replace: bool = False,
    ) -> Imported:
        """Take in the skills among loose files with paths. Raises: as `import_archive`."""
        return self._import(bundles_of_files(files), identity, replace=replace)

    def _import(
        self, bundles: Iterable[Bundle], identity: str | None, *, replace: bool
    ) -> Imported:
        return self.changes.import_([*bundles], identity, replace=replace)

    def find(self, identity: str) -> Skill:
        """The skill with that id. Raises: SkillNotFound."""
        skills = self.show().skills
        if identity not in skills:
            raise SkillNotFound(identity, get_close_matches(identity, skills))
        return skills[identity]

    def details(self, identity: str) -> Details:
        """Everything about one skill. Raises: SkillNotFound, SkillFileNotFound."""
        skill = self.find(identity)

        def read(bundle: Bundle) -> Details:
            seen, shown = examine_skill(skill, LOCAL_SKILLS), self.show()
            held = in_memory(bundle)
            return Details(
                shown.listed(identity),
                seen.parsed.frontmatter.fields,
                seen.parsed.body,
                estimate_tokens(seen.parsed.body),
                digest_of(held),
                tuple(held.files.values()),
                tuple(_told_inside(one, skill) for one in seen.findings),
                shown.shadowed_by(identity),
            )

        return with_bundle(skill, _PUBLISHED, read)

    def origin(self, identity: str) -> Origin:
        """The repository that a skill is from now. Raises: SkillNotFound."""
        shown, folder = self.show(), self.find(identity).root.path
        # A commit that changes no skill is news for this alone.
        now = self.repository().origins
        return now.get(folder) or shown.origins.get(folder, Origin())

    def bundle(self, identity: str) -> Bundle:
        """All published files of a skill. Raises: SkillNotFound, SkillFileNotFound."""
        return bundle_of(self.find(identity), _PUBLISHED)

    def read_file(self, identity: str, path: str) -> bytes:
        """One file. Raises: SkillNotFound, SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        return read_published_file(self.find(identity), RelativePath.parse(path))

    def archive(self, identity: str) -> bytes:
        """All files as one zip file. Raises: as `bundle`, and what reading raises."""
        return with_bundle(self.find(identity), _PUBLISHED, pack_bundle)

    def figures(self, skill: Skill) -> Figures:
        """The figures of a skill, counted again if its SKILL.md changed."""
        signature = take_signature(skill.location)
        known = self._figures.get(skill.location)
        if known is None or known[0] != signature:
            known = self._figures[skill.location] = signature, _figures(skill)
        return known[1]

    def system_ids(self) -> list[str]:
        """The ids that no user skill may have."""
        return self.show().of_source(SYSTEM)

    @property
    def changes(self) -> LocalChanges:
        """The verbs on user skills that can be taken back."""
        return LocalChanges(self.local, self.settings.data_directory)

    def edit(self, identity: str, text: SkillText, digest: str) -> Changed:
        """Change the words of a user skill. Raises: ReadOnly, and as `LocalChanges.edit`."""
        self.refuse_read_only(identity)
        return self.changes.edit(identity, text, digest)

    def delete(self, identity: str, *, shadowed: bool = False) -> str:
        """Remove a user skill; the id of the change, if it can be taken back.

        One that a system skill shadows is removed only if `shadowed` asks for it.
        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        if self.find(identity).source == REPOSITORY:
            self.refuse_read_only(identity)
        return self.changes.delete(identity, shadowed=shadowed)

    def shadowed_bundle(self, identity: str) -> Bundle:
        """All published files of the user skill that a system skill shadows.

        Raises: SkillNotFound.
        """
        for skill in self.show().shadowed.get(identity, ()):
            if skill.source == USER:
                return bundle_of(skill, _PUBLISHED)
        raise SkillNotFound(identity, hint=NOT_SHADOWED)

    def draft(self, identity: str, text: SkillText) -> Draft:
        """What a new skill would be, and whether its id is free; nothing is written."""
        return draft(identity, text, frozenset(map(folded, self.show().ids)))

    def refuse_read_only(self, identity: str) -> None:
        """Raises: ReadOnly unless it is a user skill, SkillNotFound."""
        listed = self.show().listed(self.find(identity).id)
        if listed.source == REPOSITORY:
            raise ReadOnly(identity, repository=listed.repository or "its repository")
        if listed.source != USER:
            lost = self.show().shadowed.get(identity, ())
            raise ReadOnly(identity, shadows=any(one.source == USER for one in lost))

    def artifacts(self) -> Iterator[Artifact]:
        """Every published skill as one file, in order of their ids."""
        shown = self.show()
        for identity in shown.published:
            with _left_out_if_unreadable(identity):
                yield self._artifact(shown, identity)

    def outlines(self) -> Iterator[Outline]:
        """Every published skill with the paths of its files, in order of their ids."""
        shown = self.show()
        for identity in shown.published:
            skill = shown.skills[identity]
            with _left_out_if_unreadable(identity):
                paths = sorted(bundle_of(skill, _PUBLISHED).files)
                others = (path for path in paths if path != skill.file)
                yield Outline(shown.listed(identity), (SKILL_MD, *others))

    def read_published(self, identity: str, path: str) -> bytes:
        """One file of an outline. Raises: as `read_file`."""
        skill = self.find(identity)
        if skill.hidden:
            raise SkillNotFound(identity)
        asked = skill.file if path == SKILL_MD else path
        return read_published_file(skill, RelativePath.parse(asked))

    def _artifact(self, shown: Shown, identity: str) -> Artifact:
        known = self._artifacts.get(identity)
        is_settled = shown.skills[identity].source == REPOSITORY
        if known is not None and is_settled and known[0] == shown.revision:
            return known[1]
        pack = partial(_packed, shown.listed(identity))
        artifact = with_bundle(shown.skills[identity], _PUBLISHED, pack)
        self._artifacts[identity] = shown.revision, artifact
        return artifact


def _packed(listed: Listed, bundle: Bundle) -> Artifact:
    paths = tuple(sorted(bundle.files))
    is_archive = len(paths) > 1
    data = pack_bundle(bundle) if is_archive else bundle.files[paths[0]].read()
    digest = f"sha256:{sha256_of(data)}"
    return Artifact(listed, is_archive, digest, paths)


@contextmanager
def _left_out_if_unreadable(identity: str) -> Iterator[None]:
    """One skill whose files cannot be read does not spoil a list of all of them."""
    try:
        yield
    except (SkillNotFound, SkillFileNotFound):  # it was removed in between
        pass
    except (SkillhallError, OSError) as error:
        problem = error if isinstance(error, SkillhallError) else reason(error)
        _LOG.warning("skill %r is not published: %s", identity, problem)


def _places(skills: Sequence[Skill]) -> list[str]:
    return [skill.location for skill in skills]


def _shown(
    revision: str, local: Catalog, repository: Iterable[Skill], origins: Mapping[str, Origin]
) -> Shown:
    """The skills by id: the run directory's own come first, then the first of a repository."""
    skills = {skill.id: skill for skill in local}
    findings = [_below_root(one, local) for one in local.findings]
    shadowed: dict[str, tuple[Skill, ...]] = {}
    for one in local.shadowed:
        shadowed[one.skill.id] = (*shadowed.get(one.skill.id, ()), one.skill)
    for given in repository:
        skill = given._replace(root=given.root._replace(source=REPOSITORY))
        winner = skills.setdefault(skill.id, skill)
        if winner is not skill:
            shadowed[skill.id] = (*shadowed.get(skill.id, ()), skill)
            findings += LOCAL_SKILLS.load.judge([_shadowed(skill, winner, origins)])
    ids = tuple(sorted(skills))
    state = State(revision, Catalog(LOCAL_SKILLS, (), skills.values()))
    told = tuple(findings)
    return Shown(revision, skills, told, ids, state, origins, shadowed, skipped_in(told))


def _shadowed(skill: Skill, winner: Skill, origins: Mapping[str, Origin]) -> Finding:
    """The finding about a skill of a repository whose id is taken."""
    place = origins.get(skill.root.path, _UNKNOWN).repository
    other = f"the {winner.source} skill"
    if winner.source == REPOSITORY:
        other = f"the skill of {origins.get(winner.root.path, _UNKNOWN).repository}"
    message = f"{skill.id!r} of {place} is shadowed by {other} with the same id"
    path = f"{skill.folder}/{skill.file}".lstrip("/")
    hint = "rename one of them, or remove the copy that is not needed"
    return Finding(Code.SHADOWED, message, hint=hint, path=path, skill=skill.name)


def _below_root(judged: Judged, local: Catalog) -> Judged:
    """The finding with paths as agents know them, without places on this machine."""
    found = judged.finding
    path, message = found.path, found.message
    for root in local.roots:
        folder = _FOLDERS.get(root.source, root.source)
        path, message = (text.replace(root.path, folder) for text in (path, message))
    return judged._replace(finding=found._replace(path=path, message=message))


def _figures(skill: Skill) -> Figures:
    seen = examine_skill(skill, LOCAL_SKILLS)
    warnings = sum(1 for one in seen.findings if one.effect is not Effect.ACCEPT)
    return Figures(estimate_tokens(seen.parsed.body), max(1, len(seen.bundle.files)), warnings)


def _told_inside(judged: Judged, skill: Skill) -> Judged:
    """The finding with a path in the skill: where that stands is nobody's business."""
    found = judged.finding
    path = found.path.removeprefix(skill.directory).lstrip("/\\") or skill.file
    return judged._replace(finding=found._replace(path=path))
