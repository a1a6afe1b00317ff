"""The files of a folder at a revision of the local repository that contains it."""

from __future__ import annotations

import os
from pathlib import Path

from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.sources.commit_tree import CommitSkill
from skillhall._internal.sources.git.object_reader import CorruptRepository, ObjectReader
from skillhall.errors import SourceNotFound

_GIT = ".git"
_LINK_PREFIX = "gitdir: "  # of the file `.git` in a work tree
_MAX_LINK_BYTES = 4096


def read_local_revision(folder: str, revision: str) -> Bundle:
    """Return the files of a folder at a revision, such as `HEAD~1` or a tag.

    Raises: SourceNotFound if there is no repository, revision or folder; SourceUnavailable without
    git, SourceTimedOut, TooLarge.
    """
    real = Path(os.path.realpath(folder))
    top = next((path for path in (real, *real.parents) if (path / _GIT).exists()), None)
    if top is None:
        raise SourceNotFound(revision, f"the folder {folder!r} is not in a git repository")
    store = ObjectReader(str(_find_git_directory(top)))
    path = real.relative_to(top).as_posix()
    try:
        tree = _resolve(store, revision, "" if path == "." else path)
        skill = CommitSkill("")
        for entry in store.list_tree(tree):
            skill.add(entry)
        sizes = store.read_sizes({entry.id for entry in skill.entries.values()})
        skill.apply_size_limits(sizes)
        ids = {entry.id for entry in skill.entries.values()}
        return skill.build_bundle(store.read_contents({one: sizes[one] for one in ids}))
    except (CorruptRepository, KeyError):
        raise SourceNotFound(revision, "the repository is damaged or incomplete") from None


def _find_git_directory(top: Path) -> Path:
    """Return the git directory; that of a work tree is named by a file."""
    entry = top / _GIT
    if entry.is_dir():
        return entry
    with entry.open("rb") as file:
        text = file.read(_MAX_LINK_BYTES).decode("utf-8", "replace").strip()
    return top / text.removeprefix(_LINK_PREFIX)


def _resolve(store: ObjectReader, revision: str, path: str) -> str:
    """Return the id of the folder's tree. Raises: SourceNotFound, CorruptRepository."""
    # `--end-of-options`: a revision that starts with a hyphen is not an option.
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    commit = store.run_local(*arguments, f"{revision}^{{commit}}")
    if commit.exit_code:
        raise SourceNotFound(revision, "the repository has no such revision")
    name = commit.stdout.decode("ascii").strip()
    tree = store.run_local(*arguments, f"{name}:{path}")
    if tree.exit_code:
        raise SourceNotFound(revision, f"the revision has no folder {path!r}")
    return tree.stdout.decode("ascii").strip()
