"""Cache of the trust states of a project's skills, so that listings need no gate.

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.folder.candidate import Signature

    # The state of each skill by location, and the signatures of its files and folders.
    SkillStates: TypeAlias = Mapping[str, tuple[str, Mapping[str, Signature | None]]]

_FOLDER = "approvals"
_TRUST_FILE = "trust.json"  # as in `trust_store`, which a listing does not import


class TrustCacheFile:
    """Cache file of one project with `marshal` data, verified before use."""

    def __init__(self, cache_directory: str, kind: str, project: str) -> None:
        """`kind` says what the file contains. Without a directory, there is no file."""
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
    """Cache of the states of a project's skills, for one file of approvals."""

    def __init__(self, file: TrustCacheFile, trust_file: str) -> None:
        self._file = file
        self._trust_signature = _read_signature(trust_file)

    def find(self, skills: Iterable[CatalogSkill]) -> Mapping[str, str] | None:
        """Return the states of these skills by location; `None` if one is not known."""
        stored = self._file.load()
        if stored is None or stored[0] != self._trust_signature:
            return None
        states, known, stat = {}, stored[1], os.stat
        try:
            for skill in skills:
                state, signatures = known[location := skill.location]
                # `_read_signature` inlined: a project may have hundreds of files.
                for path, signature in signatures:
                    status = stat(path)
                    if signature != (
                        status.st_mtime_ns,
                        status.st_ctime_ns,
                        status.st_size,
                        status.st_ino,
                    ):
                        return None
                states[location] = state
        except (KeyError, OSError):
            return None
        return states

    def save(self, states: SkillStates) -> None:
        """Store the states, with the signatures that must still match when they are used."""
        rows = {at: (state, [*known.items()]) for at, (state, known) in states.items()}
        self._file.save((self._trust_signature, rows))


def open_trust_cache_file(settings: Settings, kind: str) -> TrustCacheFile:
    """Return a cache file of the working directory; `kind` says what it contains."""
    directory = settings.cache_directory if settings.use_head_cache else ""
    return TrustCacheFile(directory, kind, os.path.realpath(settings.working_directory))


def open_state_cache(settings: Settings) -> StateCache:
    """Return the cache of the states of the skills in the working directory.

    It is empty if there is a policy, because the states then depend on further files.
    """
    if settings.has_policy:
        settings = settings._replace(use_head_cache=False)
    file = open_trust_cache_file(settings, f"states, trusted: {settings.trust_project}")
    return StateCache(file, os.path.join(settings.data_directory, _TRUST_FILE))


def _read_signature(path: str) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
