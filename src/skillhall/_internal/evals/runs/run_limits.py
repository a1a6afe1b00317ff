"""Limits of eval runs: of each run, and of the spending of all runs together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.evals.eval_records import RunKey, RunUsage

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits of one run. A run that reaches one ends as `limited`."""

    timeout: float = 600.0  # seconds
    max_requests: int = 40  # to the model
    max_output: int = 4 * _MIB  # bytes of the reply and of the output files, each

    def serialize(self) -> Mapping[str, object]:
        """Return the limits for JSON output and for the digest of a run."""
        return {
            "timeout": self.timeout,
            "max_requests": self.max_requests,
            "max_output": self.max_output,
        }


class ModelPrice(NamedTuple):
    """The price of a model in US dollars per million tokens."""

    input: float
    output: float

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of these tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


class SpendingLimitReached(Exception):
    """All runs together have reached the limit of tokens or cost.

    Unfinished runs stop.
    """


@dataclass(slots=True)
class RunSpending:
    """The tokens and cost of all runs so far, including unfinished ones."""

    max_tokens: int | None = None
    max_cost: float | None = None
    _usages: dict[RunKey, RunUsage] = field(default_factory=dict)  # of unfinished runs
    tokens: int = 0
    cost: float | None = 0.0  # `None` if the price of a run is unknown

    def update(self, key: RunKey, usage: RunUsage) -> None:
        """Record the usage of a run so far. Raises: SpendingLimitReached."""
        previous = self._usages.get(key)
        self._usages[key] = usage
        self.tokens += usage.total_tokens - (previous.total_tokens if previous else 0)
        if usage.cost is None or self.cost is None:
            self.cost = None
        else:
            self.cost += usage.cost - ((previous.cost or 0.0) if previous else 0.0)
        self.check()

    def finish(self, key: RunKey) -> None:
        """Stop tracking a run that has ended; its usage stays in the totals."""
        self._usages.pop(key, None)

    def add(self, key: RunKey, usage: RunUsage) -> None:
        """Add usage that is final. Raises: SpendingLimitReached."""
        try:
            self.update(key, usage)
        finally:
            self.finish(key)

    def check(self) -> None:
        """Check the totals. Raises: SpendingLimitReached."""
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise SpendingLimitReached(f"the limit of {self.max_tokens} tokens is reached")
        if self.max_cost is not None and self.cost is not None and self.cost >= self.max_cost:
            raise SpendingLimitReached(f"the limit of ${self.max_cost:g} is reached")
