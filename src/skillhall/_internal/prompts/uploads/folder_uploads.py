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
from skillhall._internal.policy.scan_rules import STAGED
from skillhall._internal.prompts.folder_reader import read_folder
from skillhall._internal.prompts.prompt_model import Ingested
from skillhall._internal.prompts.uploads.rules import checked_upload, stored_name
from skillhall.errors import SourceUnknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.prompts.prompt_model import Upload
    from skillhall._internal.sources.repo_layout import Tree

MAX_SOURCES = 50
_MANIFEST = "manifest.json"
_FILES = "files"
_PLAIN = 0o600
_LONGEST = 4096  # bytes of a manifest


class _Manifest(NamedTuple):
    """What is noted beside the files of a source."""

    source: str
    content_hash: str
    version: str  # another one with each upload

    def encoded(self) -> bytes:
        return json.dumps(self._asdict()).encode("ascii")


class Uploads(Protocol):
    """The sources that clients uploaded; those that nobody used longest make room."""

    def ingest(self, upload: Upload) -> Ingested:
        """Keep an upload under its name; a refused one leaves the old.

        Raises: UploadRejected, TooLarge, OSError, DatabaseUnavailable, DatabaseFull.
        """

    def version(self, source: str) -> str:
        """What changes with the files of a source; it counts as used.

        Raises: SourceUnknown, DatabaseUnavailable.
        """

    def read(self, source: str) -> tuple[str, Tree]:
        """The version and the files of a source.

        Raises: SourceUnknown, TooLarge, OSError, DatabaseUnavailable.
        """


class FolderUploads:
    """Uploads in folders; several processes of one machine may share them."""

    def __init__(self, data_directory: str, at_most: int = MAX_SOURCES) -> None:
        self._folder = os.path.join(data_directory, "uploads")
        self._at_most = at_most
        self._gate = threading.Lock()
        self._last_use = 0  # nanoseconds since 1970

    def ingest(self, upload: Upload) -> Ingested:
        """Keep an upload under its name; a refused one leaves the old.

        Raises: UploadRejected, TooLarge, OSError.
        """
        upload = upload._replace(source=stored_name(upload.source))
        checked = checked_upload(upload)
        name, content_hash = _key(upload.source), upload.content_hash
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        with self._locked() as folder:
            known = self._manifest(name)
            if known is not None and content_hash and known.content_hash == content_hash:
                self._use(name)
                return Ingested(upload.source, content_hash, len(checked), "unchanged")
            manifest = _Manifest(upload.source, content_hash, secrets.token_hex(8)).encoded()
            files = {f"{_FILES}/{path}": file for path, file in checked.items()}
            files[_MANIFEST] = manifest, _PLAIN
            if folder.kind(name) is None:
                folder.put_folder(name, files)
            else:
                folder.swap_folder(name, files)
            self._use(name)
            self._drop_unused(folder)
        return Ingested(upload.source, content_hash, len(checked), "ingested")

    def version(self, source: str) -> str:
        """What changes with each upload of a source; it counts as used. Raises: SourceUnknown."""
        found = self._manifest(_key(source))
        if found is None:
            raise SourceUnknown(source)
        self._use(_key(source))
        return found.version

    def read(self, source: str) -> tuple[str, Tree]:
        """The version and the files of a source. Raises: SourceUnknown, TooLarge."""
        try:
            with self._locked():
                version = self.version(source)
                place = os.path.join(self._folder, _key(source), _FILES)
                return version, read_folder(place, source)
        except OSError:
            raise SourceUnknown(source) from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[WritableFolder]:
        with WritableFolder(self._folder) as folder, folder.locked():
            folder.recover()
            yield folder

    def _manifest(self, name: str) -> _Manifest | None:
        try:
            with open(os.path.join(self._folder, name, _MANIFEST), "rb") as file:
                found = json.loads(file.read(_LONGEST))
            return _Manifest(*(str(found[field]) for field in _Manifest._fields))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _use(self, name: str) -> None:
        """Note that somebody uses a source, for this process and the next."""
        with self._gate:
            self._last_use = max(time.time_ns(), self._last_use + 1)
            now = self._last_use
        with contextlib.suppress(OSError):  # it was dropped just now, or the disk is read-only
            os.utime(os.path.join(self._folder, name, _MANIFEST), ns=(now, now))

    def _drop_unused(self, folder: WritableFolder) -> None:
        names = [name for name in folder.names() if not name.startswith(STAGED)]
        names.sort(key=self._used, reverse=True)
        for name in names[self._at_most :]:
            folder.discard(name)

    def _used(self, name: str) -> int:
        try:
            return os.stat(os.path.join(self._folder, name, _MANIFEST)).st_mtime_ns
        except OSError:
            return 0


def _key(source: str) -> str:
    return hashlib.sha256(stored_name(source).encode("utf-8", "surrogatepass")).hexdigest()
