"""Content hashes of skill folders, as `npx skills` writes them to lock files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_IGNORED_FOLDERS = frozenset({".git", "node_modules"})
# ASCII in the order of JavaScript's `localeCompare`, equal in most locales: spaces and punctuation,
# digits, letters. Case only breaks ties.
_COLLATION_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_COLLATION_RANK: Final[Mapping[str, int]] = {
    character: rank for rank, character in enumerate(_COLLATION_ORDER)
}


class HashedFile(NamedTuple):
    """Content and executable bit of a file."""

    data: bytes
    executable: bool = False


def compute_npx_hash(files: Mapping[str, bytes]) -> str:
    """Compute the SHA-256 over all paths and contents, sorted like in JavaScript.

    The order depends on the locale unless `has_portable_order`.
    """
    digest = hashlib.sha256()
    for path in sorted(filter(_is_hashed, files), key=_collation_key):
        digest.update(path.encode())
        digest.update(files[path])
    return digest.hexdigest()


def has_portable_order(files: Mapping[str, bytes]) -> bool:
    """Whether `compute_npx_hash` is the same in all locales."""
    return all(path.isascii() for path in files)


def _is_hashed(path: str) -> bool:
    return _IGNORED_FOLDERS.isdisjoint(path.split("/")[:-1])


def _collation_key(path: str) -> tuple[list[int], list[bool]]:
    # Non-ASCII characters sort after ASCII, by code point.
    ranks = [_COLLATION_RANK.get(c, len(_COLLATION_ORDER) + ord(c)) for c in path.lower()]
    return ranks, [character.isupper() for character in path]


def compute_git_tree_id(files: Mapping[str, HashedFile]) -> str:
    """Compute git's tree id of a folder with these files, in a SHA-1 repository."""
    folders: dict[str, dict[str, HashedFile]] = {}
    entries: list[tuple[bytes, bytes]] = []
    for path, content in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(first, {})[rest] = content
        else:
            mode = b"100755" if content.executable else b"100644"
            blob_id = _compute_object_id(b"blob", content.data)
            entries.append(_encode_tree_entry(mode, first, blob_id))
    for name, below in folders.items():
        entries.append(_encode_tree_entry(b"40000", name, compute_git_tree_id(below)))
    return _compute_object_id(b"tree", b"".join(entry for _, entry in sorted(entries)))


def _encode_tree_entry(mode: bytes, name: str, object_id: str) -> tuple[bytes, bytes]:
    """Return the sort key and the encoded entry."""
    encoded = name.encode()
    slash = b"/" if mode == b"40000" else b""  # git sorts a folder as if its name ended in "/"
    return encoded + slash, mode + b" " + encoded + b"\0" + bytes.fromhex(object_id)


def _compute_object_id(kind: bytes, data: bytes) -> str:
    header = kind + b" " + str(len(data)).encode() + b"\0"
    return hashlib.sha1(header + data, usedforsecurity=False).hexdigest()
