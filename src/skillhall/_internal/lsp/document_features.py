"""Editor features of an open SKILL.md: completion, hover, links, outline, tokens."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from lsprotocol.types import (
    CodeLens,
    Command,
    CompletionItem,
    CompletionItemKind,
    DocumentSymbol,
    Hover,
    MarkupContent,
    MarkupKind,
    Position,
    Range,
    SymbolKind,
    TextEdit,
)

from skillhall._internal.authoring.open_document import OpenDocument
from skillhall._internal.authoring.portability import judge_skill_md
from skillhall._internal.authoring.skill_schema import FieldDescription, describe_fields
from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.lsp.positions import TextLines
from skillhall._internal.policy.portability.client_rules import (
    ClientVerdict,
    Outcome,
    count_outcomes,
)
from skillhall._internal.skill.frontmatter_locator import (
    FrontmatterBlock,
    find_frontmatter,
    normalize_newlines,
)
from skillhall._internal.skill.lossless_editor import locate_frontmatter_fields
from skillhall._internal.skill.markdown.broken_links import (
    ReferenceSpan,
    locate_references,
    resolve_reference,
)
from skillhall._internal.skill.markdown.headings import BodySection, list_sections
from skillhall._internal.skill.token_count import estimate_tokens

_KEY_START = re.compile(r"[A-Za-z-]*")
_KEY_VALUE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ \t]*:[ \t]*(.*)")
_LINK_START = re.compile(r"\]\(<?([^()<>\s]*)$")
_WORD_START = re.compile(r"[^\s,\[\]]*$")
_TEXT_START = re.compile(r"[^,:\"']*$")
_LISTED_FIELDS = ("name", "description")


class LinkedFile(NamedTuple):
    """A file of the skill, and the range of a link to it."""

    path: str
    range: Range


class _FieldPosition(NamedTuple):
    key: str
    line: int
    end_line: int
    value: str


@dataclass(frozen=True)
class DocumentFeatures:
    """The features of one version of a document."""

    document: OpenDocument
    lines: TextLines

    @cached_property
    def _body_line(self) -> int:
        """The first line of the body; the line count if the frontmatter is not closed."""
        data = self.document.data
        block = find_frontmatter(data)
        if isinstance(block, FrontmatterBlock):
            before = data[: block.body_start].decode("utf-8", "replace")
            return self.lines.position_at(len(before)).line
        is_open = self.lines.line(0).rstrip() == "---"
        return len(self.lines.starts) if is_open else 0

    @cached_property
    def _body(self) -> str:
        starts = self.lines.starts
        start = starts[self._body_line] if self._body_line < len(starts) else len(self.lines.text)
        return normalize_newlines(self.lines.text[start:])

    @cached_property
    def _fields(self) -> list[_FieldPosition]:
        text = self.lines.text
        found = []
        for key, span in locate_frontmatter_fields(self.document.data).items():
            start, end = (
                self.lines.position_at(span.key_start),
                self.lines.position_at(span.value_end),
            )
            value = text[span.value_start : span.value_end].strip()
            found.append(_FieldPosition(key, start.line, end.line, value))
        return found

    @cached_property
    def _references(self) -> list[ReferenceSpan]:
        first = self._body_line
        return [span._replace(line=span.line + first) for span in locate_references(self._body)]

    @cached_property
    def _sections(self) -> list[BodySection]:
        first = self._body_line
        return [
            one._replace(line=one.line + first, end_line=one.end_line + first)
            for one in list_sections(self._body)
        ]

    def find_reference(self, position: Position) -> ReferenceSpan | None:
        """Return the link at a position."""
        column = self.lines.column(position)
        for one in self._references:
            if one.line == position.line and one.start <= column <= one.end:
                return one
        return None

    def find_file(self, position: Position) -> LinkedFile | None:
        """Return the file of the skill that the link at a position leads to."""
        reference = self.find_reference(position)
        target = None if reference is None else resolve_reference(reference.path)
        if reference is None or target is None or target not in self.document.bundle.files:
            return None
        return LinkedFile(target, self.lines.span(reference.line, reference.start, reference.end))

    def complete(self, position: Position) -> list[CompletionItem]:
        """Return the completions at a position."""
        before = self.lines.line(position.line)[: self.lines.column(position)]
        if position.line >= self._body_line:
            return [*self._complete_file(before, position)]
        if position.line > 0 and _KEY_START.fullmatch(before):
            return [*self._complete_key(before, position)]
        if (match := _KEY_VALUE.fullmatch(before)) is not None:
            return [*self._complete_value(match[1], match[2], position)]
        if before.strip().startswith("- ") and self._field_above(position.line) == "allowed-tools":
            return [*self._complete_value("allowed-tools", before.strip()[2:], position)]
        return []

    def _field_above(self, line: int) -> str:
        for number in range(line - 1, 0, -1):
            if (match := _KEY_VALUE.match(self.lines.line(number))) is not None:
                return match[1]
        return ""

    def _complete_key(self, prefix: str, position: Position) -> Iterator[CompletionItem]:
        others = [number for number in range(1, self._body_line) if number != position.line]
        matches = (_KEY_VALUE.match(self.lines.line(number)) for number in others)
        used = {match[1] for match in matches if match is not None}
        for number, field in enumerate(describe_fields().values()):
            if field.name not in used:
                label = field.name
                item = self._build_item(label, f"{label}: ", prefix, position)
                item.kind = CompletionItemKind.Property
                item.detail = "required" if field.is_required else "optional"
                item.documentation = _to_markup(field.description)
                item.sort_text = f"{number:02}"
                yield item

    def _complete_value(self, key: str, value: str, position: Position) -> Iterator[CompletionItem]:
        field = describe_fields().get(key)
        values = dict.fromkeys(field.values if field else (), "")
        pattern = _WORD_START
        if key == "compatibility":
            values = {agent.label: f"the coding agent {agent.id}" for agent in AGENTS.values()}
            pattern = _TEXT_START
        match = pattern.search(value)
        prefix = match[0].lstrip() if match else ""
        # In a sentence, the last word starts the name of an agent.
        if key == "compatibility":
            prefix = prefix.rpartition(" ")[2]
        for text, detail in values.items():
            item = self._build_item(text, text, prefix, position)
            item.kind = CompletionItemKind.Value
            item.detail = detail or None
            yield item

    def _complete_file(self, before: str, position: Position) -> Iterator[CompletionItem]:
        match = _LINK_START.search(before)
        for path in self.document.files if match else ():
            item = self._build_item(path, path, match[1] if match else "", position)
            item.kind = CompletionItemKind.File
            yield item

    def _build_item(self, label: str, text: str, prefix: str, position: Position) -> CompletionItem:
        column = self.lines.column(position)
        start = self.lines.position(position.line, column - len(prefix))
        return CompletionItem(
            label=label, filter_text=label, text_edit=TextEdit(Range(start, position), text)
        )

    def hover(self, position: Position) -> Hover | None:
        """Return a description of the item at a position, with its tokens."""
        if (reference := self.find_reference(position)) is not None:
            where = self.lines.span(reference.line, reference.start, reference.end)
            return Hover(_to_markup(self._describe_reference(reference)), where)
        for field in self._fields:
            if field.line <= position.line <= field.end_line:
                description = describe_fields().get(field.key)
                return Hover(_to_markup(_describe_field(field, description)))
        for section in self._sections:
            if section.line == position.line:
                tokens = f"about {_format_tokens(section.tokens)} when the skill is loaded"
                title = _escape(section.title)
                return Hover(_to_markup(f"**{title}**: {tokens}, including its subsections."))
        return None

    def _describe_reference(self, reference: ReferenceSpan) -> str:
        target = resolve_reference(reference.path)
        if target is None:
            return "This file is outside the skill: agents cannot read it."
        if target not in self.document.bundle.files:
            return f"`{_escape(target)}` is not in the skill."
        size = self.document.bundle.files[target].size
        tokens = self.document.count_file_tokens(target)
        cost = "not text, or large"
        if tokens is not None:
            cost = f"about {_format_tokens(tokens)} when an agent reads it"
        return f"`{_escape(target)}`: {size} bytes, {cost}"

    def list_symbols(self) -> list[DocumentSymbol]:
        """Return the outline: the fields, then the sections."""
        symbols: list[DocumentSymbol] = []
        if self._fields:
            children = [
                self._build_symbol(one.key, one.value, SymbolKind.Field, one.line, one.end_line)
                for one in self._fields
            ]
            last = max(0, self._body_line - 1)
            symbol = self._build_symbol("frontmatter", "", SymbolKind.Namespace, 0, last)
            symbol.children = children
            symbols.append(symbol)
        open_sections: list[tuple[int, DocumentSymbol]] = []
        for one in self._sections:
            detail = _format_tokens(one.tokens)
            kind = SymbolKind.String
            last = max(one.line, one.end_line - 1)
            symbol = self._build_symbol(one.title or "(untitled)", detail, kind, one.line, last)
            while open_sections and open_sections[-1][0] >= one.level:
                open_sections.pop()
            siblings = open_sections[-1][1].children if open_sections else symbols
            if isinstance(siblings, list):
                siblings.append(symbol)
            symbol.children = []
            open_sections.append((one.level, symbol))
        return symbols

    def _build_symbol(
        self, name: str, detail: str, kind: SymbolKind, line: int, last: int
    ) -> DocumentSymbol:
        end = self.lines.position(last, len(self.lines.line(last)))
        whole = Range(Position(line, 0), end)
        return DocumentSymbol(name, kind, whole, self.lines.line_range(line), detail=detail)

    def judge_portability(self, agents: Sequence[str] = ()) -> tuple[ClientVerdict, ...]:
        """Return what these agents make of the skill; without any, all compared clients."""
        folder = os.path.basename(os.path.dirname(self.document.path))
        return judge_skill_md(self.document.data, folder, agents)

    def find_field_line(self, key: str) -> int:
        """Return the line of a field; the first line if the field is missing."""
        return next((one.line for one in self._fields if one.key == key), 0)

    def list_lenses(self, agents: Sequence[str] = ()) -> list[CodeLens]:
        """Return the tokens of the frontmatter, the body and each section.

        If a client does not load the skill without loss, the first line says so, too.
        """
        listed = " ".join(one.value for one in self._fields if one.key in _LISTED_FIELDS)
        total = f"about {_format_tokens(estimate_tokens(listed))} in each system prompt, "
        total += f"{estimate_tokens(self._body.strip())} when the skill is loaded"
        if problem := _summarize_portability(self.judge_portability(agents)):
            total = f"{total}; {problem}"
        titles = [(0, total), *((one.line, _format_tokens(one.tokens)) for one in self._sections)]
        return [
            CodeLens(Range(Position(line, 0), Position(line, 0)), Command(title, ""))
            for line, title in titles
        ]


def _summarize_portability(verdicts: Sequence[ClientVerdict]) -> str:
    counts = count_outcomes(verdicts)
    dropped, lossy = counts[Outcome.DROPPED], counts[Outcome.LOSS]
    parts = [f"{dropped} drop it"] * bool(dropped) + [f"{lossy} lose a field"] * bool(lossy)
    return f"of {len(verdicts)} clients, {' and '.join(parts)}" if parts else ""


def _describe_field(field: _FieldPosition, description: FieldDescription | None) -> str:
    text = (
        "This field is not in the specification. Agents may ignore it."
        if description is None
        else description.description
    )
    if field.key in _LISTED_FIELDS:
        tokens = _format_tokens(estimate_tokens(field.value))
        cost = f"About {tokens} in each system prompt that lists the skill."
    else:
        cost = "No tokens: system prompts do not contain this field."
    return f"**{_escape(field.key)}**: {text}\n\n{cost}"


def _format_tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


def _escape(text: str) -> str:
    # Texts of skills must not become links or HTML in a hover.
    return re.sub(r"([\\`*_\[\]<>!&])", r"\\\1", text)


def _to_markup(text: str) -> MarkupContent:
    return MarkupContent(MarkupKind.Markdown, text)
