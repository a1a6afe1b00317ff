"""The two numbers by which `npx skills` knows the content of a skill's folder."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_IGNORED_FOLDERS = frozenset({".git", "node_modules"})  # folders of these names
# How JavaScript puts the characters of names in order, whatever the locale of most people: spaces
# and signs before digits before letters; case counts only where nothing else differs.
_COLLATION_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_COLLATION_RANK: Final[Mapping[str, int]] = {
    character: at for at, character in enumerate(_COLLATION_ORDER)
}


class HashedFile(NamedTuple):
    """The bytes of a file, and whether it may be run."""

    data: bytes
    executable: bool = False


def compute_npx_hash(files: Mapping[str, bytes]) -> str:
    """The SHA-256 over all paths and bytes, in the order in which JavaScript sorts the paths.

    Only for `is_comparable` paths is that order the same everywhere.
    """
    digest = hashlib.sha256()
    for path in sorted(filter(_is_hashed, files), key=_collation_key):
        digest.update(path.encode())
        digest.update(files[path])
    return digest.hexdigest()


def has_portable_order(files: Mapping[str, bytes]) -> bool:
    """Whether another number than `computed_hash` means other files: all their paths are ASCII."""
    return all(path.isascii() for path in files)


def _is_hashed(path: str) -> bool:
    return _IGNORED_FOLDERS.isdisjoint(path.split("/")[:-1])


def _collation_key(path: str) -> tuple[list[int], list[bool]]:
    """What to sort by: characters that are no ASCII follow the others in code point order."""
    ranks = [_COLLATION_RANK.get(c, len(_COLLATION_ORDER) + ord(c)) for c in path.lower()]
    return ranks, [character.isupper() for character in path]


def compute_git_tree_id(files: Mapping[str, HashedFile]) -> str:
    """The id that git gives a folder with these files, in a repository of SHA-1."""
    folders: dict[str, dict[str, HashedFile]] = {}
    entries: list[tuple[bytes, bytes]] = []
    for path, content in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(first, {})[rest] = content
        else:
            mode = b"100755" if content.executable else b"100644"
            entries.append(
                _encode_tree_entry(mode, first, _compute_object_id(b"blob", content.data))
            )
    for name, below in folders.items():
        entries.append(_encode_tree_entry(b"40000", name, compute_git_tree_id(below)))
    return _compute_object_id(b"tree", b"".join(line for _, line in sorted(entries)))


def _encode_tree_entry(mode: bytes, name: str, identity: str) -> tuple[bytes, bytes]:
    """What git sorts by, and the entry itself; a folder sorts as if its name ended in a slash."""
    encoded = name.encode()
    slash = b"/" if mode == b"40000" else b""
    return encoded + slash, mode + b" " + encoded + b"\0" + bytes.fromhex(identity)


def _compute_object_id(kind: bytes, data: bytes) -> str:
    head = kind + b" " + str(len(data)).encode() + b"\0"
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()
