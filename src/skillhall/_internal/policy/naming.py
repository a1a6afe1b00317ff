"""Name policies: name and description of a skill. Its id is always the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    # From the name and description in the frontmatter and the folder name to those that are used.
    NamePolicy: TypeAlias = Callable[[str, str, str], tuple[str, str]]


def use_frontmatter_only(name: str, description: str, _folder: str) -> tuple[str, str]:
    """Use name and description of the frontmatter, even if empty."""
    return name, description


def fill_name_from_folder(name: str, description: str, folder: str) -> tuple[str, str]:
    """Use the folder name if the frontmatter has no name."""
    return name or folder, description


def fill_description_from_folder(name: str, description: str, folder: str) -> tuple[str, str]:
    """Use the folder name if the frontmatter has no description."""
    return name, description if description.strip() else folder
