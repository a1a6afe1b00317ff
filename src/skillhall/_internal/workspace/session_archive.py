"""Exported sessions: skills that agents can read and that can be imported again.

`session.json` has the name and the budgets of the session; `blocks/1.json` and so on have its
blocks. The files contain no times, ids or paths, so equal sessions give equal bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.lossless_editor import Document
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.records import SessionBudgets
from skillhall._internal.workspace.compiled_context import compile_text
from skillhall._internal.workspace.serializers import parse_content, serialize_content
from skillhall._internal.workspace.validation import validate_budgets, validate_name
from skillhall.errors import FieldRefused, SkillhallError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.storage.records import BlockContent
    from skillhall._internal.workspace.compiled_context import Context

MANIFEST = "session.json"
FORMAT = "skillhall.session/1"
_MAX_PART_BYTES = 2 * 1024 * 1024  # size at which the next file with blocks is started
_MAX_TOTAL_BYTES = 90 * 1024 * 1024  # below the limit for imported archives, 100 MiB
_MAX_SKILL_TOKENS = 5_000  # the size of a SKILL.md that the specification recommends
_BUDGET_KEYS = ("permanent", "stable", "working", "total")


class PortableSession(NamedTuple):
    """A session read from an export."""

    name: str
    budgets: SessionBudgets
    contents: tuple[BlockContent, ...]


def pack_session(context: Context) -> Bundle:
    """Return the files of an exported session. Raises: TooLarge."""
    session, name = context.session, suggest_name(context.session.name)
    body, files = f"\n{context.text}", {}
    if estimate_tokens(context.text) > _MAX_SKILL_TOKENS:
        # Too long for a SKILL.md: it lists the files with the text of each zone instead.
        texts = {z.zone.lower(): compile_text(b.content for b in z.blocks) for z in context.zones}
        files = {f"context/{zone}.md": text.encode() for zone, text in texts.items() if text}
        intro = "Read these files, in this order, before you answer:"
        body = "\n".join(["", intro, "", *(f"- {path}" for path in files), ""])
    description = f"The context of the session {session.name!r}. Use when the user asks for it."
    document = Document(b"---\n---\n").with_field("name", name)
    files[SKILL_MD] = document.with_field("description", description).with_body(body).data
    parts = [*_build_parts(block.content for zone in context.zones for block in zone.blocks)]
    files |= {_part_path(number): part for number, part in enumerate(parts, start=1)}
    budgets = asdict(session.budgets)
    manifest = {"format": FORMAT, "name": session.name, "budgets": budgets, "parts": len(parts)}
    files[MANIFEST] = f"{json.dumps(manifest, ensure_ascii=False, indent=2)}\n".encode()
    if sum(map(len, files.values())) > _MAX_TOTAL_BYTES:
        raise TooLarge("the session", _MAX_TOTAL_BYTES)
    skill_files = {
        path: SkillFile(
            RelativePath.parse(path), len(data), executable=False, read=partial(bytes, data)
        )
        for path, data in sorted(files.items())
    }
    return Bundle(name, skill_files)


def read_portable_session(bundle: Bundle) -> PortableSession | None:
    """Return the session in a bundle, or None if there is none.

    Raises: FieldRefused if the session is damaged.
    """
    file = bundle.files.get(MANIFEST)
    manifest = None if file is None else _parse_json(file.read())
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        return None  # not an export, or another program's session.json
    try:
        parts = (_part_path(number) for number in range(1, int(manifest["parts"]) + 1))
        contents = [parse_content(block) for part in parts for block in _read_part(bundle, part)]
        budgets = {key: manifest["budgets"].get(key) for key in _BUDGET_KEYS}
        name = validate_name("name", manifest["name"])
    except (SkillhallError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FieldRefused(MANIFEST, "the exported session is damaged") from error
    for key, value in budgets.items():
        if value is not None and type(value) is not int:
            raise FieldRefused(MANIFEST, f"the budget {key!r} is not an integer")
    return PortableSession(name, validate_budgets(SessionBudgets(**budgets)), tuple(contents))


def _build_parts(contents: Iterable[BlockContent]) -> Iterator[bytes]:
    lines: list[str] = []
    size = 0
    for content in contents:
        data = serialize_content(content)
        del data["tokens"]  # estimates may differ in another version
        data["content"] = data.pop("content")  # the longest value comes last
        line = json.dumps(data, ensure_ascii=False)
        lines.append(line)
        size += len(line.encode())
        if size > _MAX_PART_BYTES:
            yield _join_lines(lines)
            lines, size = [], 0
    if lines:
        yield _join_lines(lines)


def _join_lines(lines: Sequence[str]) -> bytes:
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def _read_part(bundle: Bundle, path: str) -> list[dict[str, object]]:
    blocks = _parse_json(bundle.get_file(RelativePath.parse(path)).read())
    if not isinstance(blocks, list):
        raise TypeError(path)
    return blocks


def _parse_json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _part_path(number: int) -> str:
    return f"blocks/{number}.json"
