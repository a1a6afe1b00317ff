"""Exported sessions: a skill that agents can read and that can be imported again.

`session.json` has the name and the budgets of the session; `blocks/1.json` and so on have its
blocks. The files contain no times, ids or paths, so equal sessions give equal bytes.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.lossless_editor import Document
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.records import SessionBudgets, SkillOrigin
from skillhall._internal.workspace.context import compile_text
from skillhall._internal.workspace.validation import (
    build_content,
    parse_zone,
    validate_block_type,
    validate_budgets,
    validate_name,
)
from skillhall.errors import FieldRefused, SkillhallError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.storage.records import BlockContent
    from skillhall._internal.workspace.context import Context

MANIFEST = "session.json"
FORMAT = "skillhall.session/1"
_MAX_PART_BYTES = 2 * 1024 * 1024  # size at which the next file with blocks is started
_MAX_TOTAL_BYTES = 90 * 1024 * 1024  # an archive may have 100 MiB when it is imported
_MAX_SKILL_TOKENS = 5_000  # specification, recommended size of a SKILL.md
_BUDGET_KEYS = ("permanent", "stable", "working", "total")
_SKILL_KEYS = {
    "skillName": "name",
    "skillDescription": "description",
    "sourceType": "source_type",
    "sourceRef": "source_ref",
}


class PortableSession(NamedTuple):
    """A session read from an export."""

    name: str
    budgets: SessionBudgets
    contents: tuple[BlockContent, ...]


def pack_session(context: Context) -> Bundle:
    """Return the files of an exported session. Raises: TooLarge."""
    contents = [block.content for zone in context.zones for block in zone.blocks]
    parts = [*_build_parts(contents)]
    name = suggest_name(context.session.name)
    files = {
        SKILL_MD: _build_skill_md(name, context),
        MANIFEST: _build_manifest(context, len(parts)),
    }
    files |= {_part_path(number): part for number, part in enumerate(parts, start=1)}
    if not _fits_skill_md(context.text):
        for zone in context.zones:
            text = compile_text(block.content for block in zone.blocks)
            files |= {_zone_path(zone.zone): text.encode()} if text else {}
    if sum(map(len, files.values())) > _MAX_TOTAL_BYTES:
        raise TooLarge("the session", _MAX_TOTAL_BYTES)
    return Bundle(name, {path: _build_file(path, data) for path, data in sorted(files.items())})


def read_portable_session(bundle: Bundle) -> PortableSession | None:
    """Return the session in a bundle, or None if there is none.

    Raises: FieldRefused, TextRefused.
    """
    file = bundle.files.get(MANIFEST)
    if file is None:
        return None
    manifest = _parse_json(file.read())
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        return None  # another program's session.json
    try:
        numbers = range(1, int(manifest["parts"]) + 1)
        parts = [_read_blocks(bundle, _part_path(number)) for number in numbers]
        budgets = SessionBudgets(**{key: manifest["budgets"].get(key) for key in _BUDGET_KEYS})
        contents = tuple(_parse_content(block) for part in parts for block in part)
        name = validate_name("name", manifest["name"])
    except (SkillhallError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FieldRefused(MANIFEST, "the exported session is damaged") from error
    return PortableSession(name, _validate_manifest_budgets(budgets), contents)


def _validate_manifest_budgets(budgets: SessionBudgets) -> SessionBudgets:
    for key in _BUDGET_KEYS:
        value = getattr(budgets, key)
        if value is not None and type(value) is not int:
            raise FieldRefused(MANIFEST, f"the budget {key!r} is not a number")
    return validate_budgets(budgets)


def _build_skill_md(name: str, context: Context) -> bytes:
    description = f"The context of the session {context.session.name!r}. Use when it is asked for."
    document = Document(b"---\n---\n").with_field("name", name)
    document = document.with_field("description", description)
    if _fits_skill_md(context.text):
        return document.with_body(f"\n{context.text}").data
    # Too long for a SKILL.md: it lists the files with the text of each zone instead.
    paths = [f"- {_zone_path(zone.zone)}" for zone in context.zones if zone.blocks]
    intro = "Read these files, in this order, before you answer:"
    return document.with_body("\n".join(["", intro, "", *paths, ""])).data


def _fits_skill_md(text: str) -> bool:
    return estimate_tokens(text) <= _MAX_SKILL_TOKENS


def _build_manifest(context: Context, parts: int) -> bytes:
    budgets = {key: getattr(context.session.budgets, key) for key in _BUDGET_KEYS}
    data = {"format": FORMAT, "name": context.session.name, "budgets": budgets, "parts": parts}
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()


def _build_parts(contents: Sequence[BlockContent]) -> Iterator[bytes]:
    lines: list[str] = []
    size = 0
    for content in contents:
        line = json.dumps(_serialize_block(content), ensure_ascii=False)
        lines.append(line)
        size += len(line.encode())
        if size > _MAX_PART_BYTES:
            yield _join_lines(lines)
            lines, size = [], 0
    if lines:
        yield _join_lines(lines)


def _join_lines(lines: Sequence[str]) -> bytes:
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def _serialize_block(content: BlockContent) -> dict[str, object]:
    data: dict[str, object] = {"type": content.type, "zone": content.zone.value}
    if content.skill is not None:
        skill = content.skill
        data["metadata"] = {key: getattr(skill, name) for key, name in _SKILL_KEYS.items()}
    return {**data, "content": content.text}


def _parse_content(block: dict[str, object]) -> BlockContent:
    metadata = block.get("metadata")
    skill = None
    if isinstance(metadata, dict):
        skill = SkillOrigin(**{name: str(metadata[key]) for key, name in _SKILL_KEYS.items()})
    kind, zone, text = block["type"], block["zone"], block["content"]
    if not isinstance(kind, str) or not isinstance(zone, str) or not isinstance(text, str):
        raise TypeError(kind)
    return build_content(validate_block_type(kind), parse_zone(zone), text, skill)


def _read_blocks(bundle: Bundle, path: str) -> list[dict[str, object]]:
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


def _zone_path(zone: str) -> str:
    return f"context/{zone.lower()}.md"


def _build_file(path: str, data: bytes) -> SkillFile:
    return SkillFile(
        RelativePath.parse(path), len(data), executable=False, read=partial(bytes, data)
    )
