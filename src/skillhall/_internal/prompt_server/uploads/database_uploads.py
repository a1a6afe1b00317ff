"""Uploaded sources in a database, shared by all servers that use it."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall._internal.prompt_server.folder_reader import read_folder
from skillhall._internal.prompt_server.prompt_model import IngestResult
from skillhall._internal.prompt_server.uploads.folder_uploads import MAX_SOURCES
from skillhall._internal.prompt_server.uploads.rules import normalize_source_name, validate_upload
from skillhall._internal.storage.records import DATABASE_RESTORED, UPLOAD_CHANGED, UPLOAD_DELETED
from skillhall.errors import DatabaseUnavailable, SourceUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.prompt_server.prompt_model import Upload
    from skillhall._internal.sources.repo_layout import FileTree
    from skillhall._internal.storage.records import Event, StoredUpload
    from skillhall._internal.storage.sql.upload_rows import SqlUploadTable

RECHECK_INTERVAL = 30.0  # seconds between checks without an event; each counts as a use
_EXPIRED = float("-inf")


class _CachedVersion(NamedTuple):
    """Last known version of a source, and until when it is valid."""

    version: str
    valid_until: float  # of the monotonic clock


class DatabaseUploads:
    """Uploads in a database, with the interface of `FolderUploads`. Thread-safe.

    While the database is unavailable, known sources keep their last version.
    """

    def __init__(
        self,
        store: SqlUploadTable,
        cache_directory: str,
        max_sources: int = MAX_SOURCES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._folder = os.path.join(cache_directory, "uploads")
        self._max_sources = max_sources
        self._clock = clock
        self._lock = threading.Lock()
        self._versions: dict[str, _CachedVersion] = {}
        self._invalidation_count = 0

    def ingest(self, upload: Upload, actor: Actor) -> IngestResult:
        """Store an upload under its name. A rejected upload changes nothing.

        Raises: UploadRejected, TooLarge, DatabaseUnavailable, DatabaseFull.
        """
        upload = upload._replace(source=normalize_source_name(upload.source))
        files = validate_upload(upload)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        source, content_hash = upload.source, upload.content_hash
        is_new = self._store.put(source, files, content_hash, now, self._max_sources, actor)
        self._invalidate(source)
        return IngestResult(source, content_hash, len(files), "ingested" if is_new else "unchanged")

    def version(self, source: str) -> str:
        """Return a string that changes with the files of a source.

        A lookup in the database counts as a use of the source. If there are too many sources, an
        upload deletes the least recently used ones.
        Raises: SourceUnknown, and DatabaseUnavailable if no version is cached.
        """
        source = normalize_source_name(source)
        cached = self._versions.get(source)
        if cached is not None and self._clock() < cached.valid_until:
            return cached.version
        try:
            return _hash_upload(self._find_upload(source))
        except DatabaseUnavailable:
            if cached is None:
                raise
            return cached.version

    def read(self, source: str) -> tuple[str, FileTree]:
        """Return the version and the files of a source.

        Raises: SourceUnknown, TooLarge, OSError, DatabaseUnavailable.
        """
        source = normalize_source_name(source)
        upload = self._find_upload(source)
        files = {}
        for path, file in upload.files.items():
            data = self._store.read_blob(file.digest)
            if data is None:  # the upload was replaced in between
                return self.read(source)
            files[path] = data, file.mode
        # Written to a folder, to select the prompts by the same rules as for folders.
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        name = f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        with WritableFolder(self._folder) as folder, folder.lock():
            folder.recover()
            folder.create_folder(name, files, fsync=False)
            try:
                tree = read_folder(os.path.join(self._folder, name), source)
            finally:
                folder.remove(name)
        return _hash_upload(upload), tree

    def handle_events(self, events: Sequence[Event]) -> None:
        """Invalidate the sources that the events name, or all after a restore.

        An empty sequence means that events were missed, so all sources are invalidated.
        """
        changed = [e.subject for e in events if e.kind in (UPLOAD_CHANGED, UPLOAD_DELETED)]
        if not events or any(event.kind == DATABASE_RESTORED for event in events):
            self._invalidate()
        elif changed:
            self._invalidate(*changed)

    def _find_upload(self, source: str) -> StoredUpload:
        count = self._invalidation_count
        upload = self._store.find(source)
        with self._lock:
            if upload is None:
                self._versions.pop(source, None)
                raise SourceUnknown(source)
            # An invalidation during the query may be newer than its result.
            is_current = count == self._invalidation_count
            until = self._clock() + RECHECK_INTERVAL if is_current else _EXPIRED
            self._versions[source] = _CachedVersion(_hash_upload(upload), until)
        return upload

    def _invalidate(self, *sources: str) -> None:
        """Expire these sources, or all if none is given."""
        with self._lock:
            self._invalidation_count += 1
            for source in self._versions.keys() & set(sources or self._versions):
                self._versions[source] = self._versions[source]._replace(valid_until=_EXPIRED)


def _hash_upload(upload: StoredUpload) -> str:
    """Return a digest of the files that is equal on every machine."""
    facts = [upload.content_hash, *sorted((p, f.digest, f.mode) for p, f in upload.files.items())]
    return hashlib.sha256(repr(facts).encode()).hexdigest()
