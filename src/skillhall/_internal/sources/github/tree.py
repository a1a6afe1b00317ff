"""Trees of commits: GitHub's JSON, the cached form, and object ids. No I/O."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from skillhall._internal.sources.commit_tree import MODE_FOLDER, TreeEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def start_blob_hash(size: int, algorithm: str = "sha1") -> hashlib._Hash:
    """Return a hash whose digest is git's object id once the content has been added."""
    # Git's algorithm. Here, it only verifies that the content is the one in the host's tree.
    return hashlib.new(algorithm, b"blob %d\x00" % size, usedforsecurity=False)


def matches_blob(data: bytes, entry: TreeEntry) -> bool:
    """Whether the content has the entry's size and object id."""
    digest = start_blob_hash(len(data), "sha1" if len(entry.id) == 40 else "sha256")  # noqa: PLR2004 - digits
    digest.update(data)
    return len(data) == entry.size and digest.hexdigest() == entry.id


def parse_tree(data: bytes) -> tuple[Sequence[TreeEntry], bool]:
    """Return the entries in GitHub's JSON, and whether the list is truncated.

    Raises: ValueError.
    """
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(value, dict) or not isinstance(value.get("tree"), list):
        raise ValueError("the JSON is not a git tree")  # noqa: TRY004 - about the data, not a type
    items = value["tree"]
    if not all(isinstance(item, dict) for item in items):
        raise ValueError("an entry is not an object")
    rows = ([item.get(key) for key in ("path", "mode", "sha", "size")] for item in items)
    entries = [_build_entry(*row) for row in rows if row[1] != MODE_FOLDER]
    if len({entry.path for entry in entries}) < len(entries):
        raise ValueError("a path is listed twice")
    return entries, value.get("truncated") is not False


def _build_entry(path: object, mode: object, sha: object, size: object) -> TreeEntry:
    if not (isinstance(path, str) and isinstance(mode, str) and isinstance(sha, str)):
        raise ValueError("an entry has no valid 'path', 'mode' or 'sha'")  # noqa: TRY004 - as above
    if not path or not _ID.fullmatch(sha):
        raise ValueError("an entry is malformed")
    if type(size) is int and size >= 0:
        return TreeEntry(path, mode, sha, size)
    entry = TreeEntry(path, mode, sha)
    if entry.is_file or size is not None:  # submodules have no size
        raise ValueError("an entry has no valid 'size'")
    return entry


def dump_tree(tree: Sequence[TreeEntry]) -> bytes:
    """Serialize entries for the cache."""
    return json.dumps(tree, separators=(",", ":")).encode("ascii")


def load_tree(data: bytes) -> list[TreeEntry]:
    """Parse cached entries. Raises: ValueError."""
    items = json.loads(data)
    if not isinstance(items, list):
        raise ValueError("the JSON is not a list")  # noqa: TRY004 - as above
    return [_build_entry(*item) for item in items]
