"""A bundle: all files of one folder that may be a skill. Bytes come on demand."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category, normalize

from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall.errors import SkillFileNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from skillhall._internal.skill.finding import Finding

MAX_PATH_LENGTH = 1024  # characters
VERSION_CONTROL_FOLDERS = frozenset(
    {".git", "git~1", ".hg", ".svn"}
)  # Windows knows .git by both names

# Windows keeps these for devices, with any extension.
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in "123456789¹²³"}
)


@dataclass(frozen=True, slots=True, order=True)
class RelativePath:
    """A path that stays below the folder it is relative to. `parse` is the only way to make one."""

    text: str

    @classmethod
    def parse(cls, text: str) -> RelativePath:
        """The checked path. Raises: UnsafePath."""
        reason = _find_path_error(text)
        if reason is not None:
            raise UnsafePath(text, reason)
        return cls("/".join(part for part in text.split("/") if part != "."))

    @classmethod
    def parse_lenient(cls, text: str) -> RelativePath:
        """The path that a harmless spelling means: blanks around it, `//`, `.` or `..` in it.

        Raises: UnsafePath, also if `..` leaves the folder and comes back.
        """
        spelled = text.strip()
        if spelled.startswith("/"):
            return cls.parse(spelled)
        parts: list[str] = []
        for part in spelled.split("/"):
            if part == ".." and not parts:
                raise UnsafePath(text, "it leaves its folder")
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return cls.parse("/".join(parts))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names between the slashes."""
        return tuple(self.text.split("/"))

    def __str__(self) -> str:
        """The text with forward slashes, on every system."""
        return self.text


def _find_path_error(text: str) -> str | None:
    if not text or len(text) > MAX_PATH_LENGTH:
        return "it is empty" if not text else f"it has more than {MAX_PATH_LENGTH} characters"
    if any(ord(c) < 0x20 or 0xD800 <= ord(c) <= 0xDFFF or ord(c) == 0x7F for c in text):  # noqa: PLR2004
        return "it holds control characters"
    parts = [part for part in text.split("/") if part != "."]
    if "\\" in text or ":" in text or text[0] == "/" or _is_home(parts):
        return "it is not a plain relative path"
    if not parts or "" in parts:
        return "it names no file"
    if ".." in parts:
        return "it leaves its folder"
    return next((reason for part in parts if (reason := _find_part_error(part))), None)


def _is_home(parts: list[str]) -> bool:
    return bool(parts) and parts[0].startswith("~")


def _find_part_error(part: str) -> str | None:
    if part.endswith((".", " ")):
        return f"{part!r} ends in a dot or space"
    if part.partition(".")[0].rstrip(" ").lower() in _DEVICES:
        return f"{part!r} is a device name"
    return None


def fold_name(name: str) -> str:
    """What equal names have in common on systems that know no case, or drop unseen characters."""
    seen = "".join(c for c in normalize("NFKC", name) if category(c) != "Cf")
    return normalize("NFC", seen.casefold())


def is_in_version_control_folder(path: str) -> bool:
    """Whether a relative path leads into a folder of version control, on any system."""
    return any(fold_name(part) in VERSION_CONTROL_FOLDERS for part in path.split("/"))


class PathCollision(NamedTuple):
    """A path that stands in the way of another, and how."""

    path: str
    reason: str


def find_collision(paths: Iterable[str]) -> PathCollision | None:
    """Paths that are one path on some system, or a file where a folder must be."""
    seen: set[str] = set()
    for path in map(fold_name, paths):
        if path in seen:
            return PathCollision(path, "it stands there twice")
        seen.add(path)
    for path in sorted(seen):
        parts = path.split("/")
        if any("/".join(parts[:at]) in seen for at in range(1, len(parts))):
            return PathCollision(path, "a file stands where its folder must be")
    return None


def sha256_hex(data: bytes) -> str:
    """The digest that bytes are known by, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One file of a bundle."""

    path: RelativePath
    size: int
    executable: bool
    read: Callable[[], bytes]
    stat_signature: tuple[int, int, int, int] | None = None  # of its stat, where it has one

    def digest(self) -> str:
        """The SHA-256 of its bytes, written as the MCP skills extension does."""
        return f"sha256:{sha256_hex(self.read())}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of a folder by path, in order, and what was noticed while listing them."""

    folder: str
    files: Mapping[str, SkillFile]
    findings: tuple[Finding, ...] = ()
    path: str | None = None  # in its source, where it is called otherwise; "" is all of it

    def get_file(self, path: RelativePath) -> SkillFile:
        """The file at `path`. Raises: SkillFileNotFound."""
        found = self.files.get(path.text)
        if found is None:
            raise SkillFileNotFound(path.text)
        return found

    def resources(self) -> Iterator[SkillFile]:
        """Every file but the SKILL.md itself, in whatever case it is written."""
        return (file for path, file in self.files.items() if not is_skill_md(path))
