"""Archives: zip, tar.gz and tar files as bundles, read into memory under limits.

`archive_zip` and `archive_tar` know the two formats; what they meet they hand to an `Intake`, which
holds the rules that are the same for both. Nothing is ever unpacked to a disk here.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from typing import TYPE_CHECKING, NoReturn

from skillhall._internal.skill.bundle import (
    VERSION_CONTROL_FOLDERS,
    Bundle,
    RelativePath,
    SkillFile,
    fold_name,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.invisible import EMOJI_FLAG
from skillhall._internal.sources.archive.tar_format import is_tar, read_tar
from skillhall._internal.sources.archive.zip_format import is_zip, read_zip
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE_SIZE
from skillhall._internal.sources.repo_layout import find_enclosing_folder, find_visible_skills
from skillhall.errors import ArchiveRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall.errors import ArchiveReason

_MIB = 1024 * 1024
_CHUNK_SIZE = 64 * 1024  # bytes that go into or come out of zlib at once
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's, with 16 added for the header of gzip
_EXTENSIONS = re.compile(r"\.(?:(?P<zip>zip)|(?P<tar>tar\.gz|tgz|tar)|skill)$", re.IGNORECASE)
_DEFAULT_NAME = "skill"  # for an archive whose own name cannot be a folder's
_MAX_SHOWN_NAME = 80  # characters of a name in a message

# Joiners and flags: ignored by some file systems when they compare names, and needed by some
# scripts and emoji.
_ALLOWED_INVISIBLE = re.compile(f"[\u200c\u200d]|{EMOJI_FLAG}")
# Controls, marks that turn or hide text, lone surrogates, line and paragraph separators.
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MACOS_NAMES = frozenset({"__macosx", ".ds_store"})
# Windows knows `.git` also by its short name.


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How much an archive may hold. PyPI allows 50:1 above 64 MiB, Go modules 500 MiB in all."""

    entries: int = 2_000  # files and folders, as many as a skill may have files
    total: int = 100 * _MIB  # bytes, unpacked
    file: int = MAX_FILE_SIZE  # bytes of one file, unpacked
    ratio: int = 100  # unpacked to packed; text rarely passes 20
    ratio_min_total: int = _MIB  # bytes, unpacked; small archives of blank files are no bombs
    depth: int = 32  # folders above a file
    path: int = 240  # bytes; Windows takes 260 characters, with the folder it goes to


DEFAULT_ARCHIVE_LIMITS = ArchiveLimits()
# A repository's archive is read past, not kept; only single files of it are.
REPOSITORY_LIMITS = ArchiveLimits(entries=200_000, total=2048 * _MIB, ratio_min_total=64 * _MIB)


def read_archive(
    data: bytes, name: str, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS
) -> tuple[Bundle, ...]:
    """The skills in a zip, tar.gz or tar file called `name`, in order of their folders.

    The folder of a bundle is its path in the archive; at the top, the archive's own name.
    Raises: ArchiveRejected, TooLarge.
    """
    name = re.split(r"[/\\]", name)[-1]
    intake = ArchiveExtraction(name, len(data), limits)
    ending = _EXTENSIONS.search(name)
    kind = ending.lastgroup if ending else None
    if data.startswith(_GZIP) or is_tar(data):
        if kind == "zip":
            intake.reject("confusion", "it is called a zip file, but is a tar file")
        gzip = data.startswith(_GZIP)
        read_tar(
            intake.inflate(memoryview(data), _GZIP_WINDOW) if gzip else intake.read_stored(data),
            intake,
        )
    elif is_zip(data):
        if kind == "tar":
            intake.reject("confusion", "it is called a tar file, but is a zip file")
        read_zip(data, intake)
    else:
        intake.reject("malformed", "it is neither a zip nor a tar file")
    return _build_bundles(intake)


def read_loose_files(
    files: Sequence[tuple[str, bytes]], name: str, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS
) -> tuple[Bundle, ...]:
    """The skills among loose files with their paths, as in an archive that is called `name`.

    Raises: ArchiveRejected, TooLarge.
    """
    intake = ArchiveExtraction(name, sum(len(data) for _, data in files), limits)
    for path, data in files:
        intake.count_entries()
        checked = intake.claim_path(path.encode("utf-8", "surrogatepass"), is_folder=False)
        intake.check_file_size(checked, len(data))
        intake.count_unpacked(len(data))
        intake.add_file(checked, data, executable=False)
    return _build_bundles(intake)


