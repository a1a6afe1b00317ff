"""Assertions of a case: text for a judge, or a check that needs no model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import UnsafePath

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PATTERN_LENGTH = 1000  # characters
TEXT_KEYS = ("text", "check", "name", "description")
# The `type` values of other tools for assertions that a model judges.
JUDGE_TYPES = frozenset({"judge", "llm", "llm-judge", "llm-rubric", "llm_judge", "model"})
_COMMON_KEYS = frozenset({"id", "type", *TEXT_KEYS})


class CheckKind(StrEnum):
    """The `type` of an assertion that is checked without a model."""

    CONTAINS = "contains"
    NOT_CONTAINS = "not-contains"
    EQUALS = "equals"
    REGEX = "regex"
    NOT_REGEX = "not-regex"
    JSON_SCHEMA = "json-schema"
    FILE_EXISTS = "file-exists"
    ROW_COUNT = "row-count"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalCheck:
    """A check of the reply, or of an output file."""

    kind: CheckKind
    value: str = ""  # the text, the pattern, or the path of the script in the skill
    path: str = ""  # of the output file; "" is the reply
    schema: Mapping[str, object] | bool = True
    min_rows: int = 0
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class EvalAssertion:
    """One assertion of a case. Without a check, a model judges its text."""

    text: str
    check: EvalCheck | None = None
    line: int = field(default=0, compare=False)


class CheckProblem(NamedTuple):
    """A key of an assertion that cannot be used, and why."""

    key: str
    message: str


def known_keys(kind: object) -> frozenset[str]:
    """Return the keys of an assertion of this type."""
    keys = {
        CheckKind.FILE_EXISTS: {"path"},
        CheckKind.ROW_COUNT: {"path", "value", "min", "max"},
        CheckKind.SCRIPT: {"value"},
    }
    if not isinstance(kind, str) or kind not in [*CheckKind]:
        return _COMMON_KEYS
    return _COMMON_KEYS | keys.get(CheckKind(kind), {"value", "path"})


def parse_check(fields: Mapping[str, object]) -> EvalCheck | CheckProblem | None:
    """Return the check of an assertion; `None` if a model judges it."""
    kind = fields.get("type")
    if kind is None or (isinstance(kind, str) and kind.lower() in JUDGE_TYPES):
        return None
    if not isinstance(kind, str) or kind not in [*CheckKind]:
        return CheckProblem("type", f"unknown type {str(kind)[:100]!r}")
    path = fields.get("path", "")
    problem = _find_path_problem(CheckKind(kind), path)
    if problem:
        return CheckProblem("path", problem)
    return _parse_value(EvalCheck(kind=CheckKind(kind), path=str(path)), fields)


def describe_check(check: EvalCheck) -> str:
    """Return the text of an assertion that has only a check."""
    place = check.path or "the reply"
    descriptions = {
        CheckKind.CONTAINS: f"{place} contains {check.value!r}",
        CheckKind.NOT_CONTAINS: f"{place} does not contain {check.value!r}",
        CheckKind.EQUALS: f"{place} equals {check.value!r}",
        CheckKind.REGEX: f"{place} matches {check.value!r}",
        CheckKind.NOT_REGEX: f"{place} does not match {check.value!r}",
        CheckKind.JSON_SCHEMA: f"{place} matches the JSON Schema",
        CheckKind.FILE_EXISTS: f"there is an output file {check.path}",
        CheckKind.ROW_COUNT: f"{place} has {_describe_rows(check)}",
        CheckKind.SCRIPT: f"{check.value} succeeds",
    }
    return descriptions[check.kind]


def _find_path_problem(kind: CheckKind, path: object) -> str:
    if not isinstance(path, str):
        return "'path' must be text"
    if not path:
        needs_path = kind in {CheckKind.FILE_EXISTS, CheckKind.ROW_COUNT}
        return f"{kind} needs the 'path' of an output file" if needs_path else ""
    try:
        RelativePath.parse(path)
    except UnsafePath as error:
        return f"the path {path[:200]!r} cannot be used: {error.reason}"
    return ""


def _parse_value(base: EvalCheck, fields: Mapping[str, object]) -> EvalCheck | CheckProblem:
    kind, value = base.kind, fields.get("value")
    if kind is CheckKind.FILE_EXISTS:
        return base
    if kind is CheckKind.ROW_COUNT:
        return _parse_rows(base, fields)
    if kind is CheckKind.JSON_SCHEMA:
        if isinstance(value, dict | bool):
            return EvalCheck(kind=kind, path=base.path, schema=value)
        return CheckProblem("value", "'value' must be a JSON Schema, which is an object")
    problem = _find_value_problem(kind, value)
    if problem:
        return CheckProblem("value", problem)
    return EvalCheck(kind=kind, value=str(value), path=base.path)


def _find_value_problem(kind: CheckKind, value: object) -> str:
    if not isinstance(value, str) or not value:
        return f"{kind} needs text as its 'value'"
    if kind is CheckKind.SCRIPT:
        try:
            RelativePath.parse(value)
        except UnsafePath as error:
            return f"the script {value[:200]!r} cannot be used: {error.reason}"
    if kind not in {CheckKind.REGEX, CheckKind.NOT_REGEX}:
        return ""
    if len(value) > MAX_PATTERN_LENGTH:
        return f"the pattern is longer than {MAX_PATTERN_LENGTH} characters"
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    return ""


def _parse_rows(base: EvalCheck, fields: Mapping[str, object]) -> EvalCheck | CheckProblem:
    limits = {key: fields[key] for key in ("value", "min", "max") if key in fields}
    if not limits:
        return CheckProblem("value", f"{base.kind} needs a number as its 'value', 'min' or 'max'")
    for key, limit in limits.items():
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            return CheckProblem(key, f"{key!r} must be a number of rows")
    rows = {key: limit for key, limit in limits.items() if isinstance(limit, int)}
    exact = rows.get("value")
    return EvalCheck(
        kind=base.kind,
        path=base.path,
        min_rows=rows.get("min", exact or 0),
        max_rows=rows.get("max", exact),
    )


def _describe_rows(check: EvalCheck) -> str:
    if check.max_rows is None:
        return f"at least {check.min_rows} rows"
    if check.max_rows == check.min_rows:
        return f"{check.min_rows} rows"
    return f"{check.min_rows} to {check.max_rows} rows"
