"""The files of trigger evals in an iteration of a skill's workspace.

`triggers.jsonl` gets a line for each run as soon as it ends, so that the next command continues
where a killed one stopped. `triggers.json` is the result of the last command.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_records import RunStatus
from skillhall._internal.evals.eval_workspace import PLAN_FILE, hold_lock
from skillhall._internal.evals.run_files import parse_usage, read_field, serialize_usage
from skillhall._internal.evals.triggers.trigger_records import TriggerReply, TriggerRun
from skillhall._internal.evals.triggers.trigger_score import (
    QueryScore,
    TriggerRate,
    TriggerScore,
    score_triggers,
)
from skillhall._internal.fs.write import lock_handle
from skillhall._internal.skill.evals.eval_file import TriggerQuery
from skillhall._internal.strict_json import InvalidJson, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.evals.eval_workspace import EvalIteration, EvalWorkspace
    from skillhall._internal.evals.triggers.trigger_records import TriggerTarget

RESULT_FILE = "triggers.json"
JOURNAL_FILE = "triggers.jsonl"
MAX_JOURNAL_BYTES = 64 * 1024 * 1024
_FILE_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerResult:
    """The result of the last command: the runs of a skill's queries with one model."""

    skill: str
    skill_digest: str
    model: str
    repeats: int
    catalog: tuple[str, ...]  # the names of all skills that the agent saw
    runs: tuple[TriggerRun, ...]

    @property
    def score(self) -> TriggerScore:
        """The score of the runs."""
        return score_triggers(self.skill, self.runs)


