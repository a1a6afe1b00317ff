"""Archives: bundles from zip, tar.gz and tar files, read into memory with limits.

`zip_format` and `tar_format` parse the two formats and pass entries to an `ArchiveExtraction`,
which makes the checks that both need. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import os
import re
import unicodedata
import zlib
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from skillhall._internal.fs.handles import open_root, read_file
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, fold_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.invisible_characters import EMOJI_FLAG
from skillhall._internal.sources.archive.tar_format import is_tar, read_tar
from skillhall._internal.sources.archive.zip_format import is_zip, read_zip
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE_SIZE
from skillhall._internal.sources.repo_layout import (
    find_enclosing_folder,
    find_version_control_folder,
    find_visible_skills,
    is_macos_metadata,
)
from skillhall.errors import ArchiveRejected, SkillFileNotFound, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall.errors import ArchiveReason

_MIB = 1024 * 1024
_CHUNK_SIZE = 64 * 1024  # bytes passed to or returned by zlib at once
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's largest window, with 16 added for the header of gzip
_EXTENSIONS = re.compile(r"\.(?:(?P<zip>zip)|(?P<tar>tar\.gz|tgz|tar)|skill)$", re.IGNORECASE)
_WHITEOUT = ".wh."  # start of a file name that means "remove", in layers of images
_DEFAULT_NAME = "skill"  # for an archive whose own name is not a valid folder name
_MAX_SHOWN_NAME = 80  # characters of a name in a message

# Joiners and the tags in flags are invisible, but some scripts and emoji need them.
_ALLOWED_INVISIBLE = re.compile(f"[\u200c\u200d]|{EMOJI_FLAG}")
# Controls, bidirectional and other format marks, surrogates, line and paragraph separators.
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of an archive.

    For comparison: PyPI allows a ratio of 50:1 above 64 MiB, Go modules 500 MiB in total.
    """

    entries: int = 2_000  # files and folders; the limit of files in a skill
    total: int = 100 * _MIB  # bytes, unpacked
    file: int = MAX_FILE_SIZE  # bytes of one file, unpacked
    ratio: int = 100  # unpacked to packed; text rarely exceeds 20
    ratio_min_total: int = _MIB  # bytes, unpacked; smaller archives may have any ratio
    depth: int = 32  # folders above a file
    path: int = 240  # bytes; Windows allows 260 characters, including the target folder


DEFAULT_ARCHIVE_LIMITS = ArchiveLimits()
# A repository's archive is streamed; only files of requested skills stay in memory.
REPOSITORY_LIMITS = ArchiveLimits(entries=200_000, total=2048 * _MIB, ratio_min_total=64 * _MIB)


def read_archive(
    data: bytes,
    name: str,
    limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS,
    preferred_folder: str = "",
) -> tuple[Bundle, ...]:
    """Read the skills in a zip, tar.gz or tar file, sorted by folder.

    If there are skills in `preferred_folder` below the top folder, only these are read.

    A bundle's folder is its path in the archive, or the archive's name if it is at the root.
    Raises: ArchiveRejected, TooLarge.
    """
    name = re.split(r"[/\\]", name)[-1]
    extraction = ArchiveExtraction(name, len(data), limits)
    extension = _EXTENSIONS.search(name)
    kind = extension.lastgroup if extension else None
    if data.startswith(_GZIP) or is_tar(data):
        if kind == "zip":
            extraction.reject("confusion", "it has the extension of a zip file, but is a tar file")
        _read_tar_file(data, extraction)
    elif is_zip(data):
        if kind == "tar":
            extraction.reject("confusion", "it has the extension of a tar file, but is a zip file")
        read_zip(data, extraction)
    else:
        extraction.reject("malformed", "it is neither a zip nor a tar file")
    return _build_bundles(extraction, preferred_folder)


def read_layers(
    layers: Sequence[bytes], name: str, preferred_folder: str = ""
) -> tuple[Bundle, ...]:
    """Read the skills in the layers of an image, which are tar.gz or tar files.

    Layers may have the same folders, but not the same files: programs that unpack only some of them
    would get another skill. Raises: ArchiveRejected, TooLarge.
    """
    extraction = ArchiveExtraction(name, sum(map(len, layers)), DEFAULT_ARCHIVE_LIMITS)
    for data in layers:
        if not data.startswith(_GZIP) and not is_tar(data):
            extraction.reject("malformed", "a layer is not a tar file")
        extraction.start_layer()
        _read_tar_file(data, extraction)
    if any(path.rpartition("/")[2].startswith(_WHITEOUT) for path in extraction.files):
        extraction.reject("special", "a layer removes files of another one")
    return _build_bundles(extraction, preferred_folder)


def _read_tar_file(data: bytes, extraction: ArchiveExtraction) -> None:
    is_packed = data.startswith(_GZIP)
    # A generator: nothing is unpacked yet.
    packed = extraction.inflate(memoryview(data), _GZIP_WINDOW)
    read_tar(packed if is_packed else extraction.read_stored(data), extraction)


