"""Links from the body to the skill's own files: which of them lead nowhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import (
    MissingFrontmatter,
    count_line_breaks,
    decode_text,
    find_frontmatter,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# Possessive quantifiers, and no part that can reach over the next "](": linear on any line.
_INLINE = re.compile(r"\]\([ \t]*+(?:<([^<>]*+)>|([^\s()<>]++(?:\([^\s()<>]*+\)[^\s()<>]*+)*+))")
_DEFINITION = re.compile(r" {0,3}+\[[^\[\]]++\]:[ \t]*+(?:<([^<>]*+)>|(\S++))")
_FENCE = re.compile(r" {0,3}+(`{3,}+|~{3,}+)(.*+)")
_TICKS = re.compile("`++")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_PLACEHOLDER = re.compile(r"[{}<>$*|]|\.\.\.|…")


class FileReference(NamedTuple):
    """A relative link in a body: the path it names, and its line (counted from 1)."""

    path: str
    line: int


def find_references(body: str) -> Iterator[FileReference]:
    """The relative links and images of a Markdown text, outside of code."""
    fence = ""
    for number, line in enumerate(body.split("\n"), start=1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        elif "](" in line or "]:" in line:
            for target in _find_link_targets(_remove_code_spans(line)):
                if (path := _to_relative_path(target)) is not None:
                    yield FileReference(path, number)


def check_references(data: bytes, files: Collection[str]) -> Iterator[Finding]:
    """Links in the body of a whole SKILL.md that name none of `files`, each target once."""
    block = find_frontmatter(data)
    if isinstance(block, MissingFrontmatter):
        return
    lines_before = count_line_breaks(data, 0, block.body_start)
    folders = {path[:at] for path in files for at in _find_slashes(path)}
    reported = set()
    for path, line in find_references(decode_text(data[block.body_start :])):
        inside = _resolve(path)
        if inside in reported or inside == "" or inside in files or inside in folders:
            continue
        reported.add(inside)
        yield _build_missing_finding(path, line + lines_before, is_inside=inside is not None)


def _build_missing_finding(path: str, line: int, *, is_inside: bool) -> Finding:
    where = "is not in the skill" if is_inside else "lies outside the skill"
    return Finding(
        Code.REFERENCE_MISSING,
        f"the body links to {path!r}, which {where}",
        line,
        "add the file, or mend the link",
    )


def _find_link_targets(line: str) -> Iterator[str]:
    for found in _INLINE.finditer(line):
        yield found[1] or found[2] or ""
    definition = _DEFINITION.match(line)
    if definition is not None:
        yield definition[1] or definition[2] or ""


def _remove_code_spans(line: str) -> str:
    """The line with its code spans taken out; a span ends at the next run of as many backticks."""
    runs = [match.span() for match in _TICKS.finditer(line)]
    if not runs:
        return line
    following: dict[int, int] = {}
    closing: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        start, end = runs[index]
        closing[index] = following.get(end - start)
        following[end - start] = index
    kept, at, index = [], 0, 0
    while index < len(runs):
        close = closing[index]
        if close is not None:
            kept.append(line[at : runs[index][0]])
            at = runs[close][1]
            index = close
        index += 1
    return "".join([*kept, line[at:]])


def _to_relative_path(target: str) -> str | None:
    """The file that a target names, or `None` for addresses, anchors and placeholders."""
    path = target.partition("#")[0].partition("?")[0]
    if path.startswith(("/", "\\", "~")) or _SCHEME.match(path) or _PLACEHOLDER.search(path):
        return None
    # "[text](url)" explains Markdown; a file's name has a dot or a folder before it.
    if "/" not in path and "." not in path:
        return None
    return _percent_decode(path)


def _percent_decode(path: str) -> str:
    if "%" not in path:
        return path
    raw = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), path.encode().decode("latin-1"))
    return raw.encode("latin-1").decode("utf-8", "replace")


def _resolve(path: str) -> str | None:
    """The path without "." and ".."; `None` if it leaves the skill."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _find_slashes(path: str) -> Iterator[int]:
    at = path.find("/")
    while at >= 0:
        yield at
        at = path.find("/", at + 1)