class TriggerJournal:
    """The runs of an iteration, one JSON object in each line."""

    def __init__(self, iteration: EvalIteration) -> None:
        self._path: Path = iteration.path / JOURNAL_FILE

    def append(self, run: TriggerRun) -> None:
        """Add a run; it is on the disk when this returns. Raises: OSError."""
        line = json.dumps(_serialize_run(run), ensure_ascii=True).encode() + b"\n"
        with self._open() as handle:
            size = os.fstat(handle).st_size
            # A killed command may have left an incomplete line.
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(handle, line)
            os.fsync(handle)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other commands from executing the same runs. Raises: Busy, OSError."""
        with self._open() as handle, hold_lock(lock_handle(handle, waits=False)):
            yield

    @contextmanager
    def _open(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(self._path, flags, _FILE_MODE)
        try:
            yield handle
        finally:
            os.close(handle)

    def read(self) -> list[TriggerRun]:
        """Return the runs, the oldest first; invalid lines are skipped."""
        try:
            handle = os.open(self._path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return []
        with open(handle, "rb") as file:  # noqa: PTH123 - a descriptor that follows no link
            lines = file.read(MAX_JOURNAL_BYTES).split(b"\n")
        return [run for line in lines if (run := _parse_line(line))]


def read_known_replies(
    iterations: Iterable[EvalIteration],
) -> dict[tuple[str, int], TriggerReply]:
    """Return the complete replies of iterations, by digest and number of the repeat."""
    return {
        (run.digest, run.repeat): run.reply
        for iteration in iterations
        for run in TriggerJournal(iteration).read()
        if run.is_complete
    }


def open_trigger_iteration(workspace: EvalWorkspace, target: TriggerTarget) -> EvalIteration:
    """Return the newest iteration of these files of the skill, else a new one.

    Raises: OSError.
    """
    newest = next(reversed(workspace.iterations()), None)
    if newest is not None:
        plan = newest.read_json(PLAN_FILE)
        if isinstance(plan, dict) and plan.get("skill_digest") == target.digest:
            return newest
    plan = {"skill_name": target.name, "skill_digest": target.digest, "repeats": 1}
    return workspace.create_iteration(plan, 1)


def write_trigger_result(iteration: EvalIteration, result: TriggerResult) -> None:
    """Write `triggers.json`. Raises: OSError."""
    iteration.write_json(RESULT_FILE, serialize_result(result))


def read_trigger_result(iteration: EvalIteration) -> TriggerResult | None:
    """Return the result in an iteration; `None` if it is missing or invalid."""
    value = iteration.read_json(RESULT_FILE)
    if not isinstance(value, dict):
        return None
    try:
        runs = [_parse_run(one) for one in read_field(value, "runs", list)]
        return TriggerResult(
            skill=read_field(value, "skill", str),
            skill_digest=read_field(value, "skill_digest", str),
            model=read_field(value, "model", str),
            repeats=read_field(value, "repeats", int),
            catalog=tuple(map(str, read_field(value, "catalog", list))),
            runs=tuple(runs),
        )
    except ValueError:
        return None


def serialize_result(result: TriggerResult) -> dict[str, object]:
    """Return the content of `triggers.json`."""
    return {
        "skill": result.skill,
        "skill_digest": result.skill_digest,
        "model": result.model,
        "repeats": result.repeats,
        "catalog": [*result.catalog],
        **serialize_score(result.score),
        "runs": [_serialize_run(run) for run in result.runs],
    }


def serialize_score(score: TriggerScore) -> dict[str, object]:
    """Return a score for JSON output."""
    return {
        "verdict": score.verdict,
        "is_enough": not score.shortage,
        "recall": serialize_rate(score.recall),
        "precision": serialize_rate(score.precision),
        "false_triggers": serialize_rate(score.false_triggers),
        "confusion": {
            "should_trigger": _serialize_taken(score.count_taken(should_trigger=True)),
            "should_not_trigger": _serialize_taken(score.count_taken(should_trigger=False)),
        },
        "queries": [_serialize_query(one) for one in score.queries],
    }


def serialize_rate(rate: TriggerRate) -> dict[str, object]:
    """Return a rate for JSON output."""
    low, high = rate.interval
    return {"value": rate.value, "low": low, "high": high, "queries": rate.queries}


def _serialize_taken(counts: Mapping[str, int]) -> list[dict[str, object]]:
    return [{"skill": name or None, "runs": count} for name, count in counts.items()]


def _serialize_query(score: QueryScore) -> dict[str, object]:
    return {
        "query": score.query.query,
        "should_trigger": score.query.should_trigger,
        "runs": score.runs,
        "loads": score.loads,
        "failed": score.failed,
        "rate": score.rate,
        "taken": _serialize_taken(score.taken),
    }


def _serialize_run(run: TriggerRun) -> dict[str, object]:
    return {
        "query": run.query.query,
        "should_trigger": run.query.should_trigger,
        "repeat": run.repeat,
        "digest": run.digest,
        "status": str(run.reply.status),
        "loaded_skills": [*run.reply.loaded_skills],
        "reason": run.reply.reason,
        "reply": run.reply.reply,
        "usage": serialize_usage(run.reply.usage),
    }


def _parse_line(line: bytes) -> TriggerRun | None:
    try:
        return _parse_run(parse_json(line, unique_keys=True)) if line else None
    except (InvalidJson, ValueError):
        return None


def _parse_run(value: object) -> TriggerRun:
    """Return the run in a JSON value. Raises: ValueError."""
    if not isinstance(value, dict):
        raise ValueError("a run must be an object")  # noqa: TRY004 - one error for invalid values
    reply = TriggerReply(
        status=RunStatus(read_field(value, "status", str)),
        loaded_skills=tuple(map(str, read_field(value, "loaded_skills", list))),
        reason=read_field(value, "reason", str),
        reply=read_field(value, "reply", str),
        usage=parse_usage(read_field(value, "usage", dict)),
    )
    return TriggerRun(
        query=TriggerQuery(
            read_field(value, "query", str), read_field(value, "should_trigger", bool)
        ),
        repeat=read_field(value, "repeat", int),
        digest=read_field(value, "digest", str),
        reply=reply,
    )


def find_result(iterations: Sequence[EvalIteration]) -> TriggerResult | None:
    """Return the result of the newest iteration that has one."""
    return next(filter(None, map(read_trigger_result, reversed(iterations))), None)
