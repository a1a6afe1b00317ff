"""Creation of new skills that follow the specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from skillhall._internal.fs.write import create_folder
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.lossless_editor import Document, EditRefused
from skillhall._internal.skill.parser import parse_skill
from skillhall.errors import Conflict, SkillRejected

_NO_FILES: Mapping[str, bytes] = MappingProxyType({})
DEFAULT_DESCRIPTION = "Does one thing well. Use when the user asks for that thing."
_BODY_TEMPLATE = """
# {title}

Say what to do, step by step. Keep it short: put details into files next to this one, which an
agent reads when it needs them.

## Steps

1. …
2. …

## Examples

Show one request and the answer you want.
"""


@dataclass(frozen=True, slots=True)
class CreatedSkill:
    """A newly created skill."""

    name: str
    path: str
    location: str


def create_skill(
    directory: str,
    name: str,
    description: str = DEFAULT_DESCRIPTION,
    body: str | None = None,
    files: Mapping[str, bytes] = _NO_FILES,
) -> CreatedSkill:
    """Create the skill `name` in `directory`, which is created if missing.

    `files` are further files by path. Raises: SkillRejected with a suggestion if the name or
    description is not allowed, UnsafePath, Conflict if the folder exists, OSError if it cannot be
    written.
    """
    if body is None:
        body = _BODY_TEMPLATE.format(title=name.replace("-", " ").capitalize())
    data = build_skill_md(name, description, body)
    judged = SPECIFICATION.load_policy.judge(parse_skill(data, name).findings)
    if rejecting := [j.finding for j in judged if j.effect is Effect.REJECT]:
        error = SkillRejected(name or "the new skill", [finding.message for finding in rejecting])
        error.hint = rejecting[0].hint
        if any(finding.code.startswith("name-") for finding in rejecting):
            error.hint = f"a name that works: {suggest_name(name)!r}"
        if any(finding.code is Code.NAME_CHARACTERS for finding in rejecting) and "/" in name:
            error.hint = "a name cannot contain a folder; give the folder separately"
        raise error
    others = {RelativePath.parse(path).text: content for path, content in files.items()}
    parent = Path(directory)
    parent.mkdir(parents=True, exist_ok=True)
    try:
        create_folder(str(parent), name, {**others, SKILL_MD: data})
    except Conflict:
        raise Conflict(str(parent / name)) from None
    return CreatedSkill(name, str(parent / name), str(parent / name / SKILL_MD))


def build_skill_md(name: str, description: str, body: str) -> bytes:
    """Build a SKILL.md from name, description and body. Raises: SkillRejected."""
    try:
        document = Document(b"---\n---\n").with_field("name", name)
        return document.with_field("description", description).with_body(body).data
    except EditRefused as error:
        raise SkillRejected(name, [str(error)]) from None
