"""Groups of copies among skills, and their differences, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_THRESHOLD = 0.6  # copies with a fifth of their words replaced are above it


class DuplicateKind(StrEnum):
    """How the skills of a group resemble each other.

    >>> [kind.value for kind in DuplicateKind]
    ['equal', 'same-text', 'near', 'overlapping']
    """

    EQUAL = "equal"  # all files are equal
    SAME_TEXT = "same-text"  # descriptions and bodies have the same words
    NEAR = "near"  # descriptions and bodies share most of their words
    OVERLAPPING = "overlapping"  # most of one description and body is in the other


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillDifferences:
    """Differences between a skill and the first skill of its group.

    >>> SkillDifferences(fields=("name",), added_lines=2, files=("run.py",)).describe()
    'name differs, 2 lines added, run.py differs'
    """

    fields: tuple[str, ...] = ()  # of the frontmatter
    added_lines: int = 0  # lines of the body that only this skill has
    removed_lines: int = 0  # lines of the body that only the first skill has
    files: tuple[str, ...] = ()  # other files that differ or that only one of them has

    def describe(self) -> str:
        """Return the differences on one line; empty if there are none."""
        parts = [_describe_names(self.fields)] if self.fields else []
        lines = [(self.added_lines, "added"), (self.removed_lines, "removed")]
        parts += [f"{n} {'line' if n == 1 else 'lines'} {change}" for n, change in lines if n]
        parts += [_describe_names(self.files)] if self.files else []
        return ", ".join(parts)


def _describe_names(names: tuple[str, ...]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last} differ" if others else f"{last} differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillCopy:
    """A skill of a group, compared with the first one.

    >>> copy = SkillCopy(name="pdf", location="skills/pdf/SKILL.md", similarity=0.94)
    >>> copy.differences.describe()
    ''
    """

    name: str
    location: str  # of the SKILL.md
    similarity: float  # from 0 to 1
    differences: SkillDifferences = SkillDifferences()


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateGroup:
    """Skills that are copies of each other, in the order of the catalog.

    In a group of overlapping skills, the other skills contain most of the first skill.

    ```python
    from skillhall import Skills

    for group in Skills.load("skills").duplicates().groups:
        print(group.kind, group.similarity, [skill.name for skill in group.skills])
    ```
    """

    kind: DuplicateKind
    similarity: float  # the lowest of its skills
    skills: tuple[SkillCopy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateReport:
    """Groups of copies, the most certain first, and skills that cannot be read.

    >>> report = Skills.load("skills").duplicates()
    >>> report.compared, report.unreadable
    (3, ())
    """

    groups: tuple[DuplicateGroup, ...]
    compared: int  # number of skills
    unreadable: tuple[str, ...] = ()  # locations of skills that could not be read
    common_phrases: int = 0  # in so many skills that they rarely show copies
