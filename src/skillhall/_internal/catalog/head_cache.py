"""Head cache: parsed heads of SKILL.md files on disk.

A scan reads only files whose stat signature has changed. If nothing below the root has changed, it
does not even list folders. Each root has one cache file, which is replaced atomically; if two
processes write it, the last one wins. If the file is missing, damaged, outdated or not trusted, the
heads are read again.

`cache_file` decides which files are trusted.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import time
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
from skillhall._internal.catalog.scan_state import (
    build_state,
    is_cacheable,
    is_empty_folder,
    is_provable,
)
from skillhall._internal.sources.folder.candidate_codec import (
    decode_candidates,
    decode_findings,
    encode_candidates,
    encode_findings,
)
from skillhall._internal.sources.folder.walker import Scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

    from skillhall._internal.fs.signatures import PackedSignature
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.skill.finding import Finding, FindingRow
    from skillhall._internal.sources.folder.candidate import Candidate
    from skillhall._internal.sources.folder.root import Root

# Candidates are encoded, decoded and checked in parts, to limit the memory that is needed at once.
_CANDIDATES_PER_PART = 2048
_LENGTH_SIZE = 8  # bytes
_MAX_CHANGED = 64  # skills that are read again one by one; a complete scan is faster for many


class ScanRecord(NamedTuple):
    """The last scan of a root, besides its cached candidates."""

    options: str  # everything else that determines the result
    folders: dict[str, PackedSignature]  # that were listed
    findings: tuple[Finding, ...]
    empty_folders: list[Candidate]


class CachedScan(NamedTuple):
    """Content of a cache file. With a record, the candidates are those of a complete scan."""

    candidates: list[Candidate]
    record: ScanRecord | None = None


class HeadCache:
    """Head caches of all roots, below one cache folder."""

    def __init__(self, directory: str) -> None:
        self.directory: str = os.path.join(directory, CACHE_FOLDER)

    def open(self, root: Root, real_root: str, profile: Profile) -> RootCache:
        """Load the cache of a root; it is empty if the file cannot be used."""
        # Names of cache files are short hashes and may collide; the header identifies the root.
        header = f"{build_version_line()}\n{profile.key_case.value}\n{real_root}\0"
        encoded = header.encode("utf-8", "surrogatepass")
        path = os.path.join(self.directory, f"{zlib.crc32(encoded):08x}")
        return RootCache(path, encoded, root, profile)


class RootCache:
    """Head cache of one root, for a scan with one profile."""

    def __init__(self, path: str, header: bytes, root: Root, profile: Profile) -> None:
        self._path = path
        self._header = header
        self._root = root
        self._options = _describe_options(root, profile)
        try:
            self._cached = _read_file(path, header)
        except (OSError, ValueError, EOFError, TypeError, KeyError):
            self._cached = CachedScan([])

    def find_scan(self, scan_names: Callable[[Iterable[str]], Scan]) -> Scan | None:
        """Return the last scan, with changed skills read again; `None` if more has changed.

        `scan_names` scans some entries of the root. Checking that the rest is unchanged takes one
        `stat` for each SKILL.md and each listed folder.
        """
        candidates, record = self._cached
        if record is None or record.options != self._options:
            return None
        changed = self._find_changed_folders(record)
        # The result for a skill in a group could depend on the rest of the group.
        if changed is None or any("/" in folder for folder in changed):
            return None
        findings = [*record.findings]
        if not changed:
            everything = [*candidates, *record.empty_folders]
            return Scan(everything, findings, len(everything), record.folders, is_unchanged=True)
        scan = scan_names(changed)
        if scan.findings or {one.folder for one in scan.candidates} != changed:
            return None
        reused = [one for one in candidates if one.folder not in changed]
        reused += record.empty_folders
        return Scan([*reused, *scan.candidates], findings, len(reused), record.folders)

    def _find_changed_folders(self, record: ScanRecord) -> set[str] | None:
        """Return the folders whose SKILL.md has changed; `None` if more has changed."""
        root, changed = self._root.path, set[str]()
        if not build_state(record.folders, ()).is_current(root):
            return None
        for part in _split(self._cached.candidates):
            indexes = build_state({}, part).find_changes(root, _MAX_CHANGED - len(changed))
            if indexes is None:
                return None
            changed.update(part[index].folder for index in indexes)
        return changed

    def by_folder(self) -> Mapping[str, Candidate]:
        """Return the cached candidates by folder."""
        return {candidate.folder: candidate for candidate in self._cached.candidates}

    def save(self, scan: Scan, started_ns: int) -> None:
        """Save a scan that started at `started_ns`, unless the cache already contains it."""
        if scan.is_unchanged and scan.reused_count == len(scan.candidates):
            return
        record = None
        if scan.folders is not None and is_provable(scan, started_ns):
            empty_folders = [*filter(is_empty_folder, scan.candidates)]
            record = ScanRecord(self._options, scan.folders, tuple(scan.findings), empty_folders)
        cacheable = [c for c in scan.candidates if is_cacheable(c, started_ns)]
        if not cacheable:
            return  # scanning the root again takes as long
        has_all_heads = scan.reused_count == len(cacheable)
        if has_all_heads and (record is None or self._has_record_of_other_options()):
            return
        with contextlib.suppress(OSError):
            _write_file(self._path, self._header, CachedScan(cacheable, record))

    def _has_record_of_other_options(self) -> bool:
        # Two profiles that are used in turn would otherwise replace each other's record each time.
        record = self._cached.record
        return record is not None and record.options != self._options


def _describe_options(root: Root, profile: Profile) -> str:
    policy = profile.scan_policy
    # Findings contain the path of the root. The order of a set differs between processes.
    skip_names, others = sorted(policy.skip_names), policy._replace(skip_names=frozenset())
    return repr((root.path, root.no_links_below, skip_names, others))


def now_ns() -> int:
    """Return the time of the clock that file times are compared with."""
    return time.time_ns()


def _read_file(path: str, header: bytes) -> CachedScan:
    """Read a cache file. Raises: OSError, ValueError, EOFError, TypeError, KeyError."""
    descriptor = open_cache_file(path)
    try:
        if not is_trusted_file(status := os.fstat(descriptor)):
            return CachedScan([])
        with open(descriptor, "rb", closefd=False) as file:
            if file.read(len(header)) != header:
                return CachedScan([])
            return _read_parts(file, status.st_size)
    finally:
        os.close(descriptor)


def _read_parts(file: BinaryIO, file_size: int) -> CachedScan:
    first = _read_part(file, file_size)
    count, encoded = marshal.loads(first)  # noqa: S302 - only our own file gets here
    candidates: list[Candidate] = []
    while len(candidates) < count:
        candidates += decode_candidates(_read_part(file, file_size))
    if file.read(1):
        raise ValueError
    return CachedScan(candidates, None if encoded is None else _decode_record(*encoded))


def _read_part(file: BinaryIO, file_size: int) -> bytes:
    """Read one part. Raises: ValueError if it is damaged."""
    checksum = int.from_bytes(file.read(CHECKSUM_SIZE), "big")
    size = int.from_bytes(file.read(_LENGTH_SIZE), "big")
    data = file.read(size) if size <= file_size else b""
    # The checksum detects damage; owner and mode protect against other users.
    if len(data) != size or zlib.crc32(data) != checksum:
        raise ValueError
    return data


def _write_file(path: str, header: bytes, cached: CachedScan) -> None:
    candidates, record = cached
    file = NewCacheFile(path)
    try:
        file.write(header)
        encoded = None if record is None else _encode_record(record)
        _write_part(file, marshal.dumps((len(candidates), encoded)))
        for part in _split(candidates):
            _write_part(file, encode_candidates(part))
        file.commit()
    except BaseException:
        file.discard()
        raise


def _split(candidates: list[Candidate]) -> Iterator[list[Candidate]]:
    for start in range(0, len(candidates), _CANDIDATES_PER_PART):
        yield candidates[start : start + _CANDIDATES_PER_PART]


def _write_part(file: NewCacheFile, data: bytes) -> None:
    file.write(zlib.crc32(data).to_bytes(CHECKSUM_SIZE, "big"))
    file.write(len(data).to_bytes(_LENGTH_SIZE, "big"))
    file.write(data)


def _encode_record(record: ScanRecord) -> tuple[Any, ...]:
    options, folders, findings, empty_folders = record
    return options, folders, encode_findings(findings), encode_candidates(empty_folders)


def _decode_record(
    options: str, folders: dict[str, PackedSignature], rows: Sequence[FindingRow], empty: bytes
) -> ScanRecord:
    return ScanRecord(options, folders, decode_findings(rows), decode_candidates(empty))
