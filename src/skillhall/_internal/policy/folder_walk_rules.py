"""Scan policy: depth, skipped names, links and limits.

Every command imports this module: annotations are evaluated and patterns are compiled when they are
needed, as in `frontmatter_locator`.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple, Self

# Never part of a skill, under any profile.
ALWAYS_SKIPPED = frozenset({".git", ".hg", ".svn", "__MACOSX", ".DS_Store"})
GENERATED_FOLDERS = frozenset({"node_modules", "__pycache__", ".venv", "venv"})

SKILLS_FOLDER = "skills"  # the usual name of a folder of skills
MAX_DEPTH = 64  # limited, because a walk needs a few stack frames for each level
STAGING_PREFIX = ".skillhall-"  # prefix of folders that Skillhall is still writing
# Folders of tools and of archived skills. They are never groups of skills, not even in a folder
# named `skills`.
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
_VOLUME_ENTRY = r"\.\.(?:data(?:_tmp)?|[0-9]{4}(?:_[0-9]{2}){5}\.[0-9]+)"


# Outputs of agents during evals of the skill `pdf`: `pdf-workspace/iteration-1/…/outputs`.
WORKSPACE_SUFFIX = "-workspace"
_EVAL_RESULTS = f"{WORKSPACE_SUFFIX}/iteration-"
_EVAL_RESULT = r"[^/]-workspace/iteration-[0-9]+(?:/|\Z)"


def is_eval_result(folder: str) -> bool:
    """Whether a folder below a root contains results of evals, which are never skills."""
    return _EVAL_RESULTS in folder and re.search(_EVAL_RESULT, folder) is not None


def is_volume_entry(name: str) -> bool:
    """Whether Kubernetes created the entry: `..data`, or the dated folder it links to."""
    return name.startswith("..") and re.fullmatch(_VOLUME_ENTRY, name) is not None


class LinkPolicy(Enum):
    """Treatment of symbolic links in a scan."""

    DO_NOT_FOLLOW = "not followed"
    FOLLOW_INSIDE = "followed inside the roots"


class EmptyFolderPolicy(Enum):
    """Treatment of folders below the root that have no SKILL.md."""

    REJECT = "a skill without a SKILL.md"  # every folder below the root should be a skill
    REJECT_AMONG_SKILLS = "rejected where its neighbors are skills"
    SEARCH = "searched for skills"


class ScanPolicy(NamedTuple):
    """The rules for scanning one root."""

    max_depth: int = 1  # of a skill's folder below the root
    include_root: bool = False  # a SKILL.md in the root makes the root a skill
    search_inside_skills: bool = False  # also find skills inside the folder of a skill
    include_flat_files: bool = False  # also find `name.md` next to the folders
    skip_hidden: bool = True
    # In repositories, `skills/.curated` is searched too, and the folders of agents (such as
    # `.claude/skills`) if there are no other skills.
    search_as_repository: bool = False
    empty_folders: EmptyFolderPolicy = EmptyFolderPolicy.REJECT
    skip_names: frozenset[str] = frozenset()
    include_hidden_files: bool = False
    link_policy: LinkPolicy = LinkPolicy.DO_NOT_FOLLOW
    # The client guide recommends 2,000, but public collections have more. Only folders without a
    # skill are counted.
    max_folders: int = 50_000

    def with_depth(self, depth: int) -> Self:
        """Return a copy with this depth.

        Beyond depth 1, a folder without a SKILL.md may contain skills, so it is rejected only if
        its sibling folders are skills.
        """
        if self.empty_folders is EmptyFolderPolicy.REJECT and depth > 1:
            return self._replace(
                max_depth=depth, empty_folders=EmptyFolderPolicy.REJECT_AMONG_SKILLS
            )
        return self._replace(max_depth=depth)

    @property
    def with_hidden_files(self) -> Self:
        """A copy that includes hidden files, which digests cover."""
        return self._replace(include_hidden_files=True)

    @property
    def without_hidden_files(self) -> Self:
        """A copy that skips hidden files, for files to be published."""
        return self._replace(include_hidden_files=False)

    def reason_to_skip(self, name: str, parent: str = "") -> str | None:
        """Return why an entry is skipped, or `None`; `parent` is the name of its folder."""
        # The walker relies on every name in `ALWAYS_SKIPPED` starting with a dot or underscore.
        if name in ALWAYS_SKIPPED or name.startswith("._"):
            return "never part of a skill"
        if name in self.skip_names:
            return "ignored by name"
        if self.skip_hidden and name.startswith(".") and not self.is_hidden_group(name, parent):
            return "hidden"
        return None

    def is_hidden_group(self, name: str, parent: str) -> bool:
        """Whether a hidden folder is a group of published skills, like `skills/.curated`.

        Such a folder is never a skill itself.
        """
        if not (self.search_as_repository and parent == SKILLS_FOLDER and name.startswith(".")):
            return False
        # Names with two dots belong to Kubernetes.
        return not name.startswith((STAGING_PREFIX, "..")) and name.lower() not in _NEVER_GROUPS

    def reaches(self, parts: Sequence[str], start: int = 0) -> bool:
        """Whether a scan of the folder `parts[:start]` reaches the folder `parts`."""
        steps = list(pairwise(("", *parts)))[start:]
        if any(self.reason_to_skip(name, parent) for parent, name in steps):
            return False
        # `skills/.claude` looks like a group, but `.claude/skills` in it is an install folder.
        if any(p.startswith(".") and name in INSTALL_FOLDER_NAMES for p, name in steps[1:]):
            return False
        return len(parts) == start or not parts[-1].startswith(".")

    def filter_folders(self, folders: Iterable[str], base: str = "") -> list[str]:
        """Return the skill folders that a scan of `base` would find, sorted.

        Skills that are installed for agents are included only if there are no others.
        """
        start = len(base.split("/")) if base else 0
        split = {folder: folder.split("/") if folder else [] for folder in sorted(folders)}
        reached = [folder for folder, parts in split.items() if self.reaches(parts, start)]
        if reached or not self.search_as_repository:
            return reached
        return [
            folder
            for folder, parts in split.items()
            if (skip := installed_prefix_length(parts[start:]))
            and self.reaches(parts, start + skip)
        ]


def installed_prefix_length(parts: Sequence[str]) -> int:
    """Return how many leading segments name a folder of installed skills, or 0."""
    first, second = (*parts, "", "")[:2]
    if not first.startswith(".") or first in ALWAYS_SKIPPED | GENERATED_FOLDERS | {".cache"}:
        return 0
    if first.lstrip(".") in INSTALL_FOLDER_NAMES:
        return 1
    return 2 if second in INSTALL_FOLDER_NAMES else 0