def read_archive_file(path: str) -> tuple[Bundle, ...]:
    """Read the skills in a local archive.

    Raises: SkillFileNotFound, NotAFile, and as `read_archive`.
    """
    name = os.path.basename(path)
    try:
        with open_root(os.path.dirname(path)) as folder:
            data = read_file(folder, name, DEFAULT_ARCHIVE_LIMITS.total)
    except OSError:
        raise SkillFileNotFound(name) from None
    return read_archive(data, name)


def read_loose_files(
    files: Sequence[tuple[str, bytes]], name: str, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS
) -> tuple[Bundle, ...]:
    """Read the skills in (path, content) pairs, by the rules for archives.

    `name` is treated as the archive's name. Raises: ArchiveRejected, TooLarge.
    """
    extraction = ArchiveExtraction(name, sum(len(data) for _, data in files), limits)
    for path, data in files:
        extraction.count_entries()
        checked = extraction.claim_path(path.encode("utf-8", "surrogatepass"), is_folder=False)
        extraction.check_file_size(checked, len(data))
        extraction.count_unpacked(len(data))
        extraction.add_file(checked, data, executable=False)
    return _build_bundles(extraction)


class _Claim(Enum):
    """Kind of entry that a path is reserved for."""

    FILE = "file"
    FOLDER = "folder"
    IMPLIED_FOLDER = "a folder above another entry, not listed yet"


class ArchivedFile(NamedTuple):
    """File in an archive."""

    data: bytes
    executable: bool


