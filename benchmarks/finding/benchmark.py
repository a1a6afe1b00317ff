"""The benchmark `finding`: all reports on the evaluation set."""

from collections.abc import Iterator

from benchmarks.finding import ablation, costs, quality, selection
from benchmarks.harness import BenchmarkError
from benchmarks.plan import Plan
from benchmarks.report import Printable


def run(plan: Plan) -> Iterator[Printable]:
    """Yield the reports, or only the ablation if an ingredient is left out.

    Raises:
        BenchmarkError: there is no such ingredient.
    """
    if plan.without:
        known = [ablation.ALL, *ablation.ingredients()]
        if plan.without not in known:
            message = f"no ingredient {plan.without!r}; there are {', '.join(known)}"
            raise BenchmarkError(message)
        yield from ablation.run(plan)
        return
    yield from quality.run(plan)
    yield from selection.run(plan)
    yield from costs.run(plan)
