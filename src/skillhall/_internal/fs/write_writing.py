"""Changing a person's skills on disk, one whole step at a time."""

from __future__ import annotations

from skillhall._internal.fs.handles import Kind
from skillhall._internal.fs.write import WritableFolder
from skillhall.errors import Conflict, NotAFile


def replace_file(folder: str, name: str, data: bytes) -> None:
    """Give the regular file `name` other bytes and keep its mode. Raises: OSError, NotAFile."""
    with WritableFolder(folder) as base:
        if base.kind(name) is not Kind.FILE:
            raise NotAFile(name)
        base.put(name, data, base.mode(name))


def rename_file(folder: str, name: str, new: str) -> None:
    """Call the regular file `name` `new`. Raises: OSError, NotAFile, Conflict."""
    with WritableFolder(folder) as base:
        if base.kind(name) is not Kind.FILE:
            raise NotAFile(name)
        # Where case does not count, both names are the one file, and the listing has only one.
        if new in base.names() or (base.kind(new) is not None and name.lower() != new.lower()):
            raise Conflict(new)
        base.rename(name, new)
        base.sync()


def create_folder(parent: str, name: str, files: dict[str, bytes]) -> None:
    """Make the folder `name` with `files` in it, all or nothing. Raises: OSError, Conflict."""
    # Whoever clears up in `parent` must not take what is staged here for a leftover.
    with WritableFolder(parent) as base, base.locked():
        if base.kind(name) is not None:
            raise Conflict(name)
        try:
            base.put_folder(name, {path: (data, 0o644) for path, data in files.items()})
        except OSError:
            if base.kind(name) is not None:  # somebody was faster
                raise Conflict(name) from None
            raise
