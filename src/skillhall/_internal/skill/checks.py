"""Checks: each states facts about frontmatter, body or files. None of them decides anything."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill.yaml.values import KNOWN_FIELDS, TEXT_FIELDS, describe_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from skillhall._internal.skill.parsed import Frontmatter

    FieldLineFinder: TypeAlias = Callable[[str], int]  # the line a field stands on
    FieldCheck: TypeAlias = Callable[[Frontmatter, int], Iterator[Finding]]

MAX_NAME_LENGTH = 64  # specification, "name field"
MAX_DESCRIPTION_LENGTH = 1024  # specification, "description field"
MAX_COMPATIBILITY_LENGTH = 500  # specification, "compatibility field"
MAX_BODY_TOKENS = 5000  # specification, "progressive disclosure"
MAX_BODY_LINES = 500  # the same

_PLAIN_NAME = re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+")
_LETTERS_AND_DIGITS = ("L", "N")


def check_frontmatter(
    front: Frontmatter, folder: str | None, find_line: FieldLineFinder
) -> list[Finding]:
    """Facts about the fields; `folder` names the skill's folder, `None` for a flat file."""
    findings: list[Finding] = []
    name, description = front.name, front.description
    if name != folder or len(name) > MAX_NAME_LENGTH or _PLAIN_NAME.fullmatch(name) is None:
        findings += check_name(front, folder, find_line("name"))
    if not 0 < len(description) <= MAX_DESCRIPTION_LENGTH or description.isspace():
        findings += check_description(front, find_line("description"))
    unknown = []
    for key in front.fields:
        if key in _FIELD_CHECKS:
            findings += _FIELD_CHECKS[key](front, find_line(key))
        elif key not in TEXT_FIELDS:
            unknown.append(key)
    if unknown:
        findings += _check_unknown_fields(unknown, find_line)
    return findings


def check_name(front: Frontmatter, folder: str | None, line: int) -> Iterator[Finding]:
    """Facts about `name`: each violated rule is its own finding."""
    name = front.name
    if not name:
        code = Code.FLAT_NAME_MISSING if folder is None else Code.NAME_MISSING
        yield _build_missing_finding(front, "name", code, line)
        return
    if len(name) > MAX_NAME_LENGTH:
        yield Finding(
            Code.NAME_TOO_LONG,
            f"the name has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed",
            line,
            "choose a shorter name",
        )
    if _PLAIN_NAME.fullmatch(name) is None:
        yield from _check_name_characters(unicodedata.normalize("NFKC", name), line)
    if folder is not None and name != folder and not _is_equal_after_nfkc(name, folder):
        yield Finding(
            Code.NAME_NOT_FOLDER,
            f"the name {name!r} differs from the folder {folder!r}",
            line,
            "give both the same name",
        )


def _is_equal_after_nfkc(one: str, other: str) -> bool:
    return unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFKC", other)


def _check_name_characters(name: str, line: int) -> Iterator[Finding]:
    if name != name.lower():
        yield Finding(
            Code.NAME_UPPERCASE,
            f"the name {name!r} is not lower case",
            line,
            f"write {name.lower()!r}",
        )
    letters = [c for c in name if c != "-"]
    odd = sorted({c for c in letters if unicodedata.category(c)[0] not in "LNM"})
    if odd:
        yield Finding(
            Code.NAME_CHARACTERS,
            f"the name {name!r} holds {', '.join(map(repr, odd))}",
            line,
            f"use letters, digits and single hyphens: {suggest_name(name)!r}",
        )
    if any(unicodedata.category(c)[0] == "M" for c in letters):
        yield Finding(
            Code.NAME_MARKS,
            f"the name {name!r} holds combining marks, which the reference validator refuses",
            line,
        )
    if name.startswith("-") or name.endswith("-"):
        yield Finding(
            Code.NAME_EDGE_HYPHEN,
            f"the name {name!r} starts or ends with a hyphen",
            line,
            f"write {name.strip('-')!r}",
        )
    if "--" in name:
        yield Finding(
            Code.NAME_DOUBLE_HYPHEN,
            f"the name {name!r} has two hyphens in a row",
            line,
            f"write {re.sub('-+', '-', name)!r}",
        )


def suggest_name(text: str) -> str:
    """The nearest name that follows the rules; "skill" if nothing of `text` can stay."""
    return slugify(text) or "skill"


def slugify(text: str) -> str:
    """`text` as a name: lower-case letters and digits, single hyphens; "" if nothing can stay."""
    lower = unicodedata.normalize("NFKC", text).lower()
    kept = "".join(c if unicodedata.category(c)[0] in _LETTERS_AND_DIGITS else "-" for c in lower)
    return re.sub("-+", "-", kept).strip("-")[:MAX_NAME_LENGTH].strip("-")


