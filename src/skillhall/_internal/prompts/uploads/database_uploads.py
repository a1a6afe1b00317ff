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
from skillhall._internal.policy.scan_rules import STAGING_PREFIX
from skillhall._internal.prompts.folder_reader import read_folder
from skillhall._internal.prompts.prompt_model import IngestResult
from skillhall._internal.prompts.uploads.folder_uploads import MAX_SOURCES
from skillhall._internal.prompts.uploads.rules import normalize_source_name, validate_upload
from skillhall._internal.storage.ports import (
    DATABASE_RESTORED,
    UPLOAD_CHANGED,
    UPLOAD_DELETED,
)
from skillhall.errors import DatabaseUnavailable, SourceUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.prompts.prompt_model import Upload
    from skillhall._internal.sources.repo_layout import FileTree
    from skillhall._internal.storage.ports import UploadTable
    from skillhall._internal.storage.records import Event, StoredUpload

RECHECK_INTERVAL = (
    30.0  # seconds between looks at a source that no event asks for; each counts as a use
)
_EXPIRED = float("-inf")


class _CachedVersion(NamedTuple):
    """What the last look at a source found, and until when that is believed."""

    version: str
    valid_until: float


class DatabaseUploads:
    """Uploads in a database; safe to use from several threads.

    While it cannot be reached, the sources that were asked for stay as they were seen last.
    """

    def __init__(
        self,
        store: UploadTable,
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
        self._invalidation_count = 0  # how often somebody said that something changed

    def ingest(self, upload: Upload) -> IngestResult:
        """Keep an upload under its name; a refused one leaves the old.

        Raises: UploadRejected, TooLarge, DatabaseUnavailable, DatabaseFull.
        """
        upload = upload._replace(source=normalize_source_name(upload.source))
        files = validate_upload(upload)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        source, content_hash = upload.source, upload.content_hash
        is_new = self._store.put(source, files, content_hash, now, self._max_sources)
        self._invalidate(source)
        return IngestResult(source, content_hash, len(files), "ingested" if is_new else "unchanged")

    def version(self, source: str) -> str:
        """What changes with the files of a source; it counts as used.

        Raises: SourceUnknown, DatabaseUnavailable if it was never seen.
        """
        source = normalize_source_name(source)
        seen = self._versions.get(source)
        if seen is not None and self._clock() < seen.valid_until:
            return seen.version
        try:
            return _hash_upload(self._find_upload(source))
        except DatabaseUnavailable:
            if seen is None:
                raise
            return seen.version

    def read(self, source: str) -> tuple[str, FileTree]:
        """The version and the files of a source.

        Raises: SourceUnknown, TooLarge, OSError, DatabaseUnavailable.
        """
        source = normalize_source_name(source)
        found = self._find_upload(source)
        files = {}
        for path, file in found.files.items():
            data = self._store.read_blob(file.digest)
            if data is None:  # somebody replaced it just now
                return self.read(source)
            files[path] = data, file.mode
        return _hash_upload(found), self._build_tree(source, files)

    def handle_events(self, events: Sequence[Event]) -> None:
        """Look again at the sources that events tell of; at all, if nobody knows what was told."""
        told = [one for one in events if one.kind in (UPLOAD_CHANGED, UPLOAD_DELETED)]
        if not events or any(one.kind == DATABASE_RESTORED for one in events):
            self._invalidate()
        elif told:
            self._invalidate(*(one.subject for one in told))

    def _find_upload(self, source: str) -> StoredUpload:
        told = self._invalidation_count
        found = self._store.find(source)
        with self._lock:
            if found is None:
                self._versions.pop(source, None)
                raise SourceUnknown(source)
            until = (
                self._clock() + RECHECK_INTERVAL if told == self._invalidation_count else _EXPIRED
            )
            self._versions[source] = _CachedVersion(_hash_upload(found), until)
        return found

    def _invalidate(self, *sources: str) -> None:
        """Believe what was seen of these no longer; of nothing, if none is named."""
        with self._lock:
            self._invalidation_count += 1
            for source in self._versions.keys() & set(sources or self._versions):
                self._versions[source] = self._versions[source]._replace(valid_until=_EXPIRED)

    def _build_tree(self, source: str, files: dict[str, tuple[bytes, int]]) -> FileTree:
        """The prompts among the files, by the rules for folders."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        name = f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        with WritableFolder(self._folder) as folder, folder.lock():
            folder.recover()
            folder.create_folder(name, files, fsync=False)
            try:
                return read_folder(os.path.join(self._folder, name), source)
            finally:
                folder.remove(name)


def _hash_upload(upload: StoredUpload) -> str:
    """The same for the same files, on every machine."""
    told = [upload.content_hash, *sorted((p, f.digest, f.mode) for p, f in upload.files.items())]
    return hashlib.sha256(repr(told).encode()).hexdigest()
