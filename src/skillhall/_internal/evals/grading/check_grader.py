"""Checks of replies and output files that need no model."""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.evals.eval_records import Verdict
from skillhall._internal.evals.grading.check_process import CheckFailed
from skillhall._internal.evals.grading.grader import Grades, Judgment
from skillhall._internal.evals.grading.run_outputs import OutputUnreadable
from skillhall._internal.skill.evals.eval_assertion import CheckKind
from skillhall._internal.strict_json import InvalidJson, parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.evals.grading.check_process import CheckProcess
    from skillhall._internal.evals.grading.grader import GradingTask
    from skillhall._internal.evals.grading.run_outputs import RunOutputs
    from skillhall._internal.skill.evals.eval_assertion import EvalAssertion, EvalCheck

_CONTEXT = 60  # characters of a quote on both sides of a match
_MAX_QUOTE = 300  # characters
_MAX_LISTED = 10  # files


@dataclass(frozen=True, slots=True)
class CheckGrader:
    """The grader of all checks except scripts."""

    process: CheckProcess
    name: str = "check"
    identity: str = "check 1"  # raise the number when a check changes

    def accepts(self, assertion: EvalAssertion) -> bool:
        """Whether the assertion has a check that is not a script."""
        return assertion.check is not None and assertion.check.kind in _CHECKS

    async def grade(self, task: GradingTask, assertions: Sequence[EvalAssertion]) -> Grades:
        """Return a judgment for each assertion."""
        judgments = [
            await self._check(assertion.check, task.outputs)
            for assertion in assertions
            if assertion.check is not None
        ]
        return Grades(judgments)

    async def _check(self, check: EvalCheck, outputs: RunOutputs) -> Judgment:
        try:
            return await _CHECKS[check.kind](check, outputs, self.process)
        except OutputUnreadable as error:
            return Judgment(Verdict.FAILED, str(error))
        except CheckFailed as error:
            return Judgment(Verdict.NOT_JUDGED, str(error))


_Check: TypeAlias = Callable[["EvalCheck", "RunOutputs", "CheckProcess"], Awaitable[Judgment]]


async def _check_contains(check: EvalCheck, outputs: RunOutputs, _: CheckProcess) -> Judgment:
    text = outputs.read_text(check.path)
    start = text.find(check.value)
    found = None if start < 0 else (start, start + len(check.value))
    return _judge_match(check, text, found, is_wanted=check.kind is CheckKind.CONTAINS)


async def _check_equals(check: EvalCheck, outputs: RunOutputs, _: CheckProcess) -> Judgment:
    text = outputs.read_text(check.path).strip()
    return _judge(text == check.value.strip(), f"{_name(check)}: {_shorten(text)!r}")


async def _check_regex(check: EvalCheck, outputs: RunOutputs, process: CheckProcess) -> Judgment:
    text = outputs.read_text(check.path)
    found = await process.find_match(check.value, text)
    return _judge_match(check, text, found, is_wanted=check.kind is CheckKind.REGEX)


async def _check_schema(check: EvalCheck, outputs: RunOutputs, process: CheckProcess) -> Judgment:
    text = outputs.read_text(check.path)
    mismatch = await process.find_mismatch(check.schema, text)
    return _judge(not mismatch, mismatch or f"{_name(check)} matches: {_shorten(text)!r}")


async def _check_file(check: EvalCheck, outputs: RunOutputs, _: CheckProcess) -> Judgment:
    found = outputs.find_files(check.path)
    shown = ", ".join([*outputs.files][:_MAX_LISTED]) or "none"
    return _judge(bool(found), ", ".join(found[:_MAX_LISTED]) or f"output files: {shown}")


async def _check_rows(check: EvalCheck, outputs: RunOutputs, _: CheckProcess) -> Judgment:
    text = outputs.read_text(check.path)
    is_jsonl = check.path.lower().endswith((".jsonl", ".ndjson"))
    try:
        rows = _count_json_lines(text) if is_jsonl else _count_csv_rows(text)
    except InvalidJson as error:
        return Judgment(Verdict.FAILED, f"{check.path}: {error}")
    except csv.Error as error:
        return Judgment(Verdict.FAILED, f"{check.path} is not a CSV file: {error}")
    is_enough = check.min_rows <= rows
    is_allowed = check.max_rows is None or rows <= check.max_rows
    return _judge(is_enough and is_allowed, f"{check.path} has {rows} rows")


_CHECKS: Mapping[CheckKind, _Check] = {
    CheckKind.CONTAINS: _check_contains,
    CheckKind.NOT_CONTAINS: _check_contains,
    CheckKind.EQUALS: _check_equals,
    CheckKind.REGEX: _check_regex,
    CheckKind.NOT_REGEX: _check_regex,
    CheckKind.JSON_SCHEMA: _check_schema,
    CheckKind.FILE_EXISTS: _check_file,
    CheckKind.ROW_COUNT: _check_rows,
}


def _count_csv_rows(text: str) -> int:
    """Return the number of rows below the header. Raises: csv.Error."""
    rows = sum(1 for row in csv.reader(io.StringIO(text, newline="")) if row)
    return max(0, rows - 1)


def _count_json_lines(text: str) -> int:
    """Return the number of JSON values, one per line. Raises: InvalidJson."""
    # Not `splitlines`: some characters that it splits at may be in a JSON string.
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            parse_json(line.encode(), unique_keys=False)
        except InvalidJson as error:
            raise InvalidJson(f"row {number}: {error}") from None
    return len(lines)


def _judge_match(
    check: EvalCheck, text: str, found: tuple[int, int] | None, *, is_wanted: bool
) -> Judgment:
    if found is None:
        return _judge(not is_wanted, f"{_name(check)} has no match: {_shorten(text)!r}")
    start, end = max(0, found[0] - _CONTEXT), found[1] + _CONTEXT
    return _judge(is_wanted, f"{_name(check)}: {_shorten(text[start:end])!r}")


def _judge(passed: bool, evidence: str) -> Judgment:  # noqa: FBT001 - the verdict itself
    return Judgment(Verdict.PASSED if passed else Verdict.FAILED, evidence)


def _name(check: EvalCheck) -> str:
    return check.path or "reply"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_QUOTE else f"{text[:_MAX_QUOTE]}…"
