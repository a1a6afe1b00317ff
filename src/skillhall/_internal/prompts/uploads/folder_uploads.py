"""Uploaded sources, and their place on disk: each whole or not at all, and only those in use.

```text
<data>/uploads/<digest of the name>/manifest.json     its name, its hash, how many files it has
<data>/uploads/<digest of the name>/files/…
```
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.scan_rules import STAGING_PREFIX
from skillhall._internal.prompts.folder_reader import read_folder
from skillhall._internal.prompts.prompt_model import IngestResult
from skillhall._internal.prompts.uploads.rules import normalize_source_name, validate_upload
from skillhall.errors import SourceUnknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.prompts.prompt_model import Upload
    from skillhall._internal.sources.repo_layout import FileTree

MAX_SOURCES = 50
_MANIFEST = "manifest.json"
_FILES = "files"
_FILE_MODE = 0o600
_MAX_MANIFEST_BYTES = 4096  # bytes of a manifest


class _UploadManifest(NamedTuple):
    """What is noted beside the files of a source."""

    source: str
    content_hash: str
    version: str  # another one with each upload

    def to_json(self) -> bytes:
        return json.dumps(self._asdict()).encode("ascii")


class Uploads(Protocol):
    """The sources that clients uploaded; those that nobody used longest make room."""

    def ingest(self, upload: Upload) -> IngestResult:
        """Keep an upload under its name; a refused one leaves the old.

        Raises: UploadRejected, TooLarge, OSError, DatabaseUnavailable, DatabaseFull.
        """

    def version(self, source: str) -> str:
        """What changes with the files of a source; it counts as used.

        Raises: SourceUnknown, DatabaseUnavailable.
        """

    def read(self, source: str) -> tuple[str, FileTree]:
        """The version and the files of a source.

        Raises: SourceUnknown, TooLarge, OSError, DatabaseUnavailable.
        """


class FolderUploads:
    """Uploads in folders; several processes of one machine may share them."""

    def __init__(self, data_directory: str, max_sources: int = MAX_SOURCES) -> None:
        self._folder = os.path.join(data_directory, "uploads")
        self._max_sources = max_sources
        self._lock = threading.Lock()
        self._last_use_ns = 0  # nanoseconds since 1970

    def ingest(self, upload: Upload) -> IngestResult:
        """Keep an upload under its name; a refused one leaves the old.

        Raises: UploadRejected, TooLarge, OSError.
        """
        upload = upload._replace(source=normalize_source_name(upload.source))
        checked = validate_upload(upload)
        name, content_hash = _to_folder_name(upload.source), upload.content_hash
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        with self._lock_folder() as folder:
            known = self._read_manifest(name)
            if known is not None and content_hash and known.content_hash == content_hash:
                self._mark_used(name)
                return IngestResult(upload.source, content_hash, len(checked), "unchanged")
            manifest = _UploadManifest(upload.source, content_hash, secrets.token_hex(8)).to_json()
            files = {f"{_FILES}/{path}": file for path, file in checked.items()}
            files[_MANIFEST] = manifest, _FILE_MODE
            if folder.entry_kind(name) is None:
                folder.create_folder(name, files)
            else:
                folder.replace_folder(name, files)
            self._mark_used(name)
            self._evict_unused(folder)
        return IngestResult(upload.source, content_hash, len(checked), "ingested")

    def version(self, source: str) -> str:
        """What changes with each upload of a source; it counts as used. Raises: SourceUnknown."""
        found = self._read_manifest(_to_folder_name(source))
        if found is None:
            raise SourceUnknown(source)
        self._mark_used(_to_folder_name(source))
        return found.version

    def read(self, source: str) -> tuple[str, FileTree]:
        """The version and the files of a source. Raises: SourceUnknown, TooLarge."""
        try:
            with self._lock_folder():
                version = self.version(source)
                place = os.path.join(self._folder, _to_folder_name(source), _FILES)
                return version, read_folder(place, source)
        except OSError:
            raise SourceUnknown(source) from None

    @contextlib.contextmanager
    def _lock_folder(self) -> Iterator[WritableFolder]:
        with WritableFolder(self._folder) as folder, folder.lock():
            folder.recover()
            yield folder

    def _read_manifest(self, name: str) -> _UploadManifest | None:
        try:
            with open(os.path.join(self._folder, name, _MANIFEST), "rb") as file:
                found = json.loads(file.read(_MAX_MANIFEST_BYTES))
            return _UploadManifest(*(str(found[field]) for field in _UploadManifest._fields))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _mark_used(self, name: str) -> None:
        """Note that somebody uses a source, for this process and the next."""
        with self._lock:
            self._last_use_ns = max(time.time_ns(), self._last_use_ns + 1)
            now = self._last_use_ns
        with contextlib.suppress(OSError):  # it was dropped just now, or the disk is read-only
            os.utime(os.path.join(self._folder, name, _MANIFEST), ns=(now, now))

    def _evict_unused(self, folder: WritableFolder) -> None:
        names = [name for name in folder.list_names() if not name.startswith(STAGING_PREFIX)]
        names.sort(key=self._last_used_at, reverse=True)
        for name in names[self._max_sources :]:
            folder.remove_atomically(name)

    def _last_used_at(self, name: str) -> int:
        try:
            return os.stat(os.path.join(self._folder, name, _MANIFEST)).st_mtime_ns
        except OSError:
            return 0


def _to_folder_name(source: str) -> str:
    return hashlib.sha256(
        normalize_source_name(source).encode("utf-8", "surrogatepass")
    ).hexdigest()
