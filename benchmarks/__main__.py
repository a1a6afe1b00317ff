"""`python -m benchmarks`: runs benchmarks and prints their reports."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import (
    backup,
    cloning,
    crowd,
    discovery,
    duplicates,
    editor,
    evals,
    growth,
    hammer,
    mcp,
    races,
    serving,
    soak,
    stalls,
    startup,
    trust,
    walks,
    web,
    workspace,
)
from benchmarks.finding import benchmark as finding
from benchmarks.harness import DEFAULT_ROUNDS, BenchmarkError
from benchmarks.plan import SCALES, Plan, check_executable, installed_executable
from benchmarks.report import Printable, render_json
from benchmarks.trees import ForeignFolderError, default_data_folder

# A benchmark is a function from a plan to reports, listed here by name.
BENCHMARKS: dict[str, Callable[[Plan], Iterator[Printable]]] = {
    "discovery": discovery.run,
    "startup": startup.run,
    "trust": trust.run,
    "cloning": cloning.run,
    "duplicates": duplicates.run,
    "finding": finding.run,
    "serving": serving.run,
    "mcp": mcp.run,
    "growth": growth.run,
    "workspace": workspace.run,
    "evals": evals.run,
    "backup": backup.run,
    "web": web.run,
    "editor": editor.run,
    "stalls": stalls.run,
}

# Trials pass or fail instead of measuring.
TRIALS: dict[str, Callable[[float], bool]] = {
    "races": races.run,
    "hammer": hammer.run,
    "crowd": crowd.run,
    "soak": soak.run,
}
WALKS = "walks"  # counts functions instead of seconds


def main() -> int:
    """Run the command and return 0 if all benchmarks ran and all trials passed."""
    options = _parser().parse_args()
    if options.benchmark == WALKS:
        return 0 if walks.run(verbose=options.verbose) else 1
    if options.benchmark in TRIALS:
        seconds = options.seconds if options.minutes is None else options.minutes * 60
        return 0 if TRIALS[options.benchmark](seconds) else 1
    plan = Plan(
        SCALES[options.scale],
        options.rounds,
        options.data,
        options.executable,
        options.half,
        options.without,
        tuple(options.sizes),
        options.store,
    )
    chosen = list(BENCHMARKS) if options.benchmark == "all" else [options.benchmark]
    reports: list[Printable] = []
    failures = [name for name in chosen if not _run(name, plan, reports, as_json=options.json)]
    if options.json:
        print(render_json(reports))
    return 1 if failures else 0


def _run(name: str, plan: Plan, reports: list[Printable], *, as_json: bool) -> bool:
    """Run a benchmark, append its reports to `reports`, and return whether it ran."""
    try:
        check_executable(plan.executable)
        for report in BENCHMARKS[name](plan):
            reports.append(report)
            if not as_json:
                print(report.render(), end="\n\n", flush=True)
    except (BenchmarkError, ForeignFolderError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Ratios of Skillhall to a baseline."
    )
    parser.add_argument(
        "benchmark", nargs="?", choices=[*BENCHMARKS, *TRIALS, WALKS, "all"], default="all"
    )
    parser.add_argument(
        "--rounds",
        type=_positive,
        default=DEFAULT_ROUNDS,
        help="number of rounds, after a discarded first one",
    )
    parser.add_argument("--seconds", type=float, default=10, help="duration of a trial")
    parser.add_argument("--minutes", type=float, help="the same, in minutes")
    parser.add_argument("--scale", choices=list(SCALES), default="full", help="sizes of the trees")
    parser.add_argument(
        "--data", type=Path, default=default_data_folder(), help="folder of the generated trees"
    )
    parser.add_argument(
        "--executable", type=Path, default=installed_executable(), help="the skillhall to measure"
    )
    parser.add_argument(
        "--half",
        choices=["reporting", "tuning"],
        default="reporting",
        help="half of the evaluation set of 'finding'",
    )
    parser.add_argument(
        "--without",
        metavar="INGREDIENT",
        default="",
        help="in 'finding', only measure the ranking without this ingredient, or 'all' in turn",
    )
    parser.add_argument(
        "--sizes",
        type=_positive,
        nargs="+",
        default=[],
        metavar="N",
        help="numbers of skills in 'growth', besides the baseline",
    )
    parser.add_argument(
        "--store",
        choices=["both", "folders", "postgres"],
        default="both",
        help="store of the skills in 'growth'",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--verbose", action="store_true", help="print the functions of each walk")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        message = f"{text!r} is not a positive integer"
        raise argparse.ArgumentTypeError(message)
    return number


if __name__ == "__main__":
    sys.exit(main())
