"""Bundles: the files of one folder, read on demand, and safe relative paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category, normalize

from skillhall._internal.skill.finding import Finding
from skillhall._internal.skill.frontmatter_locator import is_skill_md
from skillhall.errors import SkillFileNotFound, UnsafePath

MAX_PATH_LENGTH = 1024  # characters
# "git~1" is the short name of ".git" on Windows.
VERSION_CONTROL_FOLDERS = frozenset({".git", "git~1", ".hg", ".svn"})

# Windows reserves these names for devices, with any extension.
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in "123456789¹²³"}
)
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, order=True)
class RelativePath:
    """Relative path that cannot leave its folder; created only by its parse methods."""

    text: str

    @classmethod
    def parse(cls, text: str) -> RelativePath:
        """Parse and check a path. Raises: UnsafePath."""
        return _parse_path(text)

    @classmethod
    def parse_lenient(cls, text: str) -> RelativePath:
        """Parse a path with surrounding spaces, or with `//`, `.` or `..` inside.

        Raises: UnsafePath if `..` leaves the folder, even if the path returns to it.
        """
        stripped = text.strip()
        if stripped.startswith("/"):
            return cls.parse(stripped)
        parts: list[str] = []
        for part in stripped.split("/"):
            if part == ".." and not parts:
                raise UnsafePath(text, "it points outside its folder")
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return cls.parse("/".join(parts))

    @property
    def parts(self) -> tuple[str, ...]:
        """The segments between the slashes."""
        return tuple(self.text.split("/"))

    def __str__(self) -> str:
        """Return the path with forward slashes, on every system."""
        return self.text


@lru_cache(maxsize=1024)  # the files of many skills have the same few names
def _parse_path(text: str) -> RelativePath:
    reason = _find_path_error(text)
    if reason is not None:
        raise UnsafePath(text, reason)
    return RelativePath("/".join(part for part in text.split("/") if part != "."))


def _find_path_error(text: str) -> str | None:
    if not text or len(text) > MAX_PATH_LENGTH:
        return "it is empty" if not text else f"it has more than {MAX_PATH_LENGTH} characters"
    if _CONTROL_CHARACTERS.search(text) is not None:
        return "it contains control characters"
    parts = [part for part in text.split("/") if part != "."]
    if "\\" in text or ":" in text or text[0] == "/" or (parts and parts[0][:1] == "~"):
        return "it is not a plain relative path"
    if not parts or "" in parts:
        return "it does not name a file"
    if ".." in parts:
        return "it points outside its folder"
    return next((reason for part in parts if (reason := _find_part_error(part))), None)


def _find_part_error(part: str) -> str | None:
    if part.endswith((".", " ")):
        return f"{part!r} ends in a dot or space"
    if part.partition(".")[0].rstrip(" ").lower() in _DEVICES:
        return f"{part!r} is a reserved device name on Windows"
    return None


def fold_name(name: str) -> str:
    """Return a key that is equal for names that some file system treats as equal.

    Some systems ignore case, normalize Unicode, or drop format characters.
    """
    visible = "".join(c for c in normalize("NFKC", name) if category(c) != "Cf")
    return normalize("NFC", visible.casefold())


def parent_folders(path: str) -> Iterator[str]:
    """Yield the folders that contain a relative path, from the nearest one up."""
    while folder := path.rpartition("/")[0]:
        yield folder
        path = folder


def is_in_version_control_folder(path: str) -> bool:
    """Whether a relative path is inside a version control folder, on any system."""
    return any(map(is_version_control_name, path.split("/")))


def is_version_control_name(name: str) -> bool:
    """Whether some file system treats the name as that of a version control folder."""
    # Folding takes time, and few names can be folded to one of these.
    is_candidate = name.startswith(".") or "~" in name or not name.isascii()
    return is_candidate and fold_name(name) in VERSION_CONTROL_FOLDERS


class PathCollision(NamedTuple):
    """A path, as returned by `fold_name`, that collides with another, and the reason."""

    path: str
    reason: str


def find_collision(paths: Iterable[str]) -> PathCollision | None:
    """Return a path that collides with another one on some file system, or `None`."""
    unique: set[str] = set()
    for path in map(fold_name, paths):
        if path in unique:
            return PathCollision(path, "it occurs twice")
        unique.add(path)
    for path in sorted(unique):
        if any(folder in unique for folder in parent_folders(path)):
            return PathCollision(path, "one of its folders is also a file")
    return None


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 digest in hexadecimal."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL, which listings of unchanged skills do not need

    return hashlib.sha256(data).hexdigest()


def compute_digest(files: Iterable[tuple[str, int, str]]) -> str:
    """Compute the digest of a skill from the path, size and SHA-256 of each file."""
    lines = (f"{path}\0{size}\0sha256:{sha256}\n" for path, size, sha256 in sorted(files))
    return f"sha256:{sha256_hex(''.join(lines).encode())}"


def digest_files(files: Mapping[str, tuple[bytes, int]]) -> str:
    """Compute the digest of a skill from its files: content and mode by path."""
    return compute_digest((path, len(data), sha256_hex(data)) for path, (data, _) in files.items())


class SkillFile(NamedTuple):
    """One file of a bundle."""

    path: RelativePath
    size: int
    executable: bool
    read: Callable[[], bytes]
    stat_signature: tuple[int, int, int, int] | None = None  # of a file on disk

    def digest(self) -> str:
        """Return the SHA-256 of the content, in the format of the MCP skills extension."""
        return f"sha256:{sha256_hex(self.read())}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of a folder by path, in order, and the findings from listing them."""

    folder: str
    files: Mapping[str, SkillFile]
    findings: tuple[Finding, ...] = ()
    path: str | None = None  # in its source, if it differs from `folder`; "" is the root

    def get_file(self, path: RelativePath) -> SkillFile:
        """Return the file at `path`. Raises: SkillFileNotFound."""
        file = self.files.get(path.text)
        if file is None:
            raise SkillFileNotFound(path.text)
        return file

    def digest(self) -> str:
        """Compute one digest over the paths, sizes and contents of all files.

        Lock files, REST, MCP and approvals use it. Their bundles include hidden files.
        """
        return compute_digest(
            (path, len(data), sha256_hex(data))
            for path, file in self.files.items()
            for data in (file.read(),)
        )

    def resources(self) -> Iterator[SkillFile]:
        """Return all files except SKILL.md, ignoring case."""
        return (file for path, file in self.files.items() if not is_skill_md(path))
