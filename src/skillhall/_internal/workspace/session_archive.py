"""A session as a skill's files: agents read it as a skill, and we read the same blocks back.

`session.json` names the session; its blocks stand in `blocks/1.json` and so on, exactly as they
were. Nothing in the files says when or where they were made: the same session, the same bytes.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.document import Document
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.storage.records import Budgets, SkillOrigin
from skillhall._internal.workspace.context import compiled_text
from skillhall._internal.workspace.validation import (
    checked_budgets,
    checked_name,
    checked_type,
    checked_zone,
    make_content,
)
from skillhall.errors import FieldRefused, SkillhallError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.storage.records import Content
    from skillhall._internal.workspace.context import Context

MANIFEST = "session.json"
FORMAT = "skillhall.session/1"
_PART = 2 * 1024 * 1024  # bytes of a file with blocks, after which another one begins
_LARGEST = 90 * 1024 * 1024  # bytes of all files; an archive that is imported may have 100 MiB
_MOST_TOKENS = 5_000  # of a SKILL.md, as the specification advises
_BUDGETS = ("permanent", "stable", "working", "total")
_SKILL = {
    "skillName": "name",
    "skillDescription": "description",
    "sourceType": "source_type",
    "sourceRef": "source_ref",
}


class PortableSession(NamedTuple):
    """A session out of files."""

    name: str
    budgets: Budgets
    contents: tuple[Content, ...]


def pack_session(context: Context) -> Bundle:
    """The files of a session. Raises: TooLarge."""
    contents = [block.content for zone in context.zones for block in zone.blocks]
    parts = [*_parts(contents)]
    name = suggest_name(context.session.name)
    files = {SKILL_MD: _skill_md(name, context), MANIFEST: _manifest(context, len(parts))}
    files |= {_part_path(number): part for number, part in enumerate(parts, start=1)}
    if not _fits(context.text):
        for zone in context.zones:
            text = compiled_text(block.content for block in zone.blocks)
            files |= {_zone_path(zone.zone): text.encode()} if text else {}
    if sum(map(len, files.values())) > _LARGEST:
        raise TooLarge("the session", _LARGEST)
    return Bundle(name, {path: _file(path, data) for path, data in sorted(files.items())})


def read_portable(bundle: Bundle) -> PortableSession | None:
    """The session in a bundle, if it is an exported one. Raises: FieldRefused, TextRefused."""
    file = bundle.files.get(MANIFEST)
    if file is None:
        return None
    manifest = _parsed(file.read())
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        return None  # somebody else's file of that name
    try:
        blocks = [
            one
            for number in range(1, int(manifest["parts"]) + 1)
            for one in _blocks(bundle, _part_path(number))
        ]
        budgets = Budgets(**{key: manifest["budgets"].get(key) for key in _BUDGETS})
        contents = tuple(_content_of(one) for one in blocks)
        name = checked_name("name", manifest["name"])
    except (SkillhallError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FieldRefused(MANIFEST, "the exported session is damaged") from error
    return PortableSession(name, _whole(budgets), contents)


def _whole(budgets: Budgets) -> Budgets:
    for key in _BUDGETS:
        value = getattr(budgets, key)
        if value is not None and type(value) is not int:
            raise FieldRefused(MANIFEST, f"the budget {key!r} is no number")
    return checked_budgets(budgets)


def _skill_md(name: str, context: Context) -> bytes:
    described = f"The context of the session {context.session.name!r}. Use when it is asked for."
    document = Document(b"---\n---\n").with_field("name", name)
    document = document.with_field("description", described)
    if _fits(context.text):
        return document.with_body(f"\n{context.text}").data
    read = [f"- {_zone_path(zone.zone)}" for zone in context.zones if zone.blocks]
    told = "Read these files, in this order, before you answer:"
    return document.with_body("\n".join(["", told, "", *read, ""])).data


def _fits(text: str) -> bool:
    return estimate_tokens(text) <= _MOST_TOKENS


def _manifest(context: Context, parts: int) -> bytes:
    budgets = {key: getattr(context.session.budgets, key) for key in _BUDGETS}
    told = {"format": FORMAT, "name": context.session.name, "budgets": budgets, "parts": parts}
    return _written(told)


def _parts(contents: Sequence[Content]) -> Iterator[bytes]:
    lines: list[str] = []
    size = 0
    for content in contents:
        line = json.dumps(_block(content), ensure_ascii=False)
        lines.append(line)
        size += len(line.encode())
        if size > _PART:
            yield _joined(lines)
            lines, size = [], 0
    if lines:
        yield _joined(lines)


def _joined(lines: Sequence[str]) -> bytes:
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def _block(content: Content) -> dict[str, object]:
    told: dict[str, object] = {"type": content.type, "zone": content.zone.value}
    if content.skill is not None:
        skill = content.skill
        told["metadata"] = {key: getattr(skill, name) for key, name in _SKILL.items()}
    return {**told, "content": content.text}


def _content_of(block: dict[str, object]) -> Content:
    metadata = block.get("metadata")
    skill = None
    if isinstance(metadata, dict):
        skill = SkillOrigin(**{name: str(metadata[key]) for key, name in _SKILL.items()})
    kind, zone, text = block["type"], block["zone"], block["content"]
    if not isinstance(kind, str) or not isinstance(zone, str) or not isinstance(text, str):
        raise TypeError(kind)
    return make_content(checked_type(kind), checked_zone(zone), text, skill)


def _blocks(bundle: Bundle, path: str) -> list[dict[str, object]]:
    found = _parsed(bundle.file(RelativePath.parse(path)).read())
    if not isinstance(found, list):
        raise TypeError(path)
    return found


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _written(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _part_path(number: int) -> str:
    return f"blocks/{number}.json"


def _zone_path(zone: str) -> str:
    return f"context/{zone.lower()}.md"


def _file(path: str, data: bytes) -> SkillFile:
    return SkillFile(
        RelativePath.parse(path), len(data), executable=False, read=partial(bytes, data)
    )
