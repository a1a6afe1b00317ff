"""The results of one model: rates, and tokens, time and cost per run of each arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.evals.eval_records import Arm
from skillhall._internal.evals.reports.skill_results import ARM_NAMES, format_cost, format_number
from skillhall._internal.evals.statistics import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.evals.reports.skill_results import Sign

DIFFERENCE = "difference"  # of the arms with and without the skill
ROW_NAMES = {str(arm): name for arm, name in ARM_NAMES.items()} | {DIFFERENCE: DIFFERENCE}
MODEL_HEADS = ("Model", "Runs", "Pass rate", "Tokens per run", "Seconds per run", "Cost per run")


class OverviewRate(NamedTuple):
    """A rate or difference and its 95% interval."""

    name: str
    value: float
    interval: Interval

    @property
    def text(self) -> str:
        """The value and its interval."""
        sign = "+" if self.name == DIFFERENCE else ""
        low, high = self.interval
        return f"{self.value:{sign}.2f} ({low:{sign}.2f} to {high:{sign}.2f})"

    def serialize(self) -> dict[str, object]:
        """Return the rate for JSON output."""
        low, high = self.interval
        return {"name": self.name, "value": self.value, "low": low, "high": high}


class RunMeans(NamedTuple):
    """The means of the runs of an arm; `None` if a value is not known."""

    tokens: float | None = None
    seconds: float | None = None
    cost: float | None = None  # in US dollars

    @classmethod
    def parse(cls, arm: Mapping[str, object]) -> RunMeans:
        """Return the means in the summary of an arm, which is untrusted."""
        tokens, seconds = (
            one.get("mean") if isinstance(one, dict) else None
            for one in (arm.get("tokens"), arm.get("seconds"))
        )
        found = (tokens, seconds, arm.get("cost_per_run"))
        return cls(*(float(one) if isinstance(one, int | float) else None for one in found))

    def subtract(self, other: RunMeans) -> RunMeans:
        """Return the differences of the values that both have."""
        return RunMeans(
            *(
                None if one is None or base is None else one - base
                for one, base in zip(self, other, strict=True)
            )
        )


class ModelRow(NamedTuple):
    """The texts of a row in a table of models. `name` is a key of `ROW_NAMES`."""

    model: str
    name: str
    rate: str
    tokens: str
    seconds: str
    cost: str


class ModelOverview(NamedTuple):
    """The newest results of the test cases with one model."""

    model: str
    rates: tuple[OverviewRate, ...]
    comparison: str  # the verdict about the difference (`ArmVerdict`); "" without it
    means: Mapping[str, RunMeans]  # by arm

    def serialize(self) -> dict[str, object]:
        """Return the results for JSON output."""
        return {
            "model": self.model,
            "rates": [one.serialize() for one in self.rates],
            "verdict": self.comparison.replace("_", " "),
            "runs": {arm: means._asdict() for arm, means in self.means.items()},
        }

    def list_rows(self) -> Iterator[ModelRow]:
        """Yield a row for each arm, and one for the difference."""
        with_skill, without = (
            self.means.get(arm, RunMeans()) for arm in (Arm.WITH_SKILL, Arm.WITHOUT_SKILL)
        )
        for rate in self.rates:
            is_difference = rate.name == DIFFERENCE
            sign: Sign = "+" if is_difference else ""
            means = self.means.get(rate.name, RunMeans())
            means = with_skill.subtract(without) if is_difference else means
            yield ModelRow(
                model=self.model,
                name=rate.name,
                rate=rate.text,
                tokens=format_number(means.tokens, sign),
                seconds=format_number(means.seconds, sign),
                cost=format_cost(means.cost, sign),
            )


def list_table_rows(models: Iterable[ModelOverview]) -> list[tuple[str, ...]]:
    """Return the cells of a table with `MODEL_HEADS`."""
    return [(row.model, ROW_NAMES[row.name], *row[2:]) for one in models for row in one.list_rows()]