@dataclass(slots=True)
class ArchiveExtraction:
    """Files extracted from one archive, with the checks that all formats share."""

    name: str
    packed_size: int  # bytes
    limits: ArchiveLimits
    files: dict[str, ArchivedFile] = field(default_factory=dict)
    _entry_count: int = 0
    _unpacked_size: int = 0
    _claimed_names: dict[str, tuple[str, _Claim]] = field(default_factory=dict)

    def reject(self, reason: ArchiveReason, detail: str) -> NoReturn:
        """Reject the archive. Raises: ArchiveRejected."""
        raise ArchiveRejected(self.name, reason, detail)

    def count_entries(self, entries: int = 1) -> None:
        """Count entries towards the limit. Raises: TooLarge."""
        self._entry_count += entries
        if self._entry_count > self.limits.entries:
            raise TooLarge(self.name, self.limits.entries, "entries")

    def count_unpacked(self, size: int) -> None:
        """Count unpacked bytes towards the limits. Raises: TooLarge."""
        self._unpacked_size += size
        self.check_total_size(self._unpacked_size)

    def check_total_size(self, total: int) -> None:
        """Check the unpacked size against the limits. Raises: TooLarge."""
        if total > self.limits.total:
            raise TooLarge(self.name, self.limits.total)
        if total > self.limits.ratio_min_total and total > self.packed_size * self.limits.ratio:
            raise TooLarge(self.name, self.limits.ratio, "times its packed size")

    def claim_path(self, raw: bytes, *, is_folder: bool) -> str:
        """Check the path of an entry and reserve it, so that no other entry can have it.

        Raises: ArchiveRejected.
        """
        path = self._decode_path(raw, is_folder=is_folder)
        for folder in list(accumulate(path.split("/"), "{}/{}".format))[:-1]:
            self._claim_name(folder, _Claim.IMPLIED_FOLDER)
        self._claim_name(path, _Claim.FOLDER if is_folder else _Claim.FILE)
        return path

    def start_layer(self) -> None:
        """Allow the next tar file to list folders again."""
        for key, (path, claim) in self._claimed_names.items():
            if claim is _Claim.FOLDER:
                self._claimed_names[key] = (path, _Claim.IMPLIED_FOLDER)

    def read_content(self, path: str, chunks: Iterable[bytes]) -> bytes:
        """Join the chunks of one file. Raises: TooLarge."""
        data = bytearray()
        for chunk in chunks:
            data += chunk
            self.check_file_size(path, len(data))
        return bytes(data)

    def add_file(self, path: str, data: bytes, *, executable: bool) -> None:
        """Add a file."""
        self.files[path] = ArchivedFile(data, executable)

    def check_file_size(self, path: str, size: int) -> None:
        """Check a file's size against the limit. Raises: TooLarge."""
        if size > self.limits.file:
            raise TooLarge(_shorten(path), self.limits.file)

    def inflate(self, packed: memoryview, window: int) -> Iterator[bytes]:
        """Unpack and count one deflate stream. Raises: ArchiveRejected, TooLarge."""
        starts = range(0, len(packed), _CHUNK_SIZE)
        return self._inflate_pieces((packed[at : at + _CHUNK_SIZE] for at in starts), window)

    def gunzip_stream(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Unpack and count a gzip stream of unknown size. Raises: as `inflate`."""

        def count_packed() -> Iterator[bytes]:
            for chunk in chunks:
                self.packed_size += len(chunk)
                yield chunk

        return self._inflate_pieces(count_packed(), _GZIP_WINDOW)

    def _inflate_pieces(
        self, packed: Iterator[bytes] | Iterator[memoryview], window: int
    ) -> Iterator[bytes]:
        stream = zlib.decompressobj(window)
        for piece in packed:
            pending: bytes | memoryview = piece
            while True:
                try:
                    chunk = stream.decompress(pending, _CHUNK_SIZE)
                except zlib.error:
                    self.reject("malformed", "its compressed data is malformed")
                if not chunk:
                    break
                self.count_unpacked(len(chunk))
                yield chunk
                pending = stream.unconsumed_tail
            if stream.eof:
                if stream.unused_data or next(packed, b""):
                    self.reject("confusion", "it has data after the end of its compressed data")
                return
        self.reject("malformed", "its compressed data is truncated")

    def read_stored(self, data: bytes | memoryview) -> Iterator[bytes]:
        """Yield and count uncompressed bytes. Raises: TooLarge."""
        for start in range(0, len(data), _CHUNK_SIZE):
            chunk = bytes(data[start : start + _CHUNK_SIZE])
            self.count_unpacked(len(chunk))
            yield chunk

    def _decode_path(self, raw: bytes, *, is_folder: bool) -> str:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            self.reject("path", f"the name {_shorten(ascii(raw))} is not UTF-8")
        if is_folder:
            text = text.removesuffix("/")
            if text == ".":  # tar's name for the packed folder itself
                return text
        text = text.removeprefix("./")
        try:
            normalized = RelativePath.parse(text).text
        except UnsafePath as error:
            self.reject("path", f"{_shorten(text)!r}: {error.reason}")
        if text != normalized:
            self.reject("path", f"{_shorten(text)!r} is not normalized")
        if len(text.encode()) > self.limits.path:
            self.reject("path", f"{_shorten(text)!r} has more than {self.limits.path} bytes")
        if text.count("/") > self.limits.depth:
            self.reject("path", f"{_shorten(text)!r} is deeper than {self.limits.depth} folders")
        if any(
            unicodedata.category(c) in _INVISIBLE_CATEGORIES
            for c in _ALLOWED_INVISIBLE.sub("", text)
        ):
            self.reject("path", f"{_shorten(text)!r} contains invisible characters")
        return text

    def _claim_name(self, path: str, claim: _Claim) -> None:
        key = fold_name(path)
        known_path, known = self._claimed_names.get(key, (path, None))
        if known_path != path:
            names = f"{_shorten(known_path)!r} and {_shorten(path)!r}"
            self.reject("duplicate", f"{names} are the same name on some systems")
        if known is None or (known is _Claim.IMPLIED_FOLDER and claim is _Claim.FOLDER):
            self._claimed_names[key] = (path, claim)
        elif known is _Claim.FILE or claim is not _Claim.IMPLIED_FOLDER:
            self.reject("duplicate", f"it contains {_shorten(path)!r} twice")


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_NAME else f"{text[:_MAX_SHOWN_NAME]}…"


def _build_bundles(extraction: ArchiveExtraction, preferred_folder: str = "") -> tuple[Bundle, ...]:
    all_files = {p: f for p, f in sorted(extraction.files.items()) if not is_macos_metadata(p)}
    used_files = {p: f for p, f in all_files.items() if find_version_control_folder(p) is None}
    # Archives of repositories on GitHub have one top folder.
    tops = {path.partition("/")[0] if "/" in path else "" for path in used_files}
    top = tops.pop() if len(tops) == 1 else ""
    preferred = f"{top}/{preferred_folder}" if top else preferred_folder
    roots = set(preferred_folder and find_visible_skills(used_files, preferred))
    roots = roots or set(find_visible_skills(used_files, top))
    if not roots:
        extraction.reject("no_skill", f"No {SKILL_MD} found")
    skills: dict[str, dict[str, SkillFile]] = {root: {} for root in sorted(roots)}
    for path, file in used_files.items():
        root = find_enclosing_folder(path, roots)
        if root is not None:
            try:
                relative = RelativePath.parse(path[len(root) + 1 :] if root else path)
            except UnsafePath as error:  # some names are unsafe only at the start of a path
                extraction.reject("path", f"{_shorten(path)!r}: {error.reason}")
            read = partial(bytes, file.data)
            skill_file = SkillFile(relative, len(file.data), file.executable, read)
            skills[root][relative.text] = skill_file
    findings = _version_control_findings(all_files, roots)
    name = _EXTENSIONS.sub("", extraction.name)
    try:
        name = RelativePath.parse(name).text
    except UnsafePath:
        name = _DEFAULT_NAME
    return tuple(
        Bundle(root or name, files, tuple(findings.get(root, ())), root)
        for root, files in skills.items()
    )


def _version_control_findings(paths: Iterable[str], roots: set[str]) -> Mapping[str, list[Finding]]:
    message = "left out of the skill's files: it belongs to version control"
    findings: dict[str, list[Finding]] = {}
    for folder in dict.fromkeys(find_version_control_folder(path) for path in paths):
        root = None if folder is None else find_enclosing_folder(folder, roots)
        if folder is not None and root is not None:
            path = folder[len(root) + 1 :] if root else folder
            findings.setdefault(root, []).append(Finding(Code.FILE_LEFT_OUT, message, path=path))
    return findings
