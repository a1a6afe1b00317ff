"""A commit's tree as GitHub tells it and as we keep it, and the ids of its files. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.sources.commit_tree import MODE_FOLDER, TreeEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class GitHubTree(NamedTuple):
    """The entries of a commit; not all of them if it is `truncated`."""

    entries: Sequence[TreeEntry]
    is_truncated: bool = False


def start_blob_hash(size: int, algorithm: str = "sha1") -> hashlib._Hash:
    """The hash that becomes git's id of a blob when its bytes are added."""
    # The algorithm is git's. What it proves is that the bytes are those which the host listed.
    return hashlib.new(algorithm, b"blob %d\x00" % size, usedforsecurity=False)


def matches_blob(data: bytes, entry: TreeEntry) -> bool:
    """Whether these are the bytes that the entry names."""
    hashed = start_blob_hash(len(data), "sha1" if len(entry.id) == 40 else "sha256")  # noqa: PLR2004 - digits
    hashed.update(data)
    return len(data) == entry.size and hashed.hexdigest() == entry.id


def parse_tree(data: bytes) -> GitHubTree:
    """The tree in an answer of GitHub. Raises: ValueError."""
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("its lists nest too deep") from None
    if not isinstance(found, dict) or not isinstance(found.get("tree"), list):
        raise ValueError("it is no tree")  # noqa: TRY004 - the text is at fault, not a caller
    entries = [_parse_entry(item) for item in found["tree"] if _read_mode(item) != MODE_FOLDER]
    if len({entry.path for entry in entries}) < len(entries):
        raise ValueError("a path is there twice")
    return GitHubTree(entries, found.get("truncated") is not False)


def _read_mode(item: object) -> object:
    return item.get("mode") if isinstance(item, dict) else None


def _parse_entry(item: object) -> TreeEntry:
    if not isinstance(item, dict):
        raise ValueError("an entry is no object")  # noqa: TRY004 - as above
    return _build_entry(item.get("path"), item.get("mode"), item.get("sha"), item.get("size"))


def _build_entry(path: object, mode: object, sha: object, size: object) -> TreeEntry:
    if not (isinstance(path, str) and isinstance(mode, str) and isinstance(sha, str)):
        raise ValueError("an entry lacks a field")  # noqa: TRY004 - as above
    if not path or not _ID.fullmatch(sha):
        raise ValueError("an entry is damaged")
    if type(size) is int and size >= 0:
        return TreeEntry(path, mode, sha, size)
    entry = TreeEntry(path, mode, sha)
    if entry.is_file or size is not None:  # submodules have none
        raise ValueError("an entry has no size")
    return entry


def dump_tree(tree: Sequence[TreeEntry]) -> bytes:
    """The entries as they are kept."""
    return json.dumps(tree, separators=(",", ":")).encode("ascii")


def load_tree(data: bytes) -> list[TreeEntry]:
    """The entries that `dump_tree` wrote. Raises: ValueError."""
    found = json.loads(data)
    if not isinstance(found, list):
        raise ValueError("it is no list")  # noqa: TRY004 - the text is at fault, not a caller
    return [_build_entry(*item) for item in found]