class _Claim(Enum):
    """Why a name is taken."""

    FILE = "file"
    FOLDER = "folder"
    IMPLIED_FOLDER = "a folder above another entry, not listed yet"


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file of an archive."""

    data: bytes
    executable: bool

    def read(self) -> bytes:
        """Its bytes."""
        return self.data


@dataclass(slots=True)
class ArchiveExtraction:
    """What was taken out of one archive, and the rules for taking more."""

    name: str
    packed_size: int  # bytes
    limits: ArchiveLimits
    files: dict[str, ArchivedFile] = field(default_factory=dict)
    _entry_count: int = 0
    _unpacked_size: int = 0
    _claimed_names: dict[str, tuple[str, _Claim]] = field(default_factory=dict)

    def reject(self, reason: ArchiveReason, detail: str) -> NoReturn:
        """Give the archive up. Raises: ArchiveRejected."""
        raise ArchiveRejected(self.name, reason, detail)

    def count_entries(self, entries: int = 1) -> None:
        """Note that more entries are there. Raises: TooLarge."""
        self._entry_count += entries
        if self._entry_count > self.limits.entries:
            raise TooLarge(self.name, self.limits.entries, "entries")

    def count_unpacked(self, size: int) -> None:
        """Note that bytes were unpacked. Raises: TooLarge."""
        self._unpacked_size += size
        self.check_total_size(self._unpacked_size)

    def check_total_size(self, total: int) -> None:
        """Refuse a total of bytes beyond the limits. Raises: TooLarge."""
        if total > self.limits.total:
            raise TooLarge(self.name, self.limits.total)
        if total > self.limits.ratio_min_total and total > self.packed_size * self.limits.ratio:
            raise TooLarge(self.name, self.limits.ratio, "times its packed size")

    def claim_path(self, raw: bytes, *, is_folder: bool) -> str:
        """The checked path of an entry; from here on its name is taken. Raises: ArchiveRejected."""
        path = self._decode_path(raw, is_folder=is_folder)
        above = list(accumulate(path.split("/"), "{}/{}".format))[:-1]
        for folder in above:
            self._claim_name(folder, _Claim.IMPLIED_FOLDER)
        self._claim_name(path, _Claim.FOLDER if is_folder else _Claim.FILE)
        return path

    def read_content(self, path: str, chunks: Iterable[bytes]) -> bytes:
        """All bytes of one file. Raises: TooLarge."""
        size = 0
        gathered = []
        for chunk in chunks:
            size += len(chunk)
            self.check_file_size(path, size)
            gathered.append(chunk)
        return b"".join(gathered)

    def add_file(self, path: str, data: bytes, *, executable: bool) -> None:
        """Take a file in."""
        self.files[path] = ArchivedFile(data, executable)

    def check_file_size(self, path: str, size: int) -> None:
        """Refuse a file beyond the limit. Raises: TooLarge."""
        if size > self.limits.file:
            raise TooLarge(_shorten(path), self.limits.file)

    def inflate(self, packed: memoryview, window: int) -> Iterator[bytes]:
        """The bytes of one deflate stream, counted. Raises: ArchiveRejected, TooLarge."""
        steps = (
            packed[start : start + _CHUNK_SIZE] for start in range(0, len(packed), _CHUNK_SIZE)
        )
        return self._inflate_pieces(steps, window)

    def gunzip_stream(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same of a gzip stream whose size is known when it ends."""
        return self._inflate_pieces(self._count_packed(chunks), _GZIP_WINDOW)

    def _count_packed(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.packed_size += len(chunk)
            yield chunk

    def _inflate_pieces(
        self, packed: Iterator[bytes] | Iterator[memoryview], window: int
    ) -> Iterator[bytes]:
        stream = zlib.decompressobj(window)
        for piece in packed:
            pending: bytes | memoryview = piece
            while chunk := self._decompress(stream, pending):
                self.count_unpacked(len(chunk))
                yield chunk
                pending = stream.unconsumed_tail
            if stream.eof:
                if stream.unused_data or next(packed, b""):
                    self.reject("confusion", "there is more after the end of compressed data")
                return
        self.reject("malformed", "compressed data ends too early")

    def read_stored(self, data: bytes | memoryview) -> Iterator[bytes]:
        """Bytes that are not compressed, counted. Raises: TooLarge."""
        for start in range(0, len(data), _CHUNK_SIZE):
            chunk = bytes(data[start : start + _CHUNK_SIZE])
            self.count_unpacked(len(chunk))
            yield chunk

    def _decompress(self, stream: zlib._Decompress, pending: bytes | memoryview) -> bytes:
        try:
            return stream.decompress(pending, _CHUNK_SIZE)
        except zlib.error:
            self.reject("malformed", "compressed data is damaged")

    def _decode_path(self, raw: bytes, *, is_folder: bool) -> str:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            self.reject("path", f"the name {_shorten(ascii(raw))} is not UTF-8")
        if is_folder:
            text = text.removesuffix("/")
            if text == ".":  # how tar calls the folder that was packed
                return text
        text = text.removeprefix("./")
        self._check_path(text)
        return text

    def _check_path(self, text: str) -> None:
        try:
            shortest = RelativePath.parse(text).text
        except UnsafePath as error:
            self.reject("path", f"{_shorten(text)!r}: {error.reason}")
        if text != shortest:
            self.reject("path", f"{_shorten(text)!r} is not in its shortest form")
        if len(text.encode()) > self.limits.path:
            self.reject("path", f"{_shorten(text)!r} has more than {self.limits.path} bytes")
        if text.count("/") > self.limits.depth:
            self.reject("path", f"{_shorten(text)!r} lies deeper than {self.limits.depth} folders")
        if any(
            unicodedata.category(c) in _INVISIBLE_CATEGORIES
            for c in _ALLOWED_INVISIBLE.sub("", text)
        ):
            self.reject("path", f"{_shorten(text)!r} holds characters that nobody sees")

    def _claim_name(self, path: str, claim: _Claim) -> None:
        key = fold_name(path)
        taken, by = self._claimed_names.get(key, (path, None))
        if taken != path:
            self.reject(
                "duplicate", f"{_shorten(taken)!r} and {_shorten(path)!r} are one name elsewhere"
            )
        if by is None or (by is _Claim.IMPLIED_FOLDER and claim is _Claim.FOLDER):
            self._claimed_names[key] = (path, claim)
        elif by is _Claim.FILE or claim is not _Claim.IMPLIED_FOLDER:
            self.reject("duplicate", f"{_shorten(path)!r} is there twice")


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_NAME else f"{text[:_MAX_SHOWN_NAME]}…"


def _build_bundles(extraction: ArchiveExtraction) -> tuple[Bundle, ...]:
    kept = {
        path: file for path, file in sorted(extraction.files.items()) if not is_macos_metadata(path)
    }
    wanted = {
        path: file for path, file in kept.items() if find_version_control_folder(path) is None
    }
    roots = set(find_visible_skills(wanted, _find_wrapper_folder(wanted)))
    if not roots:
        extraction.reject("no_skill", f"No {SKILL_MD} found")
    bundled: dict[str, dict[str, SkillFile]] = {root: {} for root in sorted(roots)}
    for path, file in wanted.items():
        root = find_enclosing_folder(path, roots)
        if root is not None:
            inside = _path_in_skill(extraction, path, root)
            bundled[root][inside.text] = SkillFile(
                inside, len(file.data), file.executable, file.read
            )
    findings = _version_control_findings(kept, roots)
    own = _bundle_name(extraction.name)
    return tuple(
        Bundle(root or own, files, tuple(findings.get(root, ())), root)
        for root, files in bundled.items()
    )


def _find_wrapper_folder(paths: Iterable[str]) -> str:
    """The folder around everything, as in archives that GitHub makes of a repository."""
    tops = {path.partition("/")[0] if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""


def is_macos_metadata(path: str) -> bool:
    """Whether it is what macOS adds to archives."""
    return any(part.startswith("._") or part.lower() in _MACOS_NAMES for part in path.split("/"))


def find_version_control_folder(path: str) -> str | None:
    """The folder of version control that the file lies in, if it does."""
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        if fold_name(part) in VERSION_CONTROL_FOLDERS:
            return "/".join(parts[:count])
    return None


def _path_in_skill(extraction: ArchiveExtraction, path: str, root: str) -> RelativePath:
    try:
        return RelativePath.parse(path[len(root) + 1 :] if root else path)
    except UnsafePath as error:  # a name may be harmless only with a folder before it
        extraction.reject("path", f"{_shorten(path)!r}: {error.reason}")


def _version_control_findings(paths: Iterable[str], roots: set[str]) -> Mapping[str, list[Finding]]:
    message = "left out of the skill's files: it belongs to version control"
    found: dict[str, list[Finding]] = {}
    for place in dict.fromkeys(find_version_control_folder(path) for path in paths):
        root = None if place is None else find_enclosing_folder(place, roots)
        if place is not None and root is not None:
            inside = place[len(root) + 1 :] if root else place
            found.setdefault(root, []).append(Finding(Code.FILE_LEFT_OUT, message, path=inside))
    return found


def _bundle_name(name: str) -> str:
    """The archive's name without its ending, if a folder can be called so."""
    stem = _EXTENSIONS.sub("", name)
    try:
        return RelativePath.parse(stem).text
    except UnsafePath:
        return _DEFAULT_NAME
