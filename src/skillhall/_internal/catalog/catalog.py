"""Catalog: accepted skills in order, rejected and shadowed ones, and findings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.hints import find_close_names
from skillhall._internal.policy.effects import JudgedFinding, judge_rows
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.sources.folder.candidate_codec import decode_frontmatter
from skillhall.errors import SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from skillhall._internal.fs.signatures import PackedSignature
    from skillhall._internal.policy.duplicate_precedence import DuplicateSkill
    from skillhall._internal.policy.effects import Effect, LoadPolicy
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.skill.approved_files import ApprovedFiles
    from skillhall._internal.skill.finding import FindingRow
    from skillhall._internal.skill.parsed import Frontmatter
    from skillhall._internal.sources.folder.candidate_codec import EncodedFields
    from skillhall._internal.sources.folder.root import Root


class CatalogRoot(NamedTuple):
    """A root of a catalog, its place in the order of roots, and the policy of its skills.

    All skills of a root share one object, except those that may need an approval.
    """

    root: Root
    number: int = 0
    load_policy: LoadPolicy = LENIENT.load_policy
    approved: ApprovedFiles | None = None  # with which every read of the skill is compared
    # Of the SKILL.md when its frontmatter was read; `None` if a change may not have changed it.
    signature: PackedSignature | None = None


class CatalogSkill(NamedTuple):
    """An accepted skill: its frontmatter and location, without the body.

    It has as many fields as a `Candidate`, so that it fits into the memory of the candidate that it
    replaces. In a large catalog, this saves a tenth of the memory.
    """

    name: str
    description: str
    hidden: bool  # from models
    folder: str  # relative to the root, "" for the root itself
    file: str
    catalog_root: CatalogRoot
    encoded_frontmatter: Frontmatter | EncodedFields
    reported: tuple[FindingRow, ...] = ()  # findings that the profile does not accept
    is_flat: bool = False
    real_folder: FolderHandle | None = None  # target, if a folder on the path is a link
    real_file: FolderHandle | None = None  # target, if the SKILL.md is a link

    @property
    def root(self) -> Root:
        """The root that contains it."""
        return self.catalog_root.root

    @property
    def root_number(self) -> int:
        """The index of its root; earlier roots come first."""
        return self.catalog_root.number

    @property
    def approved(self) -> ApprovedFiles | None:
        """The approved files; every read must match them. `None` if no approval is needed."""
        return self.catalog_root.approved

    def with_approved(self, approved: ApprovedFiles | None) -> Self:
        """Return the skill with the files that the user approved."""
        return self._replace(catalog_root=self.catalog_root._replace(approved=approved))

    def with_root_number(self, number: int) -> Self:
        """Return the skill with `number` as the index of its root."""
        return self._replace(catalog_root=self.catalog_root._replace(number=number))

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """The findings that the profile does not accept, with their effects.

        They are built on demand: most programs never read them, and a large catalog has tens of
        thousands.
        """
        if not self.reported:
            return ()
        return judge_rows(self.reported, self.catalog_root.load_policy, self.location, self.name)

    @property
    def frontmatter(self) -> Frontmatter:
        """All fields, as written."""
        return decode_frontmatter(self.encoded_frontmatter, self.name, self.description)

    @property
    def id(self) -> str:
        """The folder relative to its root, or the name of a flat file without its suffix."""
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
        path = self.catalog_root.root.path
        return f"{path}{os.sep}{self.folder}" if self.folder else path

    @property
    def source(self) -> str:
        """The label of its root."""
        return self.root.source

    @property
    def folder_handle(self) -> FolderHandle:
        """The folder to read files from, with links resolved."""
        return self.real_folder or self.root.location.descendant(self.folder)


class RejectedCandidate(NamedTuple):
    """A candidate that the profile rejects."""

    id: str
    name: str
    location: str
    findings: tuple[JudgedFinding, ...]


class Explanation(NamedTuple):
    """All candidates with one name or id, and which of them won."""

    name: str
    profile: str
    winners: tuple[CatalogSkill, ...]
    shadowed: tuple[DuplicateSkill[CatalogSkill], ...]
    rejected: tuple[RejectedCandidate, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is no candidate with this name."""
        return not (self.winners or self.shadowed or self.rejected)

    def describe(self) -> Iterator[str]:
        """Yield the explanation, line by line."""
        for skill in self.winners:
            yield f"used: {skill.location} ({skill.source})"
            others = [other for other in self.shadowed if other.winner == skill]
            reason = others[0].rule if others else "it is the only accepted copy"
            if len(self.winners) > 1:
                reason = "all copies with this name are used"
            yield f"  because {reason} (profile {self.profile!r})"
            for judged in skill.findings:
                yield f"  {judged.effect}[{judged.finding.code}]: {judged.finding.message}"
        for shadowed in self.shadowed:
            yield f"shadowed: {shadowed.skill.location} ({shadowed.skill.source})"
            yield f"  because {shadowed.rule}: {shadowed.winner.location}"
        for rejected in self.rejected:
            yield f"rejected: {rejected.location}"
            for finding, effect in rejected.findings:
                line = f"line {finding.line}: " if finding.line else ""
                yield f"  {effect}[{finding.code}]: {line}{finding.message}"
        if not self.winners:
            yield f"no copy of {self.name!r} is used"


