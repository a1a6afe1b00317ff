"""Links in the body to files of the skill, and the check for broken ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from skillhall._internal.skill.bundle import parent_folders
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import (
    MissingFrontmatter,
    count_line_breaks,
    decode_text,
    find_frontmatter,
)

# These patterns are linear: quantifiers are possessive, and no part matches across the next "](".
_INLINE = re.compile(r"\]\([ \t]*+(?:<([^<>]*+)>|([^\s()<>]++(?:\([^\s()<>]*+\)[^\s()<>]*+)*+))")
_DEFINITION = re.compile(r" {0,3}+\[[^\[\]]++\]:[ \t]*+(?:<([^<>]*+)>|(\S++))")
_FENCE = re.compile(r" {0,3}+(`{3,}+|~{3,}+)(.*+)")
_TICKS = re.compile("`++")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_PLACEHOLDER = re.compile(r"[{}<>$*|]|\.\.\.|…")


class FileReference(NamedTuple):
    """A relative link in a body: its path and 1-based line number."""

    path: str
    line: int


class ReferenceSpan(NamedTuple):
    """Where the path of a reference is written: a 0-based line, and columns in it."""

    path: str
    line: int
    start: int
    end: int


def find_references(body: str) -> Iterator[FileReference]:
    """Yield the relative links and images in Markdown text, except in code."""
    for index, line in iter_text_lines(body.split("\n")):
        if "](" in line or "]:" in line:
            for link in _match_links(_remove_code_spans(line)):
                if (path := _to_relative_path(link[1] or link[2] or "")) is not None:
                    yield FileReference(path, index + 1)


def locate_references(body: str) -> Iterator[ReferenceSpan]:
    """Yield the links of `find_references` with the columns of their paths."""
    for index, line in iter_text_lines(body.split("\n")):
        if "](" not in line and "]:" not in line:
            continue
        # Without its code spans, a line has the same links at other columns.
        wanted = {link[1] or link[2] or "" for link in _match_links(_remove_code_spans(line))}
        for link in _match_links(line):
            group = 1 if link[1] else 2
            target = link[group] or ""
            if target in wanted and (path := _to_relative_path(target)) is not None:
                start = link.start(group)
                end = start + len(target.partition("#")[0].partition("?")[0])
                yield ReferenceSpan(path, index, start, end)


def iter_text_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not in fenced code, with their 0-based numbers."""
    fence = ""
    for index, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        else:
            yield index, line


def _match_links(text: str) -> Iterator[re.Match[str]]:
    yield from _INLINE.finditer(text)
    if (definition := _DEFINITION.match(text)) is not None:
        yield definition


def check_references(data: bytes, files: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each link in a SKILL.md whose target is not in `files`."""
    # The first of these searches is the fastest by far, and no link is without the others.
    if b"]" not in data or (b"](" not in data and b"]:" not in data):
        return
    block = find_frontmatter(data)
    if isinstance(block, MissingFrontmatter):
        return
    lines_before = count_line_breaks(data, 0, block.body_start)
    folders = {folder for path in files for folder in parent_folders(path)}
    reported = set()
    for path, line in find_references(decode_text(data[block.body_start :])):
        target = resolve_reference(path)
        if target in reported or target == "" or target in files or target in folders:
            continue
        reported.add(target)
        where = "is outside the skill" if target is None else "is not in the skill"
        message = f"the body links to {path!r}, which {where}"
        hint = "add the file, or fix the link"
        yield Finding(Code.REFERENCE_MISSING, message, line + lines_before, hint)


def _remove_code_spans(line: str) -> str:
    """Remove code spans. A span ends at the next run of equally many backticks."""
    runs = [match.span() for match in _TICKS.finditer(line)]
    if not runs:
        return line
    following: dict[int, int] = {}
    closing: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        start, end = runs[index]
        closing[index] = following.get(end - start)
        following[end - start] = index
    parts, at, index = [], 0, 0
    while index < len(runs):
        close = closing[index]
        if close is not None:
            parts.append(line[at : runs[index][0]])
            at = runs[close][1]
            index = close
        index += 1
    return "".join([*parts, line[at:]])


def _to_relative_path(target: str) -> str | None:
    """Return the path of a link target; `None` if it is not a relative file path."""
    path = target.partition("#")[0].partition("?")[0]
    if path.startswith(("/", "\\", "~")) or _SCHEME.match(path) or _PLACEHOLDER.search(path):
        return None
    # "[text](url)" only shows Markdown syntax. A real path has a dot or a slash.
    if "/" not in path and "." not in path:
        return None
    if "%" not in path:
        return path
    raw = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), path.encode().decode("latin-1"))
    return raw.encode("latin-1").decode("utf-8", "replace")


def resolve_reference(path: str) -> str | None:
    """Return the path in the skill that a link leads to; `None` if it leaves the skill."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
