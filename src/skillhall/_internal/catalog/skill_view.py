"""Skill view: the skills visible to models at one moment.

Agent tools and MCP depend only on it, whether the skills come from a server or from folders.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from skillhall._internal.catalog.skill_content import (
    open_skill_bundle,
    read_accepted_body,
    read_skill_md,
    with_bundle,
)
from skillhall._internal.catalog.skill_paths import SCHEME, assign_skill_paths
from skillhall._internal.hints import find_close_names
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall.errors import SkillFileNotFound, SkillNotApproved, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.search.background_index import BackgroundIndex
    from skillhall._internal.catalog.search.search_index import SearchIndex
    from skillhall._internal.catalog.trust.gate import Clearance, ClearedSkill, HeldSkill
    from skillhall._internal.catalog.trust.trust_summary import TrustSummary
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.skill.bundle import Bundle

MAX_SUGGESTIONS = 5  # names that an error suggests
MAX_RANKED = 500  # skills that matter for a task; no prompt has room for more


class ViewedSkill(NamedTuple):
    """A skill with its unique name and URI path."""

    name: str  # unique in the view; shown to models
    path: str  # in `skill://` URIs
    skill: ClearedSkill

    @property
    def id(self) -> str:
        """The folder of the skill relative to its root."""
        return self.skill.id

    @property
    def uri(self) -> str:
        """The URI of the skill's folder."""
        return f"{SCHEME}{self.path}"


class ViewedHit(NamedTuple):
    """A skill that matches a query, and why."""

    row: ViewedSkill
    words: Mapping[str, Sequence[str]]  # of each field that match
    snippet: str  # the part of the description or the body that matches


