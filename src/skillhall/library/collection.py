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
from typing import TYPE_CHECKING, NamedTuple

from skillhall.catalog.catalog import Catalog
from skillhall.catalog.read import bundle_of, read_skill_file
from skillhall.catalog.stamps import take_signature
from skillhall.errors import ReadOnly, SkillhallError, SkillNotFound, SourceRejected
from skillhall.library.adding import digest_of
from skillhall.library.drafting import Draft, draft
from skillhall.library.intake import (
    Opened,
    bundles_in_file,
    bundles_of_files,
    open_client_source,
    open_source,
)
from skillhall.library.local_changes import LocalChanges
from skillhall.library.local_intake import SYSTEM, USER
from skillhall.library.local_skills import EVERY_FILE
from skillhall.library.looking import Looks
from skillhall.library.offering import Offer
from skillhall.library.searching import Searching, State
from skillhall.library.validate import examine_skill
from skillhall.policy.loading import Effect
from skillhall.policy.profiles import LOCAL_SKILLS
from skillhall.skill.bundle import folded, sha256_of
from skillhall.skill.finding import Code, Finding
from skillhall.skill.frontmatter import SKILL_MD
from skillhall.skill.tokens import estimate_tokens
from skillhall.sources.archive import LIMITS, read_archive
from skillhall.sources.candidate import reason
from skillhall.sources.packing import pack_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall.catalog.catalog import Skill
    from skillhall.library.editing import SkillText
    from skillhall.library.local_changes import Changed
    from skillhall.library.local_skills import ImportReport
    from skillhall.library.own_skills import OwnSkills
    from skillhall.policy.loading import Judged
    from skillhall.settings import Settings
    from skillhall.skill.bundle import Bundle, SkillFile
    from skillhall.sources.candidate import Signature

    Imported: TypeAlias = tuple[ImportReport, str]  # and what takes it back; "" if nothing does
    Repository: TypeAlias = Callable[[], tuple[str, Sequence[Skill]]]  # a digest, and of what

SOURCES = ("user", "system", "repository")
REPOSITORY = "repository"  # the source of skills that are not the run directory's own
MAX_PAGE = 1000  # skills
MAX_FILES = LIMITS.entries  # that are imported at once
_LOG = logging.getLogger("skillhall.server")