class Catalog:
    """Ordered, immutable snapshot of the skills that a profile accepts."""

    __slots__ = ("duplicates", "profile", "rejected", "root_findings", "roots", "skills")

    def __init__(  # noqa: PLR0913, PLR0917 - a snapshot of six things
        self,
        profile: Profile,
        roots: Iterable[Root],
        skills: Iterable[CatalogSkill] = (),
        rejected: Iterable[RejectedCandidate] = (),
        duplicates: Iterable[DuplicateSkill[CatalogSkill]] = (),
        root_findings: Iterable[JudgedFinding] = (),
    ) -> None:
        self.profile: Final = profile
        self.roots: Final = tuple(roots)
        self.skills: Final = tuple(skills)
        self.rejected: Final = tuple(rejected)
        self.duplicates: Final = tuple(duplicates)
        self.root_findings: Final = tuple(root_findings)  # of the scan of the roots

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalog) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.profile.name, tuple(skill.location for skill in self.skills)))

    def __iter__(self) -> Iterator[CatalogSkill]:
        return iter(self.skills)

    def __len__(self) -> int:
        return len(self.skills)

    @property
    def visible(self) -> tuple[CatalogSkill, ...]:
        """The skills that are not hidden from models."""
        return tuple(skill for skill in self.skills if is_visible_to_models(skill))

    @property
    def shadowed(self) -> tuple[DuplicateSkill[CatalogSkill], ...]:
        """The skills that are not used because of a duplicate."""
        return tuple(duplicate for duplicate in self.duplicates if duplicate.is_shadowed)

    @property
    def scan_findings(self) -> tuple[JudgedFinding, ...]:
        """The findings of the scan, then those about duplicates."""
        return tuple(self._iter_scan_findings())

    def _iter_scan_findings(self) -> Iterator[JudgedFinding]:
        yield from self.root_findings
        build_finding = self.profile.precedence_policy.build_finding
        get_effect = self.profile.load_policy.get_effect
        # One at a time: those of a large collection take 10 MB.
        for finding in map(build_finding, self.duplicates):
            yield JudgedFinding(finding, get_effect(finding.code))

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """All findings of the scan, then those of rejected, accepted and shadowed skills.

        A skill's findings that the profile accepts are left out.
        """
        return (
            *self._iter_scan_findings(),
            *(judged for rejected in self.rejected for judged in rejected.findings),
            *(judged for skill in self.iter_listed() for judged in skill.findings),
        )

    def iter_finding_rows(self) -> Iterator[tuple[FindingRow, Effect]]:
        """Yield `findings` as rows, without building an object for each skill's finding."""
        yield from self._iter_scan_findings()
        for rejected in self.rejected:
            yield from rejected.findings
        effects, default = self.profile.load_policy.effects, self.profile.load_policy.default_effect
        for skill in self.iter_listed():
            if rows := skill.reported:
                name, _, _, folder, file, (root, *_), *_ = skill
                start = f"{root.path}{os.sep}{folder}" if folder else root.path
                location = f"{start}{os.sep}{file}"
                for code, message, line, hint, _, _ in rows:
                    row = (code, message, line, hint, location, name)
                    yield row, effects.get(code, default)

    def iter_listed(self) -> Iterator[CatalogSkill]:
        """Yield the accepted skills, then the shadowed ones."""
        yield from self.skills
        for skill, _, rule in self.duplicates:
            if rule:
                yield skill

    def find(self, name: str) -> CatalogSkill:
        """Return the skill with this name, else with this id. Raises: SkillNotFound."""
        match = next((skill for skill in self.skills if skill.name == name), None)
        match = match or next((skill for skill in self.skills if skill.id == name), None)
        if match is None:
            raise SkillNotFound(name, find_close_names(name, [s.name for s in self.skills]))
        return match

    def explain(self, name: str) -> Explanation:
        """Return all candidates with this name or id: accepted, shadowed and rejected."""
        return Explanation(
            name,
            self.profile.name,
            tuple(skill for skill in self.skills if name in (skill.name, skill.id)),
            tuple(s for s in self.shadowed if name in (s.skill.name, s.skill.id)),
            tuple(r for r in self.rejected if name in (r.name, r.id)),
        )
