"""The latest eval results of a skill in a few numbers, for every surface.

Results are bound to the digest of the skill's files: those of other files are from an older
version, and are shown as such.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.eval_summary import ArmVerdict
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.reports.model_overview import (
    DIFFERENCE,
    ModelOverview,
    OverviewRate,
    RunMeans,
)
from skillhall._internal.evals.run_files import read_field
from skillhall._internal.evals.statistics import Interval
from skillhall._internal.evals.summary_files import SUMMARY_FILE
from skillhall._internal.evals.triggers.trigger_files import RESULT_FILE
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skillhall._internal.evals.eval_summary import EvalSubject
    from skillhall._internal.evals.eval_workspace import EvalIteration

_MAX_ITERATIONS = 20  # iterations that are searched, the newest first
_SHORT_DIGEST = len("sha256:") + 12
_TRIGGER_RATES = ("recall", "precision", "false_triggers")
_LABELS = {
    Arm.WITH_SKILL: "pass rate with the skill",
    Arm.WITHOUT_SKILL: "without it",
    Arm.OLD_SKILL: "with the old version",
    DIFFERENCE: "difference",
    "recall": "trigger recall",
    "precision": "precision",
    "false_triggers": "false triggers",
}


class ResultOverview(NamedTuple):
    """The rates of test cases and triggers, and whether they are of current files."""

    digest: str  # of the evaluated files
    is_current: bool
    model: str
    rates: tuple[OverviewRate, ...]
    verdicts: tuple[str, ...]  # phrases such as "better" or "triggers as expected"
    models: tuple[ModelOverview, ...] = ()  # of the test cases, the newest first

    @property
    def comparison(self) -> str:
        """The verdict about the difference from runs without the skill; "" without it."""
        return self.models[0].comparison if self.models else ""

    @property
    def text(self) -> str:
        """One line for the terminal."""
        rates = ", ".join(f"{_LABELS[one.name]} {one.text}" for one in self.rates)
        version = "" if self.is_current else f"; older version {self.digest[:_SHORT_DIGEST]}"
        others = (f"; {one.model}: {_describe(one.comparison)}" for one in self.models[1:])
        return f"{rates or 'no rates'}; {'; '.join(self.verdicts)}{''.join(others)}{version}"

    def serialize(self) -> dict[str, object]:
        """Return the overview for JSON output."""
        return {
            "digest": self.digest,
            "current": self.is_current,
            "model": self.model,
            "rates": [one.serialize() for one in self.rates],
            "verdicts": [*self.verdicts],
            "models": [one.serialize() for one in self.models],
        }


class _Part(NamedTuple):
    """The results in one file of an iteration."""

    file: str
    name: str  # of the skill
    digest: str
    model: str
    rates: tuple[OverviewRate, ...]
    verdicts: tuple[str, ...]
    cases: ModelOverview | None = None
    is_complete: bool = True  # has all cases


def find_skill_overview(
    name: str, folder: str, results_folder: str, compute_digest: Callable[[], str]
) -> ResultOverview | None:
    """Return the results of the skill in `folder`; `None` if there are none.

    They are in `results_folder`, else next to the skill. The digest is computed only if needed.
    """
    workspace = EvalWorkspace.of_skill(folder, results_folder)
    if not workspace.iterations():
        return None
    try:
        return find_overview(workspace, name, compute_digest())
    except (OSError, SkillhallError):  # a file of the skill cannot be read
        return None


def find_overview(workspace: EvalWorkspace, name: str, digest: str) -> ResultOverview | None:
    """Return the results for this digest, else for the last evaluated version.

    `None` if there are no results of a skill with this name.
    """
    newest_first = workspace.iterations()[: -_MAX_ITERATIONS - 1 : -1]
    parts = [part for iteration in newest_first for part in _read_parts(iteration)]
    # The newest come first, but a few selected cases do not replace the results of all.
    parts = [part for part in parts if part.name == name]
    parts.sort(key=lambda part: not part.is_complete)
    if not parts:
        return None
    shown = digest if any(part.digest == digest for part in parts) else parts[0].digest
    # The newest result of each kind: of test cases, and of triggers.
    chosen = {part.file: part for part in reversed(parts) if part.digest == shown}
    ordered = [chosen[file] for file in _PARSERS if file in chosen]
    by_model: dict[str, ModelOverview] = {}
    for part in parts:
        if part.digest == shown and part.cases is not None:
            by_model.setdefault(part.model, part.cases)
    return ResultOverview(
        digest=shown,
        is_current=shown == digest,
        model=", ".join(dict.fromkeys(part.model for part in ordered)),
        rates=tuple(rate for part in ordered for rate in part.rates),
        verdicts=tuple(verdict for part in ordered for verdict in part.verdicts),
        models=tuple(by_model.values()),
    )


def find_models(workspace: EvalWorkspace, subject: EvalSubject) -> tuple[ModelOverview, ...]:
    """Return the results of each model for the same files of a skill."""
    overview = find_overview(workspace, subject.skill_name, subject.skill_digest)
    return overview.models if overview is not None and overview.is_current else ()


def _read_parts(iteration: EvalIteration) -> Iterator[_Part]:
    """Yield the results in an iteration. Its files are untrusted; skips invalid ones."""
    for file, parse in _PARSERS.items():
        value = iteration.read_json(file)
        if isinstance(value, dict):
            with suppress(ValueError):
                yield parse(value)


def _parse_summary(value: Mapping[str, object]) -> _Part:
    rates, means = [], {}
    for arm, fields in read_field(value, "arms", dict).items():
        rate = fields.get("pass_rate") if isinstance(fields, dict) else None
        if arm in [*Arm] and rate is not None:
            rates.append(_parse_rate(arm, rate))
            means[arm] = RunMeans.parse(fields)
    comparison = ""
    for one in read_field(value, "differences", list):
        if _to_object(one).get("baseline") != Arm.WITHOUT_SKILL:
            continue
        comparison = ArmVerdict(read_field(one, "verdict", str))
        if one.get("difference") is not None:
            rates.append(_parse_rate(DIFFERENCE, {**one, "value": one["difference"]}))
    model = read_field(value, "agent", str)
    return _Part(
        SUMMARY_FILE,
        read_field(value, "skill_name", str),
        read_field(value, "skill_digest", str),
        model,
        tuple(rates),
        (_describe(comparison),) if comparison else (),
        ModelOverview(model, tuple(rates), comparison, means),
        value.get("complete") is not False,
    )


def _parse_triggers(value: Mapping[str, object]) -> _Part:
    rates = [
        _parse_rate(name, value[name])
        for name in _TRIGGER_RATES
        if _to_object(value.get(name)).get("value") is not None
    ]
    return _Part(
        RESULT_FILE,
        read_field(value, "skill", str),
        read_field(value, "skill_digest", str),
        read_field(value, "model", str),
        tuple(rates),
        (read_field(value, "verdict", str),),
    )


_PARSERS: Mapping[str, Callable[[Mapping[str, object]], _Part]] = {
    SUMMARY_FILE: _parse_summary,
    RESULT_FILE: _parse_triggers,
}


def _describe(comparison: str) -> str:
    return comparison.replace("_", " ")


def _parse_rate(name: str, value: object) -> OverviewRate:
    """Return a rate. Raises: ValueError."""
    fields = _to_object(value)
    numbers = [fields.get(key) for key in ("value", "low", "high")]
    if not all(isinstance(one, int | float) for one in numbers):
        raise ValueError(name)
    rate, low, high = (float(one) for one in numbers if isinstance(one, int | float))
    return OverviewRate(name, rate, Interval(low, high))


def _to_object(value: object) -> dict[str, object]:
    """Return an object. Raises: ValueError."""
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 - one error for invalid values
    return value