class Listed(NamedTuple):
    """A skill as a list shows it."""

    id: str
    name: str
    description: str
    source: str  # system, user or repository
    hidden: bool


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

    @property
    def published(self) -> list[str]:
        """The ids of the skills that installers get: those that a model may see, in order."""
        return [identity for identity in self.ids if not self.skills[identity].hidden]

    def of_source(self, source: str) -> list[str]:
        """The ids of one source, in order."""
        return [identity for identity in self.ids if self.skills[identity].source == source]

    def listed(self, identity: str) -> Listed:
        """One row of the list."""
        skill = self.skills[identity]
        return Listed(identity, skill.name, skill.description, skill.source, skill.hidden)

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
    repository: Repository = field(default=lambda: ("", ()))
    clock: Callable[[], float] = time.monotonic
    _shown: Shown | None = None
    _stock: tuple[str, Sequence[Skill]] = ("", ())  # what the repository gave last
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
        digest, skills = self.repository()
        looked = self.looks.revision(self.clock(), max_age)
        with self._lock:
            revision = f"{looked}{digest}{self._moved(digest, skills)}"
            if self._shown is None or self._shown.revision != revision:
                self._shown = _shown(revision, self.local.catalog(), skills)
                self._searching.prepare(self._shown.state)
            return self._shown

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
                profile = LOCAL_SKILLS._replace(scan=EVERY_FILE)
                index = partial(self._searching.index, shown.state)
                skills = shown.skills.values()
                self._offer = Offer(shown.revision, profile, skills, shown.findings, index)
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
        skill, bundle = self.find(identity), self.bundle(identity)
        seen = examine_skill(skill, LOCAL_SKILLS)
        return Details(
            self.show().listed(identity),
            seen.parsed.frontmatter.fields,
            seen.parsed.body,
            estimate_tokens(seen.parsed.body),
            digest_of(bundle),
            tuple(bundle.files.values()),
            tuple(_told_inside(one, skill) for one in seen.findings),
        )

    def bundle(self, identity: str) -> Bundle:
        """All files of a skill. Raises: SkillNotFound, SkillFileNotFound."""
        return bundle_of(self.find(identity), EVERY_FILE)

    def read_file(self, identity: str, path: str) -> bytes:
        """One file. Raises: SkillNotFound, SkillFileNotFound, UnsafePath, NotAFile, TooLarge."""
        return read_skill_file(self.find(identity), path)

    def archive(self, identity: str) -> bytes:
        """All files as one zip file. Raises: as `bundle`, and what reading raises."""
        return pack_bundle(self.bundle(identity))

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

    def delete(self, identity: str) -> str:
        """Remove a user skill; the id of the change, if it can be taken back.

        Raises: ReadOnly, SkillNotFound, UnsafePath, OSError.
        """
        if self.find(identity).source == REPOSITORY:
            raise ReadOnly(identity)
        return self.changes.delete(identity)

    def draft(self, identity: str, text: SkillText) -> Draft:
        """What a new skill would be, and whether its id is free; nothing is written."""
        return draft(identity, text, frozenset(map(folded, self.show().ids)))

    def refuse_read_only(self, identity: str) -> None:
        """Raises: ReadOnly unless it is a user skill, SkillNotFound."""
        if self.find(identity).source != USER:
            raise ReadOnly(identity)

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
            own = shown.skills[identity].file
            with _left_out_if_unreadable(identity):
                others = (path for path in sorted(self.bundle(identity).files) if path != own)
                yield Outline(shown.listed(identity), (SKILL_MD, *others))

    def read_published(self, identity: str, path: str) -> bytes:
        """One file of an outline. Raises: as `read_file`."""
        skill = self.find(identity)
        if skill.hidden:
            raise SkillNotFound(identity)
        return read_skill_file(skill, skill.file if path == SKILL_MD else path)

    def _artifact(self, shown: Shown, identity: str) -> Artifact:
        known = self._artifacts.get(identity)
        is_settled = shown.skills[identity].source == REPOSITORY
        if known is not None and is_settled and known[0] == shown.revision:
            return known[1]
        artifact = self._packed(shown.listed(identity))
        self._artifacts[identity] = shown.revision, artifact
        return artifact

    def _packed(self, listed: Listed) -> Artifact:
        bundle = self.bundle(listed.id)
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
    except (SkillhallError, OSError) as error:
        problem = error if isinstance(error, SkillhallError) else reason(error)
        _LOG.warning("skill %r is not published: %s", identity, problem)


def _places(skills: Sequence[Skill]) -> list[str]:
    return [skill.location for skill in skills]


def _shown(revision: str, local: Catalog, repository: Iterable[Skill]) -> Shown:
    """The skills by id: the run directory's own come first, then the first of a repository."""
    skills = {skill.id: skill for skill in local}
    findings = [*local.findings]
    for skill in repository:
        if skill.id in skills:
            is_ours = skills[skill.id].source != REPOSITORY
            by = "one of the run directory" if is_ours else "one of an earlier repository"
            message = f"{skill.id!r} of the repository is hidden by {by}"
            lost = Finding(Code.SHADOWED, message, path=skill.id, skill=skill.name)
            findings += LOCAL_SKILLS.load.judge([lost])
        else:
            root = skill.root._replace(source=REPOSITORY)
            skills[skill.id] = skill._replace(root=root)
    ids = tuple(sorted(skills))
    state = State(revision, Catalog(LOCAL_SKILLS, (), skills.values()))
    return Shown(revision, skills, tuple(findings), ids, state)


def _figures(skill: Skill) -> Figures:
    seen = examine_skill(skill, LOCAL_SKILLS)
    warnings = sum(1 for one in seen.findings if one.effect is not Effect.ACCEPT)
    return Figures(estimate_tokens(seen.parsed.body), max(1, len(seen.bundle.files)), warnings)


def _told_inside(judged: Judged, skill: Skill) -> Judged:
    """The finding with a path in the skill: where that stands is nobody's business."""
    found = judged.finding
    path = found.path.removeprefix(skill.directory).lstrip("/\\") or skill.file
    return judged._replace(finding=found._replace(path=path))
