"""Comparison of two versions of a skill, by file and by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.skill.line_diff import find_hunks, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.line_diff import Hunk

DiffLineKind: TypeAlias = Literal["same", "old", "new", "gap"]
FileChangeKind: TypeAlias = Literal["added", "removed", "changed"]

CONTEXT_LINES = 3  # unchanged lines shown around a change
MAX_DIFF_LINES = 600  # per file
MAX_TEXT_SIZE = 256 * 1024  # bytes; larger files are not compared by line


class DiffLine(NamedTuple):
    """Line of a diff with its line numbers. A gap replaces unchanged lines."""

    kind: DiffLineKind
    old: int | None
    new: int | None
    text: str


class FileChange(NamedTuple):
    """Change to one file; has no lines if the file is too large or not text."""

    path: str
    kind: FileChangeKind
    lines: tuple[DiffLine, ...] = ()
    is_truncated: bool = False


def compare_files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> tuple[FileChange, ...]:
    """Return the files that differ, SKILL.md first."""
    paths = sorted({*old, *new}, key=lambda path: (path.lower() != "skill.md", path))
    return tuple(
        _compare_file(p, old.get(p), new.get(p)) for p in paths if old.get(p) != new.get(p)
    )


def read_contents(bundle: Bundle) -> dict[str, bytes]:
    """Read the bytes of each file. Raises: errors from reading."""
    return {path: file.read() for path, file in bundle.files.items()}


def diff_texts(old: str, new: str) -> tuple[DiffLine, ...]:
    """Diff two texts with context lines.

    If that takes too long, all lines are returned as changed.
    """
    before, after = split_lines(old), split_lines(new)
    result = find_hunks(before, after)
    if result is None:
        return (*_changed_lines("old", before, 0), *_changed_lines("new", after, 0))
    return tuple(_build_diff_lines(before, after, result[0]))


def _compare_file(path: str, old: bytes | None, new: bytes | None) -> FileChange:
    kind: FileChangeKind = "added" if old is None else "removed" if new is None else "changed"
    contents = old or b"", new or b""
    if any(len(data) > MAX_TEXT_SIZE or b"\0" in data for data in contents):
        return FileChange(path, kind)
    try:
        lines = diff_texts(*(data.decode("utf-8") for data in contents))
    except UnicodeDecodeError:
        return FileChange(path, kind)
    return FileChange(path, kind, lines[:MAX_DIFF_LINES], len(lines) > MAX_DIFF_LINES)


def _build_diff_lines(
    before: Sequence[str], after: Sequence[str], hunks: Sequence[Hunk]
) -> Iterator[DiffLine]:
    position = 0  # in the old text
    for number, hunk in enumerate(hunks):
        lead = max(position, hunk.start - CONTEXT_LINES)
        if lead > position:
            yield DiffLine("gap", None, None, "")
        shift = hunk.new_start - hunk.start
        yield from _context_lines(before, range(lead, hunk.start), shift)
        yield from _changed_lines("old", before[hunk.start : hunk.end], hunk.start)
        yield from _changed_lines("new", after[hunk.new_start : hunk.new_end], hunk.new_start)
        following = hunks[number + 1].start if number + 1 < len(hunks) else len(before)
        position = min(hunk.end + CONTEXT_LINES, following)
        yield from _context_lines(before, range(hunk.end, position), hunk.new_end - hunk.end)
    if hunks and position < len(before):
        yield DiffLine("gap", None, None, "")


def _context_lines(lines: Sequence[str], indexes: range, shift: int) -> Iterator[DiffLine]:
    for at in indexes:
        yield DiffLine("same", at + 1, at + 1 + shift, lines[at].rstrip("\r\n"))


def _changed_lines(
    kind: Literal["old", "new"], lines: Sequence[str], start: int
) -> Iterator[DiffLine]:
    for number, line in enumerate(lines, start + 1):
        old, new = (number, None) if kind == "old" else (None, number)
        yield DiffLine(kind, old, new, line.rstrip("\r\n"))
