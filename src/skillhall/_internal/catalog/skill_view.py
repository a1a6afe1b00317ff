"""The offer: the skills that readers of one server or one agent can ask for, at one moment.

Tools for agents and MCP stand on it alone, whether the skills are a server's or those of folders.
"""

from __future__ import annotations

import hashlib
import threading
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.fingerprint import take_stamps
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import bundle_of, read_body, read_own_file, with_bundle
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.catalog.skill_paths import SCHEME, skill_paths
from skillhall._internal.policy.selection import shown_to_models
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall.errors import SkillFileNotFound, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.catalog.fingerprint import Stamps
    from skillhall._internal.catalog.head_cache import HeadIndex
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.root import Root

NEAR = 5  # names that an error suggests


class Offered(NamedTuple):
    """One skill, and what it is called: by models, and in addresses."""

    name: str  # its own name, unless another skill has that already
    path: str  # in `skill://` addresses
    skill: Skill

    @property
    def uri(self) -> str:
        """The address of its folder."""
        return f"{SCHEME}{self.path}"


class Offer:
    """What is offered: every skill that a model may be shown, in order."""

    def __init__(
        self,
        revision: str,
        profile: Profile,
        skills: Iterable[Skill],
        findings: Iterable[Judged] = (),
        index: Callable[[], SearchIndex] | None = None,
    ) -> None:
        self.known = tuple(skills)  # those too that only people may call
        shown = [skill for skill in self.known if shown_to_models(skill)]
        paths, noticed = skill_paths(shown)
        rows = map(Offered, _names_for(shown), paths, shown)
        self.revision = revision  # another one as soon as a skill came, went or was edited
        self.profile = profile
        self.skills: Mapping[str, Offered] = {row.name: row for row in rows}
        self.findings = (*findings, *profile.load.judge(noticed))
        self._index = index or self._own_index
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many skills there are."""
        return len(self.skills)

    def __iter__(self) -> Iterator[Offered]:
        """The skills, in order."""
        return iter(self.skills.values())

    def find(self, name: str) -> Offered:
        """The skill that is called so, else the one with that id. Raises: SkillNotFound."""
        found = self.skills.get(name) or self._by_id.get(name)
        if found is None:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a wrong name

            raise SkillNotFound(name, get_close_matches(name, self.skills, NEAR))
        return found

    def body(self, row: Offered) -> str:
        """The instructions of a skill, as they are at this moment.

        Raises: SkillRejected, SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        return read_body(row.skill, self.profile)

    def files(self, row: Offered) -> Sequence[str]:
        """The paths of its other files. Raises: SkillFileNotFound."""
        if row.skill.is_flat:
            return ()
        files = bundle_of(row.skill, self.profile.scan.published).resources()
        return [file.path.text for file in files]

    def read_file(self, row: Offered, path: str) -> bytes:
        """One file; `SKILL.md` is its own file, however that is written.

        Raises: SkillFileNotFound, UnsafePath, NotAFile, TooLarge.
        """
        relative = RelativePath.normalized(path)
        if relative.text in (SKILL_MD, row.skill.file):
            return read_own_file(row.skill)
        if row.skill.is_flat:
            raise SkillFileNotFound(relative.text)
        scan = self.profile.scan.published
        return with_bundle(row.skill, scan, lambda bundle: bundle.file(relative).read())

    def search(self, text: str, limit: int) -> tuple[Sequence[Offered], int]:
        """The skills that a text finds in names and descriptions, and how many there are."""
        result = self._index().search(text, limit, for_models=True)
        return [self._by_place[hit.skill.location] for hit in result.hits], result.total

    def _own_index(self) -> SearchIndex:
        with self._lock:
            return self._built

    @cached_property
    def _built(self) -> SearchIndex:
        return SearchIndex.build(Catalog(self.profile, (), [row.skill for row in self]))

    @cached_property
    def _by_place(self) -> Mapping[str, Offered]:
        return {row.skill.location: row for row in self}

    @cached_property
    def _by_id(self) -> Mapping[str, Offered]:
        return {row.skill.id: row for row in reversed([*self])}


class Offering(Protocol):
    """Whatever has skills to offer; safe to use from several threads."""

    def offer(self) -> Offer:
        """What there is now; looked up again only if something changed."""


class FolderOffering:
    """The skills of folders, as a profile takes them."""

    def __init__(
        self, roots: Sequence[Root], profile: Profile, index: HeadIndex | None = None
    ) -> None:
        self._roots = tuple(roots)
        self._profile = profile
        self._index = index
        self._last: tuple[Stamps, Offer] | None = None
        self._lock = threading.Lock()

    def offer(self) -> Offer:
        """What there is now; the folders are read again only if something in them changed."""
        with self._lock:
            if self._last is None or not self._last[0].still_hold():
                self._last = self._looked_up()
            return self._last[1]

    def _looked_up(self) -> tuple[Stamps, Offer]:
        follow = {root.path for root in self._roots if root.follow_links}
        stamps = take_stamps([root.path for root in self._roots], self._profile.scan, follow)
        revision = _digest(stamps)
        if self._last is not None and self._last[1].revision == revision:
            return stamps, self._last[1]
        catalog = load_roots(self._roots, self._profile, self._index)
        return stamps, Offer(revision, self._profile, catalog, catalog.findings)


def _names_for(skills: Sequence[Skill]) -> Iterator[str]:
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


def _digest(stamps: Stamps) -> str:
    return hashlib.sha256(repr(sorted(stamps.signatures.items())).encode()).hexdigest()
