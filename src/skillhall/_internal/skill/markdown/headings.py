"""Headings of Markdown text, and the sections below them with their tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from skillhall._internal.skill.markdown.broken_links import iter_text_lines
from skillhall._internal.skill.token_count import estimate_tokens

_HEADING = re.compile(r" {0,3}+(#{1,6}+)(?:[ \t]++(.*))?")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_MARKUP = re.compile(r"[#*_`\s]+")


class BodySection(NamedTuple):
    """A heading and the text up to the next heading of its level or a higher one."""

    title: str
    level: int
    line: int  # of the heading, from 0
    end_line: int  # the first line after the section
    tokens: int


def list_sections(body: str) -> list[BodySection]:
    """Return the sections of Markdown text in order; nested ones follow the outer one."""
    lines = body.split("\n")
    headings = [
        (index, len(match[1]), _CLOSING.sub("", (match[2] or "").rstrip()))
        for index, line in iter_text_lines(lines)
        if "#" in line and (match := _HEADING.fullmatch(line))
    ]
    sections: list[BodySection] = []
    ends = [len(lines)] * 7  # by level: where a section of this level that starts here would end
    starts = _measure_lines(lines)
    for index, level, title in reversed(headings):
        end = ends[level]
        ends[level:] = [index] * (7 - level)
        text = body[starts[index] : starts[end]]
        sections.append(BodySection(title.strip(), level, index, end, estimate_tokens(text)))
    return sections[::-1]


def find_section_texts(body: str, title: str) -> list[str]:
    """Return the text of each section with this title, its heading included.

    Case, white space and characters that format text make no difference. A section inside another
    one with the same title is not repeated.
    """
    lines, texts, end = body.split("\n"), [], 0
    for one in list_sections(body):
        if one.line >= end and _fold_title(one.title) == _fold_title(title):
            texts.append("\n".join(lines[one.line : one.end_line]).rstrip())
            end = one.end_line
    return texts


def _fold_title(title: str) -> str:
    return _MARKUP.sub(" ", title).strip().casefold()


def _measure_lines(lines: list[str]) -> list[int]:
    """Return the offset of each line, and the end."""
    offsets, at = [], 0
    for line in lines:
        offsets.append(at)
        at += len(line) + 1
    return [*offsets, at]
