"""Uploaded sources that all servers on one database have."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.scan_rules import STAGED
from skillhall._internal.prompts.folder_reader import read_folder
from skillhall._internal.prompts.prompt_model import Ingested
from skillhall._internal.prompts.uploads.folder_uploads import MAX_SOURCES
from skillhall._internal.prompts.uploads.rules import checked_upload, stored_name
from skillhall._internal.storage.ports import (
    DATABASE_RESTORED,
    UPLOAD_CHANGED,
    UPLOAD_DELETED,
)
from skillhall.errors import DatabaseUnavailable, SourceUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.prompts.prompt_model import Upload
    from skillhall._internal.sources.repo_layout import Tree
    from skillhall._internal.storage.ports import StoredUploads
    from skillhall._internal.storage.records import Event, StoredUpload

LOOK = 30.0  # seconds between looks at a source that no event asks for; each counts as a use
_NOW = float("-inf")


class _Seen(NamedTuple):
    """What the last look at a source found, and until when that is believed."""

    version: str
    until: float


class SharedUploads:
    """Uploads in a database; safe to use from several threads.

    While it cannot be reached, the sources that were asked for stay as they were seen last.
    """

    def __init__(
        self,
        store: StoredUploads,
        cache_directory: str,
        at_most: int = MAX_SOURCES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._folder = os.path.join(cache_directory, "uploads")
        self._at_most = at_most
        self._clock = clock
        self._gate = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._told = 0  # how often somebody said that something changed

    def ingest(self, upload: Upload) -> Ingested:
        """Keep an upload under its name; a refused one leaves the old.

        Raises: UploadRejected, TooLarge, DatabaseUnavailable, DatabaseFull.
        """
        upload = upload._replace(source=stored_name(upload.source))
        files = checked_upload(upload)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        source, content_hash = upload.source, upload.content_hash
        is_new = self._store.put(source, files, content_hash, now, self._at_most)
        self._doubt(source)
        return Ingested(source, content_hash, len(files), "ingested" if is_new else "unchanged")

    def version(self, source: str) -> str:
        """What changes with the files of a source; it counts as used.

        Raises: SourceUnknown, DatabaseUnavailable if it was never seen.
        """
        source = stored_name(source)
        seen = self._seen.get(source)
        if seen is not None and self._clock() < seen.until:
            return seen.version
        try:
            return _version(self._find(source))
        except DatabaseUnavailable:
            if seen is None:
                raise
            return seen.version

    def read(self, source: str) -> tuple[str, Tree]:
        """The version and the files of a source.

        Raises: SourceUnknown, TooLarge, OSError, DatabaseUnavailable.
        """
        source = stored_name(source)
        found = self._find(source)
        files = {}
        for path, file in found.files.items():
            data = self._store.read(file.digest)
            if data is None:  # somebody replaced it just now
                return self.read(source)
            files[path] = data, file.mode
        return _version(found), self._tree(source, files)

    def hear(self, events: Sequence[Event]) -> None:
        """Look again at the sources that events tell of; at all, if nobody knows what was told."""
        told = [one for one in events if one.kind in (UPLOAD_CHANGED, UPLOAD_DELETED)]
        if not events or any(one.kind == DATABASE_RESTORED for one in events):
            self._doubt()
        elif told:
            self._doubt(*(one.subject for one in told))

    def _find(self, source: str) -> StoredUpload:
        told = self._told
        found = self._store.find(source)
        with self._gate:
            if found is None:
                self._seen.pop(source, None)
                raise SourceUnknown(source)
            until = self._clock() + LOOK if told == self._told else _NOW
            self._seen[source] = _Seen(_version(found), until)
        return found

    def _doubt(self, *sources: str) -> None:
        """Believe what was seen of these no longer; of nothing, if none is named."""
        with self._gate:
            self._told += 1
            for source in self._seen.keys() & set(sources or self._seen):
                self._seen[source] = self._seen[source]._replace(until=_NOW)

    def _tree(self, source: str, files: dict[str, tuple[bytes, int]]) -> Tree:
        """The prompts among the files, by the rules for folders."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        name = f"{STAGED}{secrets.token_hex(8)}"
        with WritableFolder(self._folder) as folder, folder.locked():
            folder.recover()
            folder.put_folder(name, files, synced=False)
            try:
                return read_folder(os.path.join(self._folder, name), source)
            finally:
                folder.remove(name)


def _version(found: StoredUpload) -> str:
    """The same for the same files, on every machine."""
    told = [found.content_hash, *sorted((p, f.digest, f.mode) for p, f in found.files.items())]
    return hashlib.sha256(repr(told).encode()).hexdigest()
