"""The files of a run: `run.json` and the documented `timing.json`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.evals.eval_records import Arm, RunKey, RunRecord, RunStatus, RunUsage
from skillhall._internal.strict_json import render_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_T = TypeVar("_T")


class StoredRun(NamedTuple):
    """A complete run in a workspace."""

    record: RunRecord
    digest: str  # of all that the run depends on
    folder: Path


def render_timing(usage: RunUsage) -> bytes:
    """Return the content of `timing.json`."""
    timing = {"total_tokens": usage.total_tokens, "duration_ms": usage.duration_ms}
    return render_json(timing) + b"\n"


def render_run(record: RunRecord, digest: str) -> bytes:
    """Return the content of `run.json`."""
    return render_json(serialize_run(record, digest)) + b"\n"


def serialize_run(record: RunRecord, digest: str) -> dict[str, object]:
    """Return a run for JSON output."""
    return {
        "case_id": record.key.case_id,
        "arm": str(record.key.arm),
        "repeat": record.key.repeat,
        "digest": digest,
        "status": str(record.status),
        "reason": record.reason,
        "reply": record.reply,
        "loaded_skills": list(record.loaded_skills),
        "usage": serialize_usage(record.usage),
    }


def parse_run(value: object, folder: Path) -> StoredRun | None:
    """Return the run in the value of a `run.json`; `None` if the value is invalid."""
    if not isinstance(value, dict):
        return None
    try:
        record = RunRecord(
            key=RunKey(
                read_field(value, "case_id", str),
                Arm(read_field(value, "arm", str)),
                read_field(value, "repeat", int),
            ),
            status=RunStatus(read_field(value, "status", str)),
            reason=read_field(value, "reason", str),
            reply=read_field(value, "reply", str),
            loaded_skills=tuple(map(str, read_field(value, "loaded_skills", list))),
            usage=parse_usage(read_field(value, "usage", dict)),
        )
        return StoredRun(record, read_field(value, "digest", str), folder)
    except ValueError:
        return None


def serialize_usage(usage: RunUsage) -> dict[str, object]:
    """Return the usage of a run for JSON output."""
    return asdict(usage)


def parse_usage(value: Mapping[str, object]) -> RunUsage:
    """Return the usage in a JSON object. Raises: ValueError."""
    cost = value.get("cost")
    return RunUsage(
        requests=read_field(value, "requests", int),
        input_tokens=read_field(value, "input_tokens", int),
        output_tokens=read_field(value, "output_tokens", int),
        duration_ms=read_field(value, "duration_ms", int),
        cost=float(cost) if isinstance(cost, int | float) else None,
    )


def read_field(fields: Mapping[str, object], name: str, kind: type[_T]) -> _T:
    """Return a field of this type. Raises: ValueError."""
    value = fields.get(name)
    if not isinstance(value, kind):
        raise ValueError(name)  # noqa: TRY004 - one error for every invalid value
    return value
