"""Listing cache: the JSON output of a large listing, reused until a skill changes.

Comparing the stat signatures of every SKILL.md and of every folder that the scan listed is enough
to detect changes: an entry cannot be added, removed or replaced without changing the folder. That
takes one system call each and no listing, parsing or encoding.

The files are next to those of the head cache. This module imports little, since importing takes a
large part of the time of a listing.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import zlib
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.cache_file import (
    CACHE_FOLDER,
    CHECKSUM_SIZE,
    NewCacheFile,
    build_version_line,
    is_trusted_file,
    open_cache_file,
)
from skillhall._internal.fs.signatures import SIGNATURE_SIZE, pack_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.fs.signatures import PackedSignature

FORMAT = 1  # increase it if the output of `list` changes between releases
MIN_SKILLS = 1000  # smaller listings are printed faster than they are worth storing
_NUMBER = 8  # bytes
_CHUNK = 1 << 20
_SLICE = 4096  # signatures that are compared at once


class ScanState(NamedTuple):
    """Everything that the result of a scan depends on: paths and their signatures."""

    paths: list[str]  # relative to the root; "." is the root itself
    signatures: bytes  # of all paths

    def is_current(self, root: str) -> bool:
        """Whether every path below `root` still has its signature."""
        return self.find_changes(root, 0) == []

    def find_changes(self, root: str, limit: int) -> list[int] | None:
        """Return the indexes of paths whose signature changed.

        Returns None if there are more than `limit`, or if a path no longer exists.
        """
        changes: list[int] = []
        for start in range(0, len(self.paths), _SLICE):
            part = self.paths[start : start + _SLICE]
            known = self.signatures[start * SIGNATURE_SIZE : (start + _SLICE) * SIGNATURE_SIZE]
            try:
                current = [*_read_signatures(root, part)]
            except (OSError, ValueError):
                return None
            if b"".join(current) != known:
                old = (known[i : i + SIGNATURE_SIZE] for i in range(0, len(known), SIGNATURE_SIZE))
                pairs = enumerate(zip(old, current, strict=True), start)
                changes += [index for index, (before, now) in pairs if before != now]
                if len(changes) > limit:
                    return None
        return changes


class StoredListing:
    """An open listing whose skills are unchanged; `chunks` closes it."""

    def __init__(self, descriptor: int, start: int, messages: tuple[str, ...]) -> None:
        self._descriptor = descriptor
        self._start = start
        self.messages = messages  # for stderr

    def chunks(self) -> Iterator[bytes]:
        """Yield the output, then close the file."""
        try:
            os.lseek(self._descriptor, self._start, os.SEEK_SET)
            while chunk := os.read(self._descriptor, _CHUNK):
                yield chunk
        finally:
            os.close(self._descriptor)


class ListingCache:
    """The stored listing of one root under one profile."""

    def __init__(self, directory: str, root: str, options: str) -> None:
        """Create the cache; `options` names everything else that determines the output."""
        self._root = root
        version = f"{build_version_line()}, listings {FORMAT}"
        text = f"{version}\n{options}\n{os.path.realpath(root)}\n{root}\0"
        self._header = text.encode("utf-8", "surrogatepass")
        name = f"{zlib.crc32(self._header):08x}.list"
        self._path = os.path.join(directory, CACHE_FOLDER, name)

    def find(self) -> StoredListing | None:
        """Return the stored listing; `None` if there is none or it is outdated."""
        try:
            descriptor = open_cache_file(self._path)
        except OSError:
            return None
        listing = None
        try:
            listing = self._read(descriptor)
        except (OSError, ValueError, EOFError, TypeError):
            pass
        finally:
            if listing is None:
                os.close(descriptor)
        return listing

    def _read(self, descriptor: int) -> StoredListing | None:
        if not is_trusted_file(os.fstat(descriptor)):
            return None
        start = len(self._header) + CHECKSUM_SIZE + _NUMBER
        head = os.read(descriptor, start)
        if not head.startswith(self._header) or len(head) != start:
            return None
        checksum = int.from_bytes(head[-CHECKSUM_SIZE - _NUMBER : -_NUMBER], "big")
        size = int.from_bytes(head[-_NUMBER:], "big")
        state_bytes = bytearray()
        actual = zlib.crc32(head[-_NUMBER:])
        while chunk := os.read(descriptor, _CHUNK):
            actual = zlib.crc32(chunk, actual)
            if len(state_bytes) < size:
                state_bytes += chunk
        if actual != checksum:
            return None
        # `marshal` trusts its input: only our own file gets here, as in the head cache.
        paths, signatures, messages = marshal.loads(memoryview(state_bytes)[:size])  # noqa: S302
        if not ScanState(paths, signatures).is_current(self._root):
            return None
        return StoredListing(descriptor, start + size, tuple(messages))

    def create(self, state: ScanState, messages: Iterable[str]) -> ListingWriter | None:
        """Start a new listing; `None` if the cache cannot be written."""
        data = marshal.dumps((state.paths, state.signatures, tuple(messages)))
        try:
            writer = ListingWriter(self._path, self._header)
        except OSError:
            return None
        writer.write(len(data).to_bytes(_NUMBER, "big"))
        writer.write(data)
        return writer


class ListingWriter:
    """A listing that is being written. If a write fails, it is not stored."""

    def __init__(self, path: str, header: bytes) -> None:
        """Create the file. Raises: OSError."""
        self._file = NewCacheFile(path)
        self._header_size = len(header)
        self._checksum = 0
        self._has_failed = False
        self._file.write(header + bytes(CHECKSUM_SIZE))

    def write(self, data: bytes) -> None:
        """Append a part of the output."""
        if self._has_failed:
            return
        self._checksum = zlib.crc32(data, self._checksum)
        try:
            self._file.write(data)
        except OSError:
            self._has_failed = True

    def finish(self) -> None:
        """Move the file into place, unless a write failed."""
        if self._has_failed:
            self._file.discard()
            return
        with contextlib.suppress(OSError):
            self._file.commit(self._header_size, self._checksum.to_bytes(CHECKSUM_SIZE, "big"))

    def discard(self) -> None:
        """Remove the incomplete file."""
        self._file.discard()


def _read_signatures(root: str, paths: Iterable[str]) -> Iterator[PackedSignature]:
    # A stat through a link is harmless here, since only its signature is used. The link itself
    # would change the signature of the folder that contains it.
    handle = os.open(root, os.O_RDONLY) if os.stat in os.supports_dir_fd else None
    try:
        for path in paths:
            name = os.path.join(root, path) if handle is None else path
            yield pack_signature(os.stat(name, dir_fd=handle, follow_symlinks=False))
    finally:
        if handle is not None:
            os.close(handle)
