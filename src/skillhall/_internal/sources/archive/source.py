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
    VERSION_CONTROL,
    Bundle,
    RelativePath,
    SkillFile,
    folded,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.invisible import FLAG
from skillhall._internal.sources.archive.tar_format import is_tar, read_tar
from skillhall._internal.sources.archive.zip_format import is_zip, read_zip
from skillhall._internal.sources.folder.bundle_reader import MAX_FILE
from skillhall._internal.sources.repo_layout import folder_above, shown_skills
from skillhall.errors import ArchiveRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall.errors import ArchiveReason

_MIB = 1024 * 1024
_STEP = 64 * 1024  # bytes that go into or come out of zlib at once
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's, with 16 added for the header of gzip
_ENDINGS = re.compile(r"\.(?:(?P<zip>zip)|(?P<tar>tar\.gz|tgz|tar)|skill)$", re.IGNORECASE)
_NO_NAME = "skill"  # for an archive whose own name cannot be a folder's
_SHOWN = 80  # characters of a name in a message

# Joiners and flags: ignored by some file systems when they compare names, and needed by some
# scripts and emoji.
_EMOJI = re.compile(f"[\u200c\u200d]|{FLAG}")
# Controls, marks that turn or hide text, lone surrogates, line and paragraph separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MACOS = frozenset({"__macosx", ".ds_store"})
# Windows knows `.git` also by its short name.


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an archive may hold. PyPI allows 50:1 above 64 MiB, Go modules 500 MiB in all."""

    entries: int = 2_000  # files and folders, as many as a skill may have files
    total: int = 100 * _MIB  # bytes, unpacked
    file: int = MAX_FILE  # bytes of one file, unpacked
    ratio: int = 100  # unpacked to packed; text rarely passes 20
    ratio_from: int = _MIB  # bytes, unpacked; small archives of blank files are no bombs
    depth: int = 32  # folders above a file
    path: int = 240  # bytes; Windows takes 260 characters, with the folder it goes to


LIMITS = Limits()
# A repository's archive is read past, not kept; only single files of it are.
REPOSITORY = Limits(entries=200_000, total=2048 * _MIB, ratio_from=64 * _MIB)


def read_archive(data: bytes, name: str, limits: Limits = LIMITS) -> tuple[Bundle, ...]:
    """The skills in a zip, tar.gz or tar file called `name`, in order of their folders.

    The folder of a bundle is its path in the archive; at the top, the archive's own name.
    Raises: ArchiveRejected, TooLarge.
    """
    name = re.split(r"[/\\]", name)[-1]
    intake = Intake(name, len(data), limits)
    ending = _ENDINGS.search(name)
    kind = ending.lastgroup if ending else None
    if data.startswith(_GZIP) or is_tar(data):
        if kind == "zip":
            intake.refuse("confusion", "it is called a zip file, but is a tar file")
        gzip = data.startswith(_GZIP)
        read_tar(
            intake.inflated(memoryview(data), _GZIP_WINDOW) if gzip else intake.plain(data), intake
        )
    elif is_zip(data):
        if kind == "tar":
            intake.refuse("confusion", "it is called a tar file, but is a zip file")
        read_zip(data, intake)
    else:
        intake.refuse("malformed", "it is neither a zip nor a tar file")
    return _bundles(intake)


def read_files(
    files: Sequence[tuple[str, bytes]], name: str, limits: Limits = LIMITS
) -> tuple[Bundle, ...]:
    """The skills among loose files with their paths, as in an archive that is called `name`.

    Raises: ArchiveRejected, TooLarge.
    """
    intake = Intake(name, sum(len(data) for _, data in files), limits)
    for path, data in files:
        intake.count()
        checked = intake.enter(path.encode("utf-8", "surrogatepass"), is_folder=False)
        intake.weigh(checked, len(data))
        intake.spend(len(data))
        intake.keep(checked, data, executable=False)
    return _bundles(intake)


class _Claim(Enum):
    """Why a name is taken."""

    FILE = "file"
    FOLDER = "folder"
    ABOVE = "a folder above another entry, not listed yet"


@dataclass(frozen=True, slots=True)
class Stored:
    """One file of an archive."""

    data: bytes
    executable: bool

    def read(self) -> bytes:
        """Its bytes."""
        return self.data


@dataclass(slots=True)
class Intake:
    """What was taken out of one archive, and the rules for taking more."""

    name: str
    packed: int  # bytes
    limits: Limits
    files: dict[str, Stored] = field(default_factory=dict)
    _entries: int = 0
    _unpacked: int = 0
    _claims: dict[str, tuple[str, _Claim]] = field(default_factory=dict)

    def refuse(self, reason: ArchiveReason, detail: str) -> NoReturn:
        """Give the archive up. Raises: ArchiveRejected."""
        raise ArchiveRejected(self.name, reason, detail)

    def count(self, entries: int = 1) -> None:
        """Note that more entries are there. Raises: TooLarge."""
        self._entries += entries
        if self._entries > self.limits.entries:
            raise TooLarge(self.name, self.limits.entries, "entries")

    def spend(self, size: int) -> None:
        """Note that bytes were unpacked. Raises: TooLarge."""
        self._unpacked += size
        self.foresee(self._unpacked)

    def foresee(self, total: int) -> None:
        """Refuse a total of bytes beyond the limits. Raises: TooLarge."""
        if total > self.limits.total:
            raise TooLarge(self.name, self.limits.total)
        if total > self.limits.ratio_from and total > self.packed * self.limits.ratio:
            raise TooLarge(self.name, self.limits.ratio, "times its packed size")

    def enter(self, raw: bytes, *, is_folder: bool) -> str:
        """The checked path of an entry; from here on its name is taken. Raises: ArchiveRejected."""
        path = self._path(raw, is_folder=is_folder)
        above = list(accumulate(path.split("/"), "{}/{}".format))[:-1]
        for folder in above:
            self._claim(folder, _Claim.ABOVE)
        self._claim(path, _Claim.FOLDER if is_folder else _Claim.FILE)
        return path

    def gather(self, path: str, chunks: Iterable[bytes]) -> bytes:
        """All bytes of one file. Raises: TooLarge."""
        size = 0
        gathered = []
        for chunk in chunks:
            size += len(chunk)
            self.weigh(path, size)
            gathered.append(chunk)
        return b"".join(gathered)

    def keep(self, path: str, data: bytes, *, executable: bool) -> None:
        """Take a file in."""
        self.files[path] = Stored(data, executable)

    def weigh(self, path: str, size: int) -> None:
        """Refuse a file beyond the limit. Raises: TooLarge."""
        if size > self.limits.file:
            raise TooLarge(_cut(path), self.limits.file)

    def inflated(self, packed: memoryview, window: int) -> Iterator[bytes]:
        """The bytes of one deflate stream, counted. Raises: ArchiveRejected, TooLarge."""
        steps = (packed[start : start + _STEP] for start in range(0, len(packed), _STEP))
        return self._inflated(steps, window)

    def arriving(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same of a gzip stream whose size is known when it ends."""
        return self._inflated(self._weighed(chunks), _GZIP_WINDOW)

    def _weighed(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.packed += len(chunk)
            yield chunk

    def _inflated(
        self, packed: Iterator[bytes] | Iterator[memoryview], window: int
    ) -> Iterator[bytes]:
        stream = zlib.decompressobj(window)
        for piece in packed:
            pending: bytes | memoryview = piece
            while chunk := self._inflate(stream, pending):
                self.spend(len(chunk))
                yield chunk
                pending = stream.unconsumed_tail
            if stream.eof:
                if stream.unused_data or next(packed, b""):
                    self.refuse("confusion", "there is more after the end of compressed data")
                return
        self.refuse("malformed", "compressed data ends too early")

    def plain(self, data: bytes | memoryview) -> Iterator[bytes]:
        """Bytes that are not compressed, counted. Raises: TooLarge."""
        for start in range(0, len(data), _STEP):
            chunk = bytes(data[start : start + _STEP])
            self.spend(len(chunk))
            yield chunk

    def _inflate(self, stream: zlib._Decompress, pending: bytes | memoryview) -> bytes:
        try:
            return stream.decompress(pending, _STEP)
        except zlib.error:
            self.refuse("malformed", "compressed data is damaged")

    def _path(self, raw: bytes, *, is_folder: bool) -> str:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            self.refuse("path", f"the name {_cut(ascii(raw))} is not UTF-8")
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
            self.refuse("path", f"{_cut(text)!r}: {error.reason}")
        if text != shortest:
            self.refuse("path", f"{_cut(text)!r} is not in its shortest form")
        if len(text.encode()) > self.limits.path:
            self.refuse("path", f"{_cut(text)!r} has more than {self.limits.path} bytes")
        if text.count("/") > self.limits.depth:
            self.refuse("path", f"{_cut(text)!r} lies deeper than {self.limits.depth} folders")
        if any(unicodedata.category(c) in _UNSEEN for c in _EMOJI.sub("", text)):
            self.refuse("path", f"{_cut(text)!r} holds characters that nobody sees")

    def _claim(self, path: str, claim: _Claim) -> None:
        key = folded(path)
        taken, by = self._claims.get(key, (path, None))
        if taken != path:
            self.refuse("duplicate", f"{_cut(taken)!r} and {_cut(path)!r} are one name elsewhere")
        if by is None or (by is _Claim.ABOVE and claim is _Claim.FOLDER):
            self._claims[key] = (path, claim)
        elif by is _Claim.FILE or claim is not _Claim.ABOVE:
            self.refuse("duplicate", f"{_cut(path)!r} is there twice")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _bundles(intake: Intake) -> tuple[Bundle, ...]:
    kept = {path: file for path, file in sorted(intake.files.items()) if not is_litter(path)}
    wanted = {path: file for path, file in kept.items() if version_control_of(path) is None}
    roots = set(shown_skills(wanted, _wrapper(wanted)))
    if not roots:
        intake.refuse("no_skill", f"No {SKILL_MD} found")
    bundled: dict[str, dict[str, SkillFile]] = {root: {} for root in sorted(roots)}
    for path, file in wanted.items():
        root = folder_above(path, roots)
        if root is not None:
            inside = _inside(intake, path, root)
            bundled[root][inside.text] = SkillFile(
                inside, len(file.data), file.executable, file.read
            )
    findings = _findings(kept, roots)
    own = _own_name(intake.name)
    return tuple(
        Bundle(root or own, files, tuple(findings.get(root, ())), root)
        for root, files in bundled.items()
    )


def _wrapper(paths: Iterable[str]) -> str:
    """The folder around everything, as in archives that GitHub makes of a repository."""
    tops = {path.partition("/")[0] if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""


def is_litter(path: str) -> bool:
    """Whether it is what macOS adds to archives."""
    return any(part.startswith("._") or part.lower() in _MACOS for part in path.split("/"))


def version_control_of(path: str) -> str | None:
    """The folder of version control that the file lies in, if it does."""
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        if folded(part) in VERSION_CONTROL:
            return "/".join(parts[:count])
    return None


def _inside(intake: Intake, path: str, root: str) -> RelativePath:
    try:
        return RelativePath.parse(path[len(root) + 1 :] if root else path)
    except UnsafePath as error:  # a name may be harmless only with a folder before it
        intake.refuse("path", f"{_cut(path)!r}: {error.reason}")


def _findings(paths: Iterable[str], roots: set[str]) -> Mapping[str, list[Finding]]:
    message = "left out of the skill's files: it belongs to version control"
    found: dict[str, list[Finding]] = {}
    for place in dict.fromkeys(version_control_of(path) for path in paths):
        root = None if place is None else folder_above(place, roots)
        if place is not None and root is not None:
            inside = place[len(root) + 1 :] if root else place
            found.setdefault(root, []).append(Finding(Code.FILE_LEFT_OUT, message, path=inside))
    return found


def _own_name(name: str) -> str:
    """The archive's name without its ending, if a folder can be called so."""
    stem = _ENDINGS.sub("", name)
    try:
        return RelativePath.parse(stem).text
    except UnsafePath:
        return _NO_NAME
