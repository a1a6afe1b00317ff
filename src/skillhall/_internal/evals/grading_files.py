"""Files of a graded run: the documented `grading.json`, and our `verdicts.json`.

`grading.json` has the assertions with a verdict. That format cannot represent an assertion that was
not judged, so such an assertion is only in `verdicts.json`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import AssertionResult, GradedRun, RunUsage, Verdict
from skillhall._internal.evals.eval_workspace import GRADING_FILE, VERDICTS_FILE
from skillhall._internal.evals.run_files import parse_usage, read_field, serialize_usage
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.evals.eval_records import RunRecord
    from skillhall._internal.evals.eval_workspace import EvalIteration
    from skillhall._internal.evals.run_files import StoredRun

# The name of the list in the guide, and its name in other versions of the guide.
_RESULT_KEYS = ("assertion_results", "expectations")
_FILE_MODE = 0o644


class DocumentedResult(NamedTuple):
    """One entry of `grading.json`."""

    text: str
    passed: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A result in `verdicts.json`, and all that it depends on besides the run."""

    result: AssertionResult
    digest: str  # of the assertion and its grader
    is_final: bool = True  # otherwise, grading again may give a verdict


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """The content of `verdicts.json`."""

    run_digest: str
    verdicts: tuple[StoredVerdict, ...]
    judge_usage: RunUsage
    judge: str = ""  # the model that judged; "" without one


def digest_record(record: RunRecord) -> str:
    """Return the digest of a run's result, regardless of its arm and repeat."""
    fields = {name: value for name, value in asdict(record).items() if name != "key"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def render_grading(results: Sequence[DocumentedResult]) -> bytes:
    """Return the content of `grading.json`."""
    passed = sum(one.passed for one in results)
    summary = {
        "passed": passed,
        "failed": len(results) - passed,
        "total": len(results),
        "pass_rate": round(passed / len(results), 2) if results else 0.0,
    }
    value = {_RESULT_KEYS[0]: [one._asdict() for one in results], "summary": summary}
    return render_json(value) + b"\n"


def parse_grading(data: bytes) -> tuple[DocumentedResult, ...] | None:
    """Return the results in a `grading.json` of any tool; `None` if it is invalid."""
    try:
        value = parse_json(data, unique_keys=True)
    except InvalidJson:
        return None
    fields = value if isinstance(value, dict) else {}
    entries = next((fields[key] for key in _RESULT_KEYS if key in fields), None)
    if not isinstance(entries, list):
        return None
    try:
        return tuple(
            DocumentedResult(
                read_field(entry, "text", str),
                read_field(entry, "passed", bool),
                str(entry.get("evidence", "")),
            )
            for entry in entries
        )
    except (AttributeError, ValueError):
        return None


def write_verdicts(iteration: EvalIteration, run: RunRecord, stored: StoredVerdicts) -> None:
    """Write both files of a run. Raises: OSError."""
    documented = [
        DocumentedResult(one.result.text, one.result.verdict is Verdict.PASSED, one.result.evidence)
        for one in stored.verdicts
        if one.result.verdict is not Verdict.NOT_JUDGED
    ]
    value = {
        "run_digest": stored.run_digest,
        "results": [_serialize_verdict(one) for one in stored.verdicts],
        "judge_usage": serialize_usage(stored.judge_usage),
        "judge": stored.judge,
    }
    with iteration.open_folder(iteration.run_path(run.key)) as folder:
        # Checks cost nothing, so their verdicts are computed again if a crash has damaged the file.
        is_paid = stored.judge_usage.requests > 0
        folder.write_file(GRADING_FILE, render_grading(documented), _FILE_MODE, fsync=is_paid)
        folder.write_file(VERDICTS_FILE, render_json(value) + b"\n", _FILE_MODE, fsync=is_paid)


def read_verdicts(iteration: EvalIteration, run: RunRecord) -> StoredVerdicts | None:
    """Return the stored verdicts about a run; `None` without any for this result."""
    value = iteration.read_json(f"{iteration.run_path(run.key)}/{VERDICTS_FILE}")
    if not isinstance(value, dict):
        return None
    try:
        stored = StoredVerdicts(
            run_digest=read_field(value, "run_digest", str),
            verdicts=tuple(map(_parse_verdict, read_field(value, "results", list))),
            judge_usage=parse_usage(read_field(value, "judge_usage", dict)),
            judge=str(value.get("judge", "")),  # files of earlier versions have none
        )
    except ValueError:
        return None
    return stored if stored.run_digest == digest_record(run) else None


def read_graded_run(iteration: EvalIteration, stored: StoredRun) -> GradedRun | None:
    """Return a run with its stored verdicts; `None` if it is not graded.

    The run is without its reply.
    """
    verdicts = read_verdicts(iteration, stored.record)
    if verdicts is None:
        return None
    return GradedRun(
        run=replace(stored.record, reply=""),
        results=tuple(one.result for one in verdicts.verdicts),
        judge_usage=verdicts.judge_usage,
        judge=verdicts.judge,
    )


def _serialize_verdict(stored: StoredVerdict) -> dict[str, object]:
    result = stored.result
    return {
        "text": result.text,
        "verdict": str(result.verdict),
        "evidence": result.evidence,
        "grader": result.grader,
        "digest": stored.digest,
        "is_final": stored.is_final,
    }


def _parse_verdict(value: Mapping[str, object]) -> StoredVerdict:
    if not isinstance(value, dict):
        raise ValueError("a result must be an object")  # noqa: TRY004 - one error for invalid values
    result = AssertionResult(
        text=read_field(value, "text", str),
        verdict=Verdict(read_field(value, "verdict", str)),
        evidence=read_field(value, "evidence", str),
        grader=read_field(value, "grader", str),
    )
    is_final = read_field(value, "is_final", bool)
    return StoredVerdict(result, read_field(value, "digest", str), is_final)
