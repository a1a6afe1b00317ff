"""Cache of trust states, so that commands need no gate while nothing changes.

A listing takes 30 ms of CPU; the modules of the gate would add 20 ms. The states on disk are valid
while the signatures of the approvals and of all files and folders of the skills are unchanged.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import zlib
from typing import TYPE_CHECKING

from skillhall._internal.catalog.cache_file import (
    CHECKSUM_SIZE,
    NewCacheFile,
    build_version_line,
    is_trusted_file,
    open_cache_file,
)
from skillhall._internal.settings import TRUST_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.policy.trust.trust_action import TrustPolicy
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.folder.candidate import Signature

    # The state, the signatures of files and folders, and the encoded files that agents get; "" if
    # these are not restricted.
    StateRow: TypeAlias = tuple[str, Sequence[tuple[str, Signature | None]], bytes]
    # By label and location.
    StateRows: TypeAlias = Mapping[tuple[str, str], StateRow]

_FOLDER = "approvals"
_MAX_ROWS = 10_000  # of skills, including those that were removed since the last approval


class TrustCacheFile:
    """Cache file of one project with `marshal` data, verified before use."""

    def __init__(self, cache_directory: str, kind: str, project: str) -> None:
        """Name the cache file for a kind of data. Without a directory, there is no file."""
        self._header = f"{build_version_line()}\n{kind}\n{project}\0".encode(
            "utf-8", "surrogatepass"
        )
        name = f"{zlib.crc32(self._header):08x}"
        self._path = os.path.join(cache_directory, _FOLDER, name) if cache_directory else ""

    def load(self) -> Any:  # noqa: ANN401 - whatever was written
        """Return the data; `None` if the file is missing, damaged or not trusted."""
        try:
            descriptor = open_cache_file(self._path)
            with open(descriptor, "rb") as file:
                data = file.read() if is_trusted_file(os.fstat(descriptor)) else b""
            start = len(self._header) + CHECKSUM_SIZE
            checksum = int.from_bytes(data[len(self._header) : start], "big")
            if not data.startswith(self._header) or checksum != zlib.crc32(data[start:]):
                return None
            return marshal.loads(data[start:])  # noqa: S302 - only we can have written it
        except (OSError, ValueError, EOFError, TypeError):
            return None

    def save(self, data: Any) -> None:  # noqa: ANN401 - whatever `marshal` can write
        """Replace the file; problems are ignored."""
        if not self._path:
            return
        payload = marshal.dumps(data)
        with contextlib.suppress(OSError):
            file = NewCacheFile(self._path)
            try:
                file.write(self._header + bytes(CHECKSUM_SIZE) + payload)
                checksum = zlib.crc32(payload).to_bytes(CHECKSUM_SIZE, "big")
                file.commit(len(self._header), checksum)
            except BaseException:
                file.discard()
                raise


class StateCache:
    """Cache of the states of skills, for one file of approvals."""

    def __init__(self, file: TrustCacheFile, trust_file: str) -> None:
        self._file = file
        self._trust_file = trust_file
        self._trust_signature = _read_signature(trust_file)
        self._loaded: tuple[Sequence[str] | None, StateRows] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the approvals have not changed."""
        return _read_signature(self._trust_file) == self._trust_signature

    def find(self, skills: Iterable[CatalogSkill]) -> Mapping[str, str] | None:
        """Return the states of these skills by location; `None` if one is not known."""
        rows = self.find_rows(skills)
        return None if rows is None else {at: state for at, (state, _, _) in rows.items()}

    def find_rows(self, skills: Iterable[CatalogSkill]) -> Mapping[str, StateRow] | None:
        """Return the stored rows of these skills by location; `None` if one is not known."""
        _, known = self._load()
        rows, stat = {}, os.stat
        try:
            for key, skill in _iter_keys(skills):
                row = known[key]
                # `_read_signature` inlined: a project may have hundreds of files.
                for path, signature in row[1]:
                    status = stat(path)
                    if signature != (
                        status.st_mtime_ns,
                        status.st_ctime_ns,
                        status.st_size,
                        status.st_ino,
                    ):
                        return None
                rows[skill.location] = row
        except (KeyError, OSError):
            return None
        return rows

    def find_linked_folders(self) -> Sequence[str] | None:
        """Return the approved targets of links out of the roots; `None` if unknown."""
        return self._load()[0]

    def save(
        self,
        skills: Iterable[CatalogSkill],
        states: Mapping[str, StateRow],
        linked_folders: Sequence[str] | None = None,
    ) -> None:
        """Store the states, with the signatures that must still match when they are used."""
        linked, stored = self._load()
        linked = linked if linked_folders is None else linked_folders
        rows = {**stored, **{key: states[skill.location] for key, skill in _iter_keys(skills)}}
        if len(rows) <= _MAX_ROWS:
            self._loaded = linked, rows
            self._file.save((self._trust_signature, linked, rows))

    def _load(self) -> tuple[Sequence[str] | None, StateRows]:
        if self._loaded is None:
            stored = self._file.load()
            is_current = stored is not None and stored[0] == self._trust_signature
            self._loaded = stored[1:] if is_current else (None, {})
        return self._loaded


def _iter_keys(skills: Iterable[CatalogSkill]) -> Iterator[tuple[tuple[str, str], CatalogSkill]]:
    """Yield each skill with its key: its label, and its location without links."""
    folders: dict[str, str] = {}
    for skill in skills:
        root = skill.root
        folder = folders.get(root.path) or folders.setdefault(root.path, root.real_path)
        yield (root.source, f"{folder}{os.sep}{skill.folder}{os.sep}{skill.file}"), skill


def open_trust_cache_file(settings: Settings, kind: str) -> TrustCacheFile:
    """Return the cache file of the working directory for a kind of data."""
    directory = settings.cache_directory if settings.use_head_cache else ""
    return TrustCacheFile(directory, kind, os.path.realpath(settings.working_directory))


def open_state_cache(settings: Settings, policy: TrustPolicy) -> StateCache:
    """Return the cache of the states of skills under a profile's policy.

    It is empty if there is a policy file, because the states then depend on further files.
    """
    if settings.has_policy:
        settings = settings._replace(use_head_cache=False)
    rules = f"{policy.new}, {policy.changed}, trusted: {settings.trust_project}"
    file = open_trust_cache_file(settings, f"states and files: {rules}, {settings.home}")
    return StateCache(file, os.path.join(settings.data_directory, TRUST_FILE))


def _read_signature(path: str) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
