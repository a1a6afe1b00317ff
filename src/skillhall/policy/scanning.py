"""Where to look: how deep, past what, through which links, and when to stop."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

# Never part of a skill, whatever the profile.
LITTER = frozenset({".git", ".hg", ".svn", "__MACOSX", ".DS_Store"})
CLUTTER = frozenset({"node_modules", "__pycache__", ".venv", "venv"})


# Kubernetes mounts a ConfigMap as a dated folder, a link to it, and links into that link.
VOLUME = "..data"
_VOLUME_ENTRY = re.compile(r"\.\.(?:data(?:_tmp)?|[0-9]{4}(?:_[0-9]{2}){5}\.[0-9]+)")


def is_volume_entry(name: str) -> bool:
    """Whether Kubernetes made the entry: `..data`, or the dated folder that it leads to."""
    return name.startswith("..") and _VOLUME_ENTRY.fullmatch(name) is not None


class Links(Enum):
    """What a scan does with a symbolic link."""

    NOT_FOLLOWED = "not followed"
    INSIDE = "followed inside the roots"


class ScanPolicy(NamedTuple):
    """The bounds of a scan below one root."""

    depth: int = 1  # how many folders below the root a skill's folder may stand
    root_itself: bool = False  # a SKILL.md in the root makes the root a skill
    inside_skills: bool = False  # skills inside a skill's folder count too
    flat_files: bool = False  # `name.md` beside the folders counts too
    skip_hidden: bool = True
    skip_names: frozenset[str] = frozenset()
    hidden_in_bundles: bool = False
    links: Links = Links.NOT_FOLLOWED
    # The client guide advises 2,000; public collections nest their skills in more. Only folders
    # that hold no skill of their own are counted.
    max_folders: int = 50_000

    @property
    def every_folder_is_a_candidate(self) -> bool:
        """Whether a folder without SKILL.md is itself a finding (no place to look deeper)."""
        return self.depth == 1

    @property
    def published(self) -> ScanPolicy:
        """The same policy for files that are sent to others: hidden ones are left out."""
        return self._replace(hidden_in_bundles=False)

    def reason_to_skip(self, name: str) -> str | None:
        """Why an entry of that name is passed over, or `None`.

        Every name in `LITTER` starts with a dot or an underscore; a scan relies on that.
        """
        if name in LITTER or name.startswith("._"):
            return "never part of a skill"
        if name in self.skip_names:
            return "ignored by name"
        if self.skip_hidden and name.startswith("."):
            return "hidden"
        return None
