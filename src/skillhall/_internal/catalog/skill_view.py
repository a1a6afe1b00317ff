"""The offer: the skills that readers of one server or one agent can ask for, at one moment.

Tools for agents and MCP stand on it alone, whether the skills are a server's or those of folders.
"""

from __future__ import annotations

import hashlib
import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.fingerprint import take_fingerprint
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import (
    open_skill_bundle,
    read_accepted_body,
    read_skill_md,
    with_bundle,
)
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.catalog.skill_paths import SCHEME, assign_skill_paths
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall.errors import SkillFileNotFound, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.fingerprint import Fingerprint
    from skillhall._internal.catalog.head_cache import HeadCache
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.root import Root

MAX_SUGGESTIONS = 5  # names that an error suggests


class ViewedSkill(NamedTuple):
    """One skill, and what it is called: by models, and in addresses."""

    name: str  # its own name, unless another skill has that already
    path: str  # in `skill://` addresses
    skill: Skill

    @property
    def uri(self) -> str:
        """The address of its folder."""
        return f"{SCHEME}{self.path}"


class SkillView:
    """What is offered: every skill that a model may be shown, in order."""

    def __init__(
        self,
        revision: str,
        profile: Profile,
        skills: Iterable[Skill],
        findings: Iterable[JudgedFinding] = (),
        get_index: Callable[[], SearchIndex] | None = None,
    ) -> None:
        self.all_skills = tuple(skills)  # those too that only people may call
        shown = [skill for skill in self.all_skills if is_visible_to_models(skill)]
        paths, noticed = assign_skill_paths(shown)
        rows = map(ViewedSkill, _assign_names(shown), paths, shown)
        self.revision = revision  # another one as soon as a skill came, went or was edited
        self.profile = profile
        self.skills: Mapping[str, ViewedSkill] = {row.name: row for row in rows}
        self.findings = (*findings, *profile.load_policy.judge(noticed))
        self._get_index = get_index or self._get_own_index
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many skills there are."""
        return len(self.skills)

    def __iter__(self) -> Iterator[ViewedSkill]:
        """The skills, in order."""
        return iter(self.skills.values())

    def find(self, name: str) -> ViewedSkill:
        """The skill that is called so, else the one with that id. Raises: SkillNotFound."""
        found = self.skills.get(name) or self._by_id.get(name)
        if found is None:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a wrong name

            raise SkillNotFound(name, get_close_matches(name, self.skills, MAX_SUGGESTIONS))
        return found

    def read_body(self, row: ViewedSkill) -> str:
        """The instructions of a skill, as they are at this moment.

        Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        return read_accepted_body(row.skill, self.profile)

    def list_files(self, row: ViewedSkill) -> Sequence[str]:
        """The paths of its other files. Raises: SkillFileNotFound."""
        if row.skill.is_flat:
            return ()
        files = open_skill_bundle(
            row.skill, self.profile.scan_policy.without_hidden_files
        ).resources()
        return [file.path.text for file in files]

    def read_file(self, row: ViewedSkill, path: str) -> bytes:
        """One file; `SKILL.md` is its own file, however that is written.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        relative = RelativePath.parse_lenient(path)
        if relative.text in (SKILL_MD, row.skill.file):
            return read_skill_md(row.skill)
        if row.skill.is_flat:
            raise SkillFileNotFound(relative.text)
        scan = self.profile.scan_policy.without_hidden_files
        return with_bundle(row.skill, scan, lambda bundle: bundle.get_file(relative).read())

    def search(self, query: str, limit: int) -> tuple[Sequence[ViewedSkill], int]:
        """The skills that a text finds in names and descriptions, and how many there are."""
        result = self._get_index().search(query, limit, for_models=True)
        return [self._by_location[hit.skill.location] for hit in result.hits], result.total

    def _get_own_index(self) -> SearchIndex:
        with self._lock:
            return self._own_index

    @cached_property
    def _own_index(self) -> SearchIndex:
        return SearchIndex.build(Catalog(self.profile, (), [row.skill for row in self]))

    @cached_property
    def _by_location(self) -> Mapping[str, ViewedSkill]:
        return {row.skill.location: row for row in self}

    @cached_property
    def _by_id(self) -> Mapping[str, ViewedSkill]:
        return {row.skill.id: row for row in reversed([*self])}


class SkillProvider(Protocol):
    """Whatever has skills to offer; safe to use from several threads."""

    def current_view(self) -> SkillView:
        """What there is now; looked up again only if something changed."""


class FolderSkillProvider:
    """The skills of folders, as a profile takes them."""

    def __init__(
        self, roots: Sequence[Root], profile: Profile, head_cache: HeadCache | None = None
    ) -> None:
        self._roots = tuple(roots)
        self._profile = profile
        self._head_cache = head_cache
        self._cached: tuple[Fingerprint, SkillView] | None = None
        self._lock = threading.Lock()

    def current_view(self) -> SkillView:
        """What there is now; the folders are read again only if something in them changed."""
        with self._lock:
            if self._cached is None or not self._cached[0].is_current():
                self._cached = self._load()
            return self._cached[1]

    def _load(self) -> tuple[Fingerprint, SkillView]:
        follow = {root.path for root in self._roots if root.follow_links}
        stamps = take_fingerprint(
            [root.path for root in self._roots], self._profile.scan_policy, follow
        )
        revision = _compute_revision(stamps)
        if self._cached is not None and self._cached[1].revision == revision:
            return stamps, self._cached[1]
        catalog = load_roots(self._roots, self._profile, self._head_cache)
        return stamps, SkillView(revision, self._profile, catalog, catalog.findings)


def _assign_names(skills: Sequence[Skill]) -> Iterator[str]:
    """A name for each, none of them twice: its own, else its id, else that with a number."""
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


def _compute_revision(fingerprint: Fingerprint) -> str:
    return hashlib.sha256(repr(sorted(fingerprint.signatures.items())).encode()).hexdigest()
