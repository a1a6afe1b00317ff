"""Checks of frontmatter and body. They report findings and decide nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias
from unicodedata import category, normalize

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill.yaml.values import (
    KNOWN_FIELDS,
    TEXT_FIELDS,
    YamlValue,
    describe_type,
)

FieldLineFinder: TypeAlias = Callable[[str], int]  # the line of a field


MAX_NAME_LENGTH = 64  # specification, "name field"
MAX_DESCRIPTION_LENGTH = 1024  # specification, "description field"
MAX_COMPATIBILITY_LENGTH = 500  # specification, "compatibility field"
MAX_BODY_TOKENS = 5000  # specification, "progressive disclosure"
MAX_BODY_LINES = 500  # specification, "progressive disclosure"

_PLAIN_NAME = re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+")
_LETTERS_AND_DIGITS = ("L", "N")  # Unicode categories
_NAME_NOT_FOLDER = Code.NAME_NOT_FOLDER


def check_frontmatter(  # noqa: C901 - a call per field is too slow
    front: Frontmatter, folder: str | None, find_line: FieldLineFinder
) -> list[Finding]:
    """Check all fields; `folder` is the folder name, or `None` for a flat file."""
    findings: list[Finding] = []
    name, description = front.name, front.description
    # Most names and descriptions are fine; the fast tests here spare the detailed checks.
    if len(name) > MAX_NAME_LENGTH or _PLAIN_NAME.fullmatch(name) is None:
        findings += check_name(front, folder, find_line("name"))
    elif name != folder and folder is not None and not _are_same_name(name, folder):
        findings.append(_build_name_finding(name, folder, find_line("name")))
    if not 0 < len(description) <= MAX_DESCRIPTION_LENGTH or description.isspace():
        findings += check_description(front, find_line("description"))
    unknown = []
    for key, value in front.fields.items():
        if key in TEXT_FIELDS:
            if key == "compatibility":
                findings += _check_compatibility(front, find_line(key))
        elif key == "metadata":
            if not _is_text_map(value):
                findings += _check_metadata(front, find_line(key))
        elif key == "allowed-tools":
            findings += _check_allowed_tools(front, find_line(key))
        else:
            unknown.append(key)
    if unknown:
        findings += _check_unknown_fields(unknown, find_line)
    return findings


def check_name(front: Frontmatter, folder: str | None, line: int) -> Iterator[Finding]:
    """Yield a finding for each rule that `name` violates."""
    name = front.name
    if not name:
        code = Code.FLAT_NAME_MISSING if folder is None else Code.NAME_MISSING
        yield _build_missing_finding(front, "name", code, line)
        return
    if len(name) > MAX_NAME_LENGTH:
        message = f"the name has {len(name)} characters; the limit is {MAX_NAME_LENGTH}"
        yield Finding(Code.NAME_TOO_LONG, message, line, "choose a shorter name")
    if _PLAIN_NAME.fullmatch(name) is None:
        yield from _check_name_characters(normalize("NFKC", name), line)
    if folder is not None and not _are_same_name(name, folder):
        yield _build_name_finding(name, folder, line)


def _build_name_finding(name: str, folder: str, line: int) -> Finding:
    message = f"the name {name!r} differs from the folder {folder!r}"
    return Finding(_NAME_NOT_FOLDER, message, line, "use the same name for both")


def _are_same_name(name: str, folder: str) -> bool:
    if name.isascii() and folder.isascii():  # ASCII text is normalized
        return name == folder
    return normalize("NFKC", name) == normalize("NFKC", folder)


def _is_text_map(value: YamlValue) -> bool:
    if not isinstance(value, dict):
        return False
    for item in value.values():  # noqa: SIM110 - `all` with a generator is slower
        if not isinstance(item, str):
            return False
    return True


def _check_name_characters(name: str, line: int) -> Iterator[Finding]:
    if name != name.lower():
        message = f"the name {name!r} is not lowercase"
        yield Finding(Code.NAME_UPPERCASE, message, line, f"write {name.lower()!r}")
    letters = [c for c in name if c != "-"]
    invalid = sorted({c for c in letters if category(c)[0] not in "LNM"})
    if invalid:
        message = f"the name {name!r} contains invalid characters: {', '.join(map(repr, invalid))}"
        hint = f"use letters, digits and single hyphens: {suggest_name(name)!r}"
        yield Finding(Code.NAME_CHARACTERS, message, line, hint)
    if any(category(c)[0] == "M" for c in letters):
        message = (
            f"the name {name!r} contains combining marks, which the reference validator rejects"
        )
        yield Finding(Code.NAME_MARKS, message, line)
    if name.startswith("-") or name.endswith("-"):
        message = f"the name {name!r} starts or ends with a hyphen"
        yield Finding(Code.NAME_EDGE_HYPHEN, message, line, f"write {name.strip('-')!r}")
    if "--" in name:
        message = f"the name {name!r} has two hyphens in a row"
        yield Finding(Code.NAME_DOUBLE_HYPHEN, message, line, f"write {re.sub('-+', '-', name)!r}")


def suggest_name(text: str) -> str:
    """Return the nearest valid name; "skill" if `text` has no letter or digit."""
    return slugify(text) or "skill"


def slugify(text: str) -> str:
    """Return `text` as a slug of lowercase letters, digits and single hyphens, or ""."""
    lower = normalize("NFKC", text).lower()
    slug = "".join(c if category(c)[0] in _LETTERS_AND_DIGITS else "-" for c in lower)
    return re.sub("-+", "-", slug).strip("-")[:MAX_NAME_LENGTH].strip("-")


def check_description(front: Frontmatter, line: int) -> Iterator[Finding]:
    """Check `description`."""
    length = len(front.description)
    if not front.description.strip():
        yield _build_missing_finding(front, "description", Code.DESCRIPTION_MISSING, line)
    elif length > MAX_DESCRIPTION_LENGTH:
        message = f"the description has {length} characters; the limit is {MAX_DESCRIPTION_LENGTH}"
        hint = "say what the skill does and when to use it; move the rest into the body"
        yield Finding(Code.DESCRIPTION_TOO_LONG, message, line, hint)


def _build_missing_finding(front: Frontmatter, field: str, code: Code, line: int) -> Finding:
    if field not in front.fields:
        near = next((key for key in front.fields if key.lower() == field), None)
        hint = f"add '{field}: …'" if near is None else f"write {field!r} instead of {near!r}"
        return Finding(code, f"{field!r} is missing", line, hint)
    message = _describe_not_text(field, front.fields[field])
    return Finding(code, message, line, f"write '{field}: some text'")


def _describe_not_text(field: str, value: YamlValue) -> str:
    if value is None or isinstance(value, str):
        return f"{field!r} is empty"
    return f"{field!r} is {describe_type(value)}, not text"


def _check_unknown_fields(names: list[str], find_line: FieldLineFinder) -> list[Finding]:
    findings = []
    if not "".join(names).islower():  # half of all public skills have unknown fields
        for key in [name for name in names if name.lower() in KNOWN_FIELDS]:
            message, hint = f"{key!r} is not lowercase", f"write {key.lower()!r}"
            findings.append(Finding(Code.KEY_CASE, message, find_line(key), hint))
            names.remove(key)
    if names:
        message = f"fields that are not in the specification: {', '.join(map(repr, names))}"
        findings.append(Finding(Code.UNKNOWN_FIELD, message, find_line(names[0])))
    return findings


def _check_compatibility(front: Frontmatter, line: int) -> Iterator[Finding]:
    text = front.compatibility
    if not text:
        message = _describe_not_text("compatibility", front.fields["compatibility"])
        hint = "say what the skill needs, or remove the field"
        yield Finding(Code.COMPATIBILITY_EMPTY, message, line, hint)
    elif (length := len(text)) > MAX_COMPATIBILITY_LENGTH:
        limit = MAX_COMPATIBILITY_LENGTH
        message = f"'compatibility' has {length} characters; the limit is {limit}"
        hint = "keep the requirements, move the rest into the body"
        yield Finding(Code.COMPATIBILITY_TOO_LONG, message, line, hint)


def _check_metadata(front: Frontmatter, line: int) -> Iterator[Finding]:
    value = front.fields["metadata"]
    if value is None:
        return
    if not isinstance(value, dict):
        message = f"'metadata' is {describe_type(value)}, not a map"
        hint = "write one 'key: value' per line below it"
        yield Finding(Code.METADATA_NOT_A_MAP, message, line, hint)
    elif keys := [repr(key) for key, item in value.items() if not isinstance(item, str)]:
        message = f"'metadata' contains values that are not text: {', '.join(keys)}"
        yield Finding(Code.METADATA_NOT_TEXT, message, line, "quote each value")


def _check_allowed_tools(front: Frontmatter, line: int) -> Iterator[Finding]:
    value = front.fields["allowed-tools"]
    tools = " ".join(front.allowed_tools)
    if value is None or (isinstance(value, str) and " ".join(value.split()) == tools):
        return
    if isinstance(value, dict | bool):
        message = f"'allowed-tools' is {describe_type(value)}; no tools were read"
        hint = "write 'allowed-tools: Read Bash(…)'"
    else:
        message = "'allowed-tools' is a list or uses commas; it was read anyway"
        hint = f"write 'allowed-tools: {tools}'"
    yield Finding(Code.ALLOWED_TOOLS_FORM, message, line, hint)


def has_small_body(data: bytes) -> bool:
    """Whether a SKILL.md is so small that `check_body` finds nothing, as most of them are."""
    # No character is estimated to need more than a third of a token for each of its bytes.
    if len(data) > 3 * MAX_BODY_TOKENS or b"\r" in data:
        return False
    return data.count(b"\n") < MAX_BODY_LINES


def check_body(body: str) -> Iterator[Finding]:
    """Check the size of the body; any Markdown is valid."""
    lines = body.count("\n") + 1
    tokens = estimate_tokens(body)
    if lines > MAX_BODY_LINES or tokens > MAX_BODY_TOKENS:
        yield Finding(
            Code.BODY_LARGE,
            f"the body has {lines} lines and about {tokens} tokens; "
            f"at most {MAX_BODY_LINES} lines and {MAX_BODY_TOKENS} tokens are recommended",
            hint="move details into files that the agent reads when it needs them",
        )
