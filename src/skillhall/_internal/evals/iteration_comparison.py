"""Comparison of two iterations, paired by case.

They are of one skill before and after a change, or of two skills. Workspaces of other tools can be
compared, too, if they have the documented `grading.json` files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from skillhall._internal.evals.eval_aggregation import compare_cases
from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.eval_workspace import (
    GRADING_FILE,
    EvalIteration,
    EvalWorkspace,
    list_folders,
)
from skillhall._internal.evals.grading_files import parse_grading, read_graded_run
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillhall._internal.evals.eval_summary import ArmDifference

_CASE_PREFIX, _RUN_PREFIX = "eval-", "run-"


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """The graded runs of one arm of an iteration."""

    iteration: EvalIteration
    arm: Arm
    pass_rates: Mapping[str, list[float]]  # of the runs, by case
    assertions: Mapping[str, frozenset[str]]  # their texts, by case

    @property
    def pass_rate(self) -> float | None:
        """The mean over cases; `None` without graded runs."""
        rates = [fmean(rates) for rates in self.pass_rates.values()]
        return fmean(rates) if rates else None


@dataclass(frozen=True, slots=True)
class IterationComparison:
    """Two sides and their difference, which is above 0 if the second one is better."""

    before: ComparedSide
    after: ComparedSide
    difference: ArmDifference

    @property
    def case_changes(self) -> dict[str, tuple[float, float]]:
        """The cases whose pass rates differ, with both rates, the largest loss first."""
        before, after = self.before.pass_rates, self.after.pass_rates
        rates = {one: (fmean(before[one]), fmean(after[one])) for one in set(before) & set(after)}
        changed = {one: pair for one, pair in rates.items() if pair[0] != pair[1]}
        return dict(sorted(changed.items(), key=lambda item: (item[1][1] - item[1][0], item[0])))

    @property
    def unpaired_cases(self) -> list[str]:
        """The cases that only one side has."""
        return sorted(set(self.before.pass_rates) ^ set(self.after.pass_rates))

    @property
    def changed_assertions(self) -> list[str]:
        """The common cases whose assertions differ: their rates are not comparable."""
        before, after = self.before.assertions, self.after.assertions
        return sorted(one for one in set(before) & set(after) if before[one] != after[one])


def find_iteration(path: str) -> EvalIteration:
    """Return the iteration at a path, or the last graded one of a workspace or skill.

    Raises: ConfigInvalid if there is none.
    """
    folder = Path(path).absolute()
    iteration = EvalIteration(folder).with_planned_repeats()
    if any(_iter_gradings(iteration)):
        return iteration
    for workspace in (EvalWorkspace(folder), EvalWorkspace.of_skill(path)):
        for one in reversed(workspace.iterations()):
            if any(_iter_gradings(one)):
                return one
    raise ConfigInvalid(path, "there are no graded runs")


def compare_iterations(before: ComparedSide, after: ComparedSide) -> IterationComparison:
    """Return the comparison of two sides."""
    difference = compare_cases((after.arm, after.pass_rates), (before.arm, before.pass_rates))
    return IterationComparison(before, after, difference)


def read_side(iteration: EvalIteration, arm: Arm) -> ComparedSide:
    """Return the graded runs of one arm."""
    rates: defaultdict[str, list[float]] = defaultdict(list)
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for stored in iteration.iter_runs():
        graded = read_graded_run(iteration, stored)
        if stored.record.key.arm is arm and graded is not None:
            case_id = stored.record.key.case_id
            texts[case_id] |= {one.text for one in graded.results}
            if graded.pass_rate is not None:
                rates[case_id].append(graded.pass_rate)
    if not rates:
        _read_documented(iteration, arm, rates, texts)
    frozen = {case_id: frozenset(one) for case_id, one in texts.items()}
    return ComparedSide(iteration, arm, dict(rates), frozen)


def _read_documented(
    iteration: EvalIteration,
    arm: Arm,
    rates: defaultdict[str, list[float]],
    texts: defaultdict[str, set[str]],
) -> None:
    """Read `grading.json` files, whose cases have the names of their folders."""
    for path in _iter_gradings(iteration):
        case, folder, *_ = path.split("/")
        results = parse_grading(iteration.read_bytes(path) or b"")
        if folder == arm and results:
            case_id = case.removeprefix(_CASE_PREFIX)
            texts[case_id] |= {one.text for one in results}
            rates[case_id].append(fmean(one.passed for one in results))


def _iter_gradings(iteration: EvalIteration) -> Iterator[str]:
    """Yield the paths of all `grading.json` files."""
    for case in list_folders(iteration.path, _CASE_PREFIX):
        for arm in list_folders(iteration.path / case):
            runs = list_folders(iteration.path / case / arm, _RUN_PREFIX)
            for folder in (f"{case}/{arm}", *(f"{case}/{arm}/{run}" for run in runs)):
                if iteration.read_bytes(f"{folder}/{GRADING_FILE}") is not None:
                    yield f"{folder}/{GRADING_FILE}"
