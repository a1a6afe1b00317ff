"""The two numbers by which `npx skills` knows the content of a skill's folder."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEFT_OUT = frozenset({".git", "node_modules"})  # folders of these names
# How JavaScript puts the characters of names in order, whatever the locale of most people: spaces
# and signs before digits before letters; case counts only where nothing else differs.
_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_RANK: Final[Mapping[str, int]] = {character: at for at, character in enumerate(_ORDER)}


class Content(NamedTuple):
    """The bytes of a file, and whether it may be run."""

    data: bytes
    executable: bool = False


def computed_hash(files: Mapping[str, bytes]) -> str:
    """The SHA-256 over all paths and bytes, in the order in which JavaScript sorts the paths.

    Only for `is_comparable` paths is that order the same everywhere.
    """
    digest = hashlib.sha256()
    for path in sorted(filter(_counts, files), key=_collated):
        digest.update(path.encode())
        digest.update(files[path])
    return digest.hexdigest()


def is_comparable(files: Mapping[str, bytes]) -> bool:
    """Whether another number than `computed_hash` means other files: all their paths are ASCII."""
    return all(path.isascii() for path in files)


def _counts(path: str) -> bool:
    return _LEFT_OUT.isdisjoint(path.split("/")[:-1])


def _collated(path: str) -> tuple[list[int], list[bool]]:
    """What to sort by: characters that are no ASCII follow the others in code point order."""
    ranks = [_RANK.get(c, len(_ORDER) + ord(c)) for c in path.lower()]
    return ranks, [character.isupper() for character in path]


def git_tree_id(files: Mapping[str, Content]) -> str:
    """The id that git gives a folder with these files, in a repository of SHA-1."""
    folders: dict[str, dict[str, Content]] = {}
    entries: list[tuple[bytes, bytes]] = []
    for path, content in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(first, {})[rest] = content
        else:
            mode = b"100755" if content.executable else b"100644"
            entries.append(_entry(mode, first, _object_id(b"blob", content.data)))
    for name, below in folders.items():
        entries.append(_entry(b"40000", name, git_tree_id(below)))
    return _object_id(b"tree", b"".join(line for _, line in sorted(entries)))


def _entry(mode: bytes, name: str, identity: str) -> tuple[bytes, bytes]:
    """What git sorts by, and the entry itself; a folder sorts as if its name ended in a slash."""
    encoded = name.encode()
    slash = b"/" if mode == b"40000" else b""
    return encoded + slash, mode + b" " + encoded + b"\0" + bytes.fromhex(identity)


def _object_id(kind: bytes, data: bytes) -> str:
    head = kind + b" " + str(len(data)).encode() + b"\0"
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()
