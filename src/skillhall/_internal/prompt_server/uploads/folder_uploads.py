"""Uploaded sources in `<data>/uploads/<digest of the name>/`, replaced atomically.

Each folder has a `manifest.json` and the files below `files/`. If there are too many
sources, an upload deletes the least recently used ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.access.actor import AuditedChange
from skillhall._internal.policy.folder_walk_rules import STAGING_PREFIX
from skillhall._internal.prompt_server.folder_reader import read_folder
from skillhall._internal.prompt_server.prompt_model import IngestResult
from skillhall._internal.prompt_server.uploads.rules import normalize_source_name, validate_upload
from skillhall._internal.skill.bundle import digest_files
from skillhall.errors import SourceUnknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.prompt_server.prompt_model import Upload
    from skillhall._internal.sources.repo_layout import FileTree
    from skillhall._internal.storage.audit.file_audit import FileAudit

MAX_SOURCES = 50
MANIFEST = "manifest.json"
FILES = "files"
UPLOAD_ACTION = "source.upload"  # in the audit log; a digest of "" means that it was deleted
_FILE_MODE = 0o600
_MAX_MANIFEST_BYTES = 4096


class UploadManifest(NamedTuple):
    """Manifest next to the files of a source."""

    source: str
    content_hash: str
    version: str  # changes with each upload

    @classmethod
    def parse(cls, data: bytes) -> UploadManifest | None:
        """Parse a manifest file; None if it is damaged."""
        try:
            value = json.loads(data)
            return cls(*(str(value[field]) for field in cls._fields))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def serialize(self) -> bytes:
        """Return the content of the manifest file."""
        return json.dumps(self._asdict()).encode("ascii")


class FolderUploads:
    """Uploads in folders, shared by the processes of one machine."""

    def __init__(
        self,
        data_directory: str,
        max_sources: int = MAX_SOURCES,
        file_audit: FileAudit | None = None,
    ) -> None:
        self._folder = os.path.join(data_directory, "uploads")
        self._max_sources = max_sources
        self._file_audit = file_audit
        self._lock = threading.Lock()
        self._last_use_ns = 0  # nanoseconds since 1970

    def ingest(self, upload: Upload, actor: Actor) -> IngestResult:
        """Store an upload under its name. A rejected upload changes nothing.

        Raises: UploadRejected, TooLarge, OSError, DatabaseUnavailable.
        """
        upload = upload._replace(source=normalize_source_name(upload.source))
        checked = validate_upload(upload)
        name, content_hash = upload_folder_name(upload.source), upload.content_hash
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        with self._lock_folder() as folder:
            manifest = self._read_manifest(name)
            if manifest is not None and content_hash and manifest.content_hash == content_hash:
                self._mark_used(name)
                return IngestResult(upload.source, content_hash, len(checked), "unchanged")
            new_manifest = UploadManifest(upload.source, content_hash, secrets.token_hex(8))
            files = {f"{FILES}/{path}": file for path, file in checked.items()}
            files[MANIFEST] = new_manifest.serialize(), _FILE_MODE
            others = [each for each in folder.list_names() if not each.startswith(STAGING_PREFIX)]
            others = sorted({*others} - {name}, key=self._last_used_at, reverse=True)
            unused = others[self._max_sources - 1 :]

            def write() -> None:
                if folder.entry_kind(name) is None:
                    folder.create_folder(name, files)
                else:
                    folder.replace_folder(name, files)
                self._mark_used(name)
                for each in unused:
                    folder.remove_atomically(each)

            if self._file_audit is None:
                write()
            else:
                digests = {upload.source: (self._find_digest(upload.source), digest_files(checked))}
                for gone in filter(None, map(self._read_manifest, unused)):
                    digests[gone.source] = self._find_digest(gone.source), ""
                change = AuditedChange(actor, UPLOAD_ACTION, digests)
                self._file_audit.run(change, write, self._find_digest)
        return IngestResult(upload.source, content_hash, len(checked), "ingested")

    def recover(self) -> None:
        """Record an upload of a killed process. Raises: DatabaseUnavailable, OSError."""
        if self._file_audit is not None and os.path.isdir(self._folder):
            with self._lock_folder():
                self._file_audit.recover(self._find_digest)

    def version(self, source: str) -> str:
        """Return a string that changes with each upload. Raises: SourceUnknown."""
        manifest = self._read_manifest(upload_folder_name(source))
        if manifest is None:
            raise SourceUnknown(source)
        self._mark_used(upload_folder_name(source))
        return manifest.version

    def read(self, source: str) -> tuple[str, FileTree]:
        """Return the version and the files of a source. Raises: SourceUnknown, TooLarge."""
        try:
            with self._lock_folder():
                version = self.version(source)
                files = os.path.join(self._folder, upload_folder_name(source), FILES)
                return version, read_folder(files, source)
        except OSError:
            raise SourceUnknown(source) from None

    @contextlib.contextmanager
    def _lock_folder(self) -> Iterator[WritableFolder]:
        with WritableFolder(self._folder) as folder, folder.lock():
            folder.recover()
            yield folder

    def _find_digest(self, source: str) -> str:
        """Return the digest of an uploaded source; "" if there is none."""
        base = os.path.join(self._folder, upload_folder_name(source), FILES)
        files: dict[str, tuple[bytes, int]] = {}
        for parent, _, names in os.walk(base):
            for name in names:
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, base).replace(os.sep, "/")] = file.read(), 0
        return digest_files(files) if files else ""

    def _read_manifest(self, name: str) -> UploadManifest | None:
        try:
            with open(os.path.join(self._folder, name, MANIFEST), "rb") as file:
                return UploadManifest.parse(file.read(_MAX_MANIFEST_BYTES))
        except OSError:
            return None

    def _mark_used(self, name: str) -> None:
        """Record a use in the manifest's mtime, which other processes see."""
        with self._lock:
            # Strictly increasing, so that two uses never have the same time.
            self._last_use_ns = max(time.time_ns(), self._last_use_ns + 1)
            now = self._last_use_ns
        with contextlib.suppress(OSError):  # just evicted, or the disk is read-only
            os.utime(os.path.join(self._folder, name, MANIFEST), ns=(now, now))

    def _last_used_at(self, name: str) -> int:
        try:
            return os.stat(os.path.join(self._folder, name, MANIFEST)).st_mtime_ns
        except OSError:
            return 0


def upload_folder_name(source: str) -> str:
    """Return the name of a source's folder."""
    name = normalize_source_name(source)
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
