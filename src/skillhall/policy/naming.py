"""What a skill is called. The id is the folder's (or flat file's) own; the name is for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall.skill.model import Frontmatter

    NamePolicy: TypeAlias = Callable[[Frontmatter, str], "Label"]


class Label(NamedTuple):
    """How a skill is shown."""

    name: str
    description: str


def from_frontmatter(front: Frontmatter, _folder: str) -> Label:
    """What the frontmatter says, and nothing else."""
    return Label(front.name, front.description)


def frontmatter_else_folder(front: Frontmatter, folder: str) -> Label:
    """The frontmatter's name, or the folder's."""
    return Label(front.name or folder, front.description)


def described_else_folder(front: Frontmatter, folder: str) -> Label:
    """The frontmatter's name; a missing description is replaced by the folder's name."""
    return Label(front.name, front.description if front.description.strip() else folder)
