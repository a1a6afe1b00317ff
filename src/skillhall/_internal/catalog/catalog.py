"""The catalog: accepted skills in order, and everything there is to say about the others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.sources.folder.candidate_codec import decode_frontmatter
from skillhall.errors import SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.precedence import ShadowedSkill
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.skill.parsed import Frontmatter
    from skillhall._internal.sources.folder.candidate_codec import EncodedFields
    from skillhall._internal.sources.folder.root import Root


class Skill(NamedTuple):
    """An accepted skill: what its frontmatter says and where it stands; no body."""

    name: str
    description: str
    hidden: bool  # whether no model may be shown it
    folder: str  # relative to the root, "" for the root itself
    file: str
    root: Root
    root_number: int
    encoded_frontmatter: Frontmatter | EncodedFields
    findings: tuple[JudgedFinding, ...] = ()
    is_flat: bool = False
    real_folder: FolderHandle | None = None  # the folder that a link led to
    real_file: FolderHandle | None = None  # the file that SKILL.md is a link to

    @property
    def frontmatter(self) -> Frontmatter:
        """Every field, as written."""
        return decode_frontmatter(self.encoded_frontmatter, self.name, self.description)

    @property
    def id(self) -> str:
        """The folder's path below its root, or a flat file's name without its ending."""
        if self.is_flat:
            return self.file.rpartition(".")[0]
        return self.folder or os.path.basename(self.root.path)

    @property
    def location(self) -> str:
        """The absolute path of the SKILL.md."""
        return f"{self.directory}{os.sep}{self.file}"

    @property
    def directory(self) -> str:
        """The absolute path of the skill's folder."""
        return f"{self.root.path}{os.sep}{self.folder}" if self.folder else self.root.path

    @property
    def source(self) -> str:
        """The label of the root it came from."""
        return self.root.source

    @property
    def folder_handle(self) -> FolderHandle:
        """Where its files are read from: through a link, that is where the link led."""
        return self.real_folder or self.root.location.descendant(self.folder)


class RejectedCandidate(NamedTuple):
    """A candidate that the profile does not load."""

    id: str
    name: str
    location: str
    findings: tuple[JudgedFinding, ...]


class Explanation(NamedTuple):
    """Why a name means the skill it means."""

    name: str
    profile: str
    winners: tuple[Skill, ...]
    shadowed: tuple[ShadowedSkill[Skill], ...]
    rejected: tuple[RejectedCandidate, ...]


class Catalog:
    """The ordered, immutable snapshot of the skills that a profile accepts."""

    __slots__ = ("profile", "rejected", "roots", "scan_findings", "shadowed", "skills")

    def __init__(  # noqa: PLR0913, PLR0917 - a snapshot of six things
        self,
        profile: Profile,
        roots: Iterable[Root],
        skills: Iterable[Skill] = (),
        rejected: Iterable[RejectedCandidate] = (),
        shadowed: Iterable[ShadowedSkill[Skill]] = (),
        scan_findings: Iterable[JudgedFinding] = (),
    ) -> None:
        self.profile: Final = profile
        self.roots: Final = tuple(roots)
        self.skills: Final = tuple(skills)
        self.rejected: Final = tuple(rejected)
        self.shadowed: Final = tuple(shadowed)
        self.scan_findings: Final = tuple(scan_findings)  # about the walk and about equal names

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same."""
        return isinstance(other, Catalog) and self._parts() == other._parts()

    def __hash__(self) -> int:
        """Equal catalogs have equal locations."""
        return hash((self.profile.name, tuple(skill.location for skill in self.skills)))

    def _parts(self) -> tuple[object, ...]:
        return (
            self.profile,
            self.roots,
            self.skills,
            self.rejected,
            self.shadowed,
            self.scan_findings,
        )

    def __iter__(self) -> Iterator[Skill]:
        """The skills, in order."""
        return iter(self.skills)

    def __len__(self) -> int:
        """How many skills there are."""
        return len(self.skills)

    @property
    def visible(self) -> tuple[Skill, ...]:
        """The skills that a model may be shown."""
        return tuple(skill for skill in self.skills if is_visible_to_models(skill))

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """All notes about the walk, then what is not plainly accepted, skill by skill."""
        return (
            *self.scan_findings,
            *(judged for rejected in self.rejected for judged in rejected.findings),
            *(judged for skill in self.skills for judged in skill.findings),
            *(judged for lost in self.shadowed for judged in lost.skill.findings),
        )

    def find(self, name: str) -> Skill:
        """The skill of that name, or of that id. Raises: SkillNotFound."""
        found = next((skill for skill in self.skills if skill.name == name), None)
        found = found or next((skill for skill in self.skills if skill.id == name), None)
        if found is None:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a wrong name

            raise SkillNotFound(name, get_close_matches(name, [s.name for s in self.skills]))
        return found

    def explain(self, name: str) -> Explanation:
        """Which copies of `name` exist, which one won, and what became of the others."""
        return Explanation(
            name,
            self.profile.name,
            tuple(skill for skill in self.skills if name in (skill.name, skill.id)),
            tuple(lost for lost in self.shadowed if name in (lost.skill.name, lost.skill.id)),
            tuple(lost for lost in self.rejected if name in (lost.name, lost.id)),
        )
