"""Where to look: how deep, past what, through which links, and when to stop."""

from __future__ import annotations

import re
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Never part of a skill, whatever the profile.
ALWAYS_SKIPPED = frozenset({".git", ".hg", ".svn", "__MACOSX", ".DS_Store"})
GENERATED_FOLDERS = frozenset({"node_modules", "__pycache__", ".venv", "venv"})

SKILLS_FOLDER = "skills"  # the usual name of a folder of skills
MAX_DEPTH = 64  # the deepest search; a walk needs a few stack frames for each level
STAGING_PREFIX = ".skillhall-"  # how the names of our own unfinished folders begin
# Folders of tools, and folders for skills that were put aside. They are never groups of skills, not
# even inside a folder called `skills`.
_NEVER_GROUPS = frozenset(
    {
        ".archive",
        ".archived",
        ".backup",
        ".cache",
        ".circleci",
        ".devcontainer",
        ".direnv",
        ".disabled",
        ".github",
        ".gitlab",
        ".husky",
        ".idea",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".npm",
        ".nox",
        ".old",
        ".pytest_cache",
        ".ruff_cache",
        ".temp",
        ".terraform",
        ".tmp",
        ".tox",
        ".trash",
        ".vscode",
        ".yarn",
    }
)
# `.claude/skills`, `.agents/skills`, `.opencode/skill`: where agents install skills.
INSTALL_FOLDER_NAMES = (SKILLS_FOLDER, "skill")


# Kubernetes mounts a ConfigMap as a dated folder, a link to it, and links into that link.
VOLUME_LINK = "..data"
_VOLUME_ENTRY = re.compile(r"\.\.(?:data(?:_tmp)?|[0-9]{4}(?:_[0-9]{2}){5}\.[0-9]+)")


def is_volume_entry(name: str) -> bool:
    """Whether Kubernetes made the entry: `..data`, or the dated folder that it leads to."""
    return name.startswith("..") and _VOLUME_ENTRY.fullmatch(name) is not None


class LinkPolicy(Enum):
    """What a scan does with a symbolic link."""

    DO_NOT_FOLLOW = "not followed"
    FOLLOW_INSIDE = "followed inside the roots"


class EmptyFolderPolicy(Enum):
    """What a scan makes of a folder below the root that holds no skill."""

    REJECT = "a skill without a SKILL.md"  # every folder below the root should be a skill
    REJECT_AMONG_SKILLS = "rejected where its neighbors are skills"
    SEARCH = "only a place to look into"


class ScanPolicy(NamedTuple):
    """The bounds of a scan below one root."""

    max_depth: int = 1  # how many folders below the root a skill's folder may stand
    include_root: bool = False  # a SKILL.md in the root makes the root a skill
    search_inside_skills: bool = False  # skills inside a skill's folder count too
    include_flat_files: bool = False  # `name.md` beside the folders counts too
    skip_hidden: bool = True
    # Collections are searched as whole repositories: `skills/.curated` counts, and the folders of
    # agents (`.claude/skills`) do if there is nothing else.
    search_as_repository: bool = False
    empty_folders: EmptyFolderPolicy = EmptyFolderPolicy.REJECT
    skip_names: frozenset[str] = frozenset()
    include_hidden_files: bool = False
    link_policy: LinkPolicy = LinkPolicy.DO_NOT_FOLLOW
    # The client guide advises 2,000; public collections nest their skills in more. Only folders
    # that hold no skill of their own are counted.
    max_folders: int = 50_000

    def with_depth(self, depth: int) -> ScanPolicy:
        """The same policy for another depth; a folder may then be a place to look into."""
        if self.empty_folders is EmptyFolderPolicy.REJECT and depth > 1:
            return self._replace(
                max_depth=depth, empty_folders=EmptyFolderPolicy.REJECT_AMONG_SKILLS
            )
        return self._replace(max_depth=depth)

    @property
    def without_hidden_files(self) -> ScanPolicy:
        """The same policy for files that are sent to others: hidden ones are left out."""
        return self._replace(include_hidden_files=False)

    def reason_to_skip(self, name: str, parent: str = "") -> str | None:
        """Why an entry of that name is passed over, or `None`; `parent` names its folder.

        Every name in `LITTER` starts with a dot or an underscore; a scan relies on that.
        """
        if name in ALWAYS_SKIPPED or name.startswith("._"):
            return "never part of a skill"
        if name in self.skip_names:
            return "ignored by name"
        if self.skip_hidden and name.startswith(".") and not self.is_hidden_group(name, parent):
            return "hidden"
        return None

    def is_hidden_group(self, name: str, parent: str) -> bool:
        """Whether a hidden folder holds published skills, as `skills/.curated` does.

        It is never a skill itself.
        """
        is_candidate = (
            self.search_as_repository and parent == SKILLS_FOLDER and name.startswith(".")
        )
        if not is_candidate or name.startswith(
            (STAGING_PREFIX, "..")
        ):  # `..data` is a link of Kubernetes
            return False
        return name.lower() not in _NEVER_GROUPS

    def reaches(self, parts: Sequence[str], start: int = 0) -> bool:
        """Whether a scan from the folder at `parts[:start]` reaches the folder at `parts`."""
        steps = list(pairwise(("", *parts)))[start:]
        if any(self.reason_to_skip(name, parent) for parent, name in steps):
            return False
        if any(
            parent.startswith(".") and name in INSTALL_FOLDER_NAMES for parent, name in steps[1:]
        ):
            return False  # inside a folder called `skills`, `.claude/skills` is no group
        return len(parts) == start or not parts[-1].startswith(".")

    def filter_folders(self, folders: Iterable[str], base: str = "") -> list[str]:
        """The folders of skills that a scan from `base` finds, in order.

        Copies that agents have installed count only if there is nothing else.
        """
        start = len(base.split("/")) if base else 0
        split = {folder: folder.split("/") if folder else [] for folder in sorted(folders)}
        found = [folder for folder, parts in split.items() if self.reaches(parts, start)]
        if found or not self.search_as_repository:
            return found
        return [
            folder
            for folder, parts in split.items()
            if (skip := installed_prefix_length(parts[start:]))
            and self.reaches(parts, start + skip)
        ]


def installed_prefix_length(parts: Sequence[str]) -> int:
    """How many names at the start of a path lead to a folder of installed skills; 0 if none do."""
    first, second = (*parts, "", "")[:2]
    if not first.startswith(".") or first in ALWAYS_SKIPPED | GENERATED_FOLDERS | {".cache"}:
        return 0
    if first.lstrip(".") in INSTALL_FOLDER_NAMES:
        return 1
    return 2 if second in INSTALL_FOLDER_NAMES else 0