def check_description(front: Frontmatter, line: int) -> Iterator[Finding]:
    """Facts about `description`."""
    length = len(front.description)
    if not front.description.strip():
        yield _build_missing_finding(front, "description", Code.DESCRIPTION_MISSING, line)
    elif length > MAX_DESCRIPTION_LENGTH:
        yield Finding(
            Code.DESCRIPTION_TOO_LONG,
            f"the description has {length} characters; at most {MAX_DESCRIPTION_LENGTH} are "
            "allowed",
            line,
            "say what the skill does and when to use it; move the rest into the body",
        )


def _build_missing_finding(front: Frontmatter, field: str, code: Code, line: int) -> Finding:
    if field not in front.fields:
        near = next((key for key in front.fields if key.lower() == field), None)
        hint = f"add '{field}: …'" if near is None else f"write {field!r} instead of {near!r}"
        return Finding(code, f"there is no {field!r}", line, hint)
    value = front.fields[field]
    state = "empty" if isinstance(value, str) else describe_type(value)
    return Finding(code, f"{field!r} is {state}, not a text", line, f"write '{field}: some text'")


def _check_unknown_fields(unknown: list[str], find_line: FieldLineFinder) -> Iterator[Finding]:
    miscased, others = _split_miscased_fields(tuple(unknown))
    for key in miscased:
        yield Finding(
            Code.KEY_CASE, f"{key!r} is not lower case", find_line(key), f"write {key.lower()!r}"
        )
    if others:
        yield _build_unknown_fields_finding(others, find_line(others[0]))


# Half of all skills carry such fields, and nearly always the same ones.
@lru_cache(maxsize=1024)
def _split_miscased_fields(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    miscased = tuple(name for name in names if name.lower() in KNOWN_FIELDS)
    return miscased, tuple(name for name in names if name not in miscased)


@lru_cache(maxsize=1024)
def _build_unknown_fields_finding(names: tuple[str, ...], line: int) -> Finding:
    listed = ", ".join(map(repr, names))
    return Finding(Code.UNKNOWN_FIELD, f"fields beyond the specification: {listed}", line)


def _check_compatibility(front: Frontmatter, line: int) -> Iterator[Finding]:
    text = front.compatibility
    if not text:
        state = "empty" if text == "" else describe_type(front.fields["compatibility"])
        yield Finding(
            Code.COMPATIBILITY_EMPTY,
            f"'compatibility' is {state}, not a text",
            line,
            "say what the skill needs, or remove the field",
        )
    elif len(text) > MAX_COMPATIBILITY_LENGTH:
        yield Finding(
            Code.COMPATIBILITY_TOO_LONG,
            f"'compatibility' has {len(text)} characters; "
            f"at most {MAX_COMPATIBILITY_LENGTH} are allowed",
            line,
            "keep the requirements, move the rest into the body",
        )


def _check_metadata(front: Frontmatter, line: int) -> Iterator[Finding]:
    value = front.fields["metadata"]
    if value is None:
        return
    if not isinstance(value, dict):
        yield Finding(
            Code.METADATA_NOT_A_MAP,
            f"'metadata' is {describe_type(value)}, not a map",
            line,
            "write one 'key: value' per line below it",
        )
        return
    odd = [key for key, item in value.items() if not isinstance(item, str)]
    if odd:
        yield Finding(
            Code.METADATA_NOT_TEXT,
            f"'metadata' holds values that are not text: {', '.join(map(repr, odd))}",
            line,
            "write each value as quoted text",
        )


def _check_allowed_tools(front: Frontmatter, line: int) -> Iterator[Finding]:
    value = front.fields["allowed-tools"]
    tools = " ".join(front.allowed_tools)
    if value is None or (isinstance(value, str) and " ".join(value.split()) == tools):
        return
    if isinstance(value, dict | bool):
        message = f"'allowed-tools' is {describe_type(value)}; no tool was read from it"
        yield Finding(Code.ALLOWED_TOOLS_FORM, message, line, "write 'allowed-tools: Read Bash(…)'")
        return
    yield Finding(
        Code.ALLOWED_TOOLS_FORM,
        "'allowed-tools' is written as a list or with commas; it was understood",
        line,
        f"write 'allowed-tools: {tools}'",
    )


_FIELD_CHECKS: dict[str, FieldCheck] = {
    "compatibility": _check_compatibility,
    "metadata": _check_metadata,
    "allowed-tools": _check_allowed_tools,
}


def check_body(body: str) -> Iterator[Finding]:
    """Facts about the instructions: only their size, since any Markdown is fine."""
    lines = body.count("\n") + 1
    tokens = estimate_tokens(body)
    if lines > MAX_BODY_LINES or tokens > MAX_BODY_TOKENS:
        yield Finding(
            Code.BODY_LARGE,
            f"the body has {lines} lines, about {tokens} tokens; "
            f"{MAX_BODY_LINES} lines and {MAX_BODY_TOKENS} tokens are advised",
            hint="move details into files that the agent reads when it needs them",
        )
