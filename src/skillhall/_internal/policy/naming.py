"""What a skill is called. The id is the folder's (or flat file's) own; the name is for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    # The frontmatter's name and description, and the folder's name, to the ones that are shown.
    NamePolicy: TypeAlias = Callable[[str, str, str], tuple[str, str]]


def use_frontmatter_only(name: str, description: str, _folder: str) -> tuple[str, str]:
    """What the frontmatter says, and nothing else."""
    return name, description


def fill_name_from_folder(name: str, description: str, folder: str) -> tuple[str, str]:
    """The frontmatter's name, or the folder's."""
    return name or folder, description


def fill_description_from_folder(name: str, description: str, folder: str) -> tuple[str, str]:
    """The frontmatter's name; a missing description is replaced by the folder's name."""
    return name, description if description.strip() else folder