class SkillView:
    """The skills that models may see, in order."""

    def __init__(  # noqa: PLR0913 - a snapshot of six things
        self,
        revision: str,
        profile: Profile,
        skills: Iterable[ClearedSkill],
        findings: Iterable[JudgedFinding] = (),
        get_index: Callable[[], SearchIndex] | None = None,
        *,
        clearance: Clearance | None = None,
        summarize_trust: Callable[[CatalogSkill], TrustSummary | None] = lambda _: None,
    ) -> None:
        self.summarize_trust = summarize_trust
        # Models must not learn of held skills, so only their number is shown.
        self.held: tuple[HeldSkill, ...] = () if clearance is None else clearance.held
        self.trust_problem: str = "" if clearance is None else clearance.problem
        self.trust_warnings: tuple[str, ...] = () if clearance is None else clearance.warnings
        # Including hidden ones, which only users may call.
        self.all_skills: tuple[ClearedSkill, ...] = tuple(skills)
        visible = [skill for skill in self.all_skills if is_visible_to_models(skill)]
        paths, path_findings = assign_skill_paths(visible)
        rows = map(ViewedSkill, _assign_names(visible), paths, visible)
        self.revision = revision
        self.profile = profile
        self.skills: Mapping[str, ViewedSkill] = {row.name: row for row in rows}
        self.findings: tuple[JudgedFinding, ...] = (
            *findings,
            *profile.load_policy.judge(path_findings),
        )
        self._get_index = get_index or self._get_own_index
        self._own_index: BackgroundIndex | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.skills)

    def __iter__(self) -> Iterator[ViewedSkill]:
        return iter(self.skills.values())

    def find(self, name: str) -> ViewedSkill:
        """Return the skill with this name, else with this id.

        Raises: SkillNotFound, SkillNotApproved.
        """
        row = self.skills.get(name) or self._by_id.get(name)
        if row is None:
            for skill, decision, _ in self.held:
                if name in (skill.name, skill.id):
                    raise SkillNotApproved(name, decision.rule)
            raise SkillNotFound(name, find_close_names(name, self.skills, MAX_SUGGESTIONS))
        return row

    def find_skill(self, skill: CatalogSkill) -> ViewedSkill | None:
        """Return the row of a skill; `None` if it is not in the view."""
        return self._by_location.get(skill.location)

    def has(self, name: str) -> bool:
        """Whether a skill has this name or id."""
        return name in self.skills or name in self._by_id

    def current_view(self) -> SkillView:
        """Return itself: a view is the provider of an unchanging set of skills."""
        return self

    def read_body(self, row: ViewedSkill) -> str:
        """Read the current body of a skill.

        Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        return read_accepted_body(row.skill, self.profile)

    def list_files(self, row: ViewedSkill) -> Sequence[str]:
        """Return the paths of the files besides SKILL.md. Raises: SkillFileNotFound."""
        if row.skill.is_flat:
            return ()
        bundle = open_skill_bundle(row.skill, self.profile.scan_policy.without_hidden_files)
        return [file.path.text for file in bundle.resources()]

    def read_file(self, row: ViewedSkill, path: str) -> bytes:
        """Read one file; `SKILL.md` means the main file, even if its name differs.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        relative = RelativePath.parse_lenient(path)
        if relative.text in (SKILL_MD, row.skill.file):
            return read_skill_md(row.skill)
        if row.skill.is_flat:
            raise SkillFileNotFound(relative.text)
        policy = self.profile.scan_policy.without_hidden_files
        return with_bundle(row.skill, policy, lambda bundle: bundle.get_file(relative).read())

    def read_files(self, row: ViewedSkill) -> dict[str, tuple[bytes, int]]:
        """Read all files from one version, as contents and modes by path.

        Raises: SkillFileNotFound, SkillNotApproved, UnsafePath, NotAFile, TooLarge.
        """

        def read(bundle: Bundle) -> dict[str, tuple[bytes, int]]:
            return {
                path: (file.read(), 0o755 if file.executable else 0o644)
                for path, file in bundle.files.items()
            }

        return with_bundle(row.skill, self.profile.scan_policy.without_hidden_files, read)

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Sequence[ViewedHit], int]:
        """Search the view; return a page of the best skills and the total number of matches."""
        rows, index = self._by_location, self._get_index()
        result = index.search(query, limit, offset, lambda one: one.location in rows)
        hits = [
            ViewedHit(rows[hit.skill.location], index.explain(query, hit).words, hit.snippet.text)
            for hit in result.hits
        ]
        return hits, result.total

    def rank(self, task: str, limit: int = MAX_RANKED) -> Sequence[ViewedSkill]:
        """Return the skills that matter most for a task, best first.

        The result depends only on the skills and the task, so texts that have not been indexed yet
        are read first.
        """
        if not task.strip():
            return ()
        index = self._get_index()
        if index.pending_count:
            index.read_texts()
        groups, _ = index.find(task, limit)
        rows = self._by_location
        # One of several copies is enough.
        visible = ([one.location for one in group if one.location in rows] for group in groups)
        return [rows[locations[0]] for locations in visible if locations]

    def _get_own_index(self) -> SearchIndex:
        # Most programs that load skills never search them, and the index with its database takes
        # 15 of the 60 ms of CPU to import what `Skills.load` needs.
        from skillhall._internal.catalog.search.background_index import (  # noqa: PLC0415
            BackgroundIndex,
            IndexInput,
        )

        with self._lock:
            if self._own_index is None:
                self._own_index = BackgroundIndex()
        return self._own_index.get_index(IndexInput(self.revision, self.all_skills))

    @cached_property
    def _by_location(self) -> Mapping[str, ViewedSkill]:
        return {row.skill.location: row for row in self}

    @cached_property
    def _by_id(self) -> Mapping[str, ViewedSkill]:
        return {row.skill.id: row for row in reversed([*self])}


class SkillProvider(Protocol):
    """Provider of skill views; thread-safe."""

    def current_view(self) -> SkillView:
        """Return the current view; a new object only if something changed."""


@runtime_checkable
class VersionProvider(SkillProvider, Protocol):
    """Provider of skills that have versions."""

    def pinned_view(self, identity: str) -> SkillView | None:
        """Return a view with the version that an id names, such as `pdf@4`; None if it names none.

        Raises: SkillhallError.
        """


def _assign_names(skills: Sequence[CatalogSkill]) -> Iterator[str]:
    """Yield a unique name per skill: its name, else its id, else its id with a number."""
    taken: set[str] = set()
    for skill in skills:
        name, number = skill.name, 1
        if name in taken:
            name = skill.id
        while name in taken:
            number += 1
            name = f"{skill.id}~{number}"
        taken.add(name)
        yield name
