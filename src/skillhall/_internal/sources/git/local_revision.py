"""The files of a local repository: those at a revision, and those changed since one."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from skillhall._internal.skill.bundle import Bundle, parent_folders
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall._internal.sources.commit_tree import CommitSkill, TreeEntry
from skillhall._internal.sources.git.object_reader import CorruptRepository, ObjectReader
from skillhall.errors import SourceNotFound

_GIT = ".git"
_LINK_PREFIX = "gitdir: "  # of the file `.git` in a work tree
_MAX_LINK_BYTES = 4096
_MAX_COMPARED_BYTES = 64 * 1024 * 1024  # larger files count as changed
_SHA1_LENGTH = 40  # hexadecimal digits; repositories with SHA-256 have 64
# `--end-of-options`: a revision that starts with a hyphen is not an option.
_REV_PARSE = ("rev-parse", "--verify", "--quiet", "--end-of-options")


def read_local_revision(folder: str, revision: str) -> Bundle:
    """Return the files of a folder at a revision, such as `HEAD~1` or a tag.

    Raises: SourceNotFound if there is no repository, revision or folder; SourceUnavailable without
    git, SourceTimedOut, TooLarge.
    """
    real = Path(os.path.realpath(folder))
    top = _find_work_tree(real, revision)
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


def list_changed_files(folder: str, base: str) -> list[str]:
    """Return the absolute paths of files in skills below a folder that differ from a revision.

    As in a pull request, changes of the revision since the branches parted do not count. Files that
    are not committed or not tracked count; ignored files do not. Git does not read the files, since
    a repository can configure programs that convert them; converted files always differ.
    Raises: SourceNotFound if there is no repository or revision; SourceUnavailable without git,
    SourceTimedOut, TooLarge.
    """
    real = Path(os.path.realpath(folder))
    top = _find_work_tree(real, base)
    store = ObjectReader(str(_find_git_directory(top)))
    commit = _resolve_commit(store, base)
    # A shallow clone may not have the commit where the branches parted.
    parted = store.run_local("merge-base", commit, "HEAD").stdout.decode("ascii").strip()
    inside = real.relative_to(top).as_posix()
    options = ("--cached", "--others", "--exclude-standard", "-z", "--", f":(literal){inside}")
    listed = store.run_local("-C", str(top), f"--work-tree={top}", "ls-files", *options)
    if listed.exit_code:
        raise SourceNotFound(base, "the repository is damaged or incomplete")
    present = {os.fsdecode(name) for name in listed.stdout.split(b"\0")} - {""}
    prefix = "" if inside == "." else f"{inside}/"
    try:
        tree = store.list_tree(parted or commit)
    except CorruptRepository:
        raise SourceNotFound(base, "the repository is damaged or incomplete") from None
    before = {entry.path: entry for entry in tree if entry.path.startswith(prefix)}
    names = present | before.keys()
    skills = {os.path.dirname(name) for name in names if is_skill_md(os.path.basename(name))}
    return sorted(
        str(top / name)
        for name in names
        if any(folder in skills for folder in ("", *parent_folders(name)))
        and (name not in before or _is_different(top / name, before[name]))
    )


def _is_different(path: Path, entry: TreeEntry) -> bool:
    """Whether a file differs from its entry in a tree, without reading special files."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_COMPARED_BYTES:
            return True
        data = path.read_bytes()
    except OSError:
        return True
    content = b"blob %d\0%s" % (len(data), data)
    is_sha1 = len(entry.id) == _SHA1_LENGTH
    digest = hashlib.sha1(content, usedforsecurity=False) if is_sha1 else hashlib.sha256(content)
    return digest.hexdigest() != entry.id


def _find_work_tree(folder: Path, revision: str) -> Path:
    top = next((path for path in (folder, *folder.parents) if (path / _GIT).exists()), None)
    if top is None:
        raise SourceNotFound(revision, f"the folder {str(folder)!r} is not in a git repository")
    return top


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
    tree = store.run_local(*_REV_PARSE, f"{_resolve_commit(store, revision)}:{path}")
    if tree.exit_code:
        raise SourceNotFound(revision, f"the revision has no folder {path!r}")
    return tree.stdout.decode("ascii").strip()


def _resolve_commit(store: ObjectReader, revision: str) -> str:
    """Return the id of a commit. Raises: SourceNotFound."""
    commit = store.run_local(*_REV_PARSE, f"{revision}^{{commit}}")
    if commit.exit_code:
        raise SourceNotFound(revision, "the repository has no such revision")
    return commit.stdout.decode("ascii").strip()
