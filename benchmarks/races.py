"""Readers and writers, while another process swaps folders for links or changes approved files.

None of them may leave the root, or hand out a byte that was not approved. The unprotected controls
show that the race can be lost.
"""

from collections.abc import Iterator

from tests.support.approval_races import run_approval_race
from tests.support.symlink_races import AttemptCounts, RaceResult, make_memory_folder, run_race

HEADER = ("name", "tries", "inside", "refused", "leaks")


def run(seconds: float) -> bool:
    """Print the results and return whether nothing leaked."""
    with make_memory_folder() as folder:
        race = run_race(folder, seconds=seconds, naive=True)
    print("\n".join(_lines(race, f"races, {seconds:g} s")), flush=True)
    with make_memory_folder() as folder:
        approvals = run_approval_race(folder)
    print("\n".join(_lines(approvals, "approved files")), flush=True)
    return race.leaks == 0 and approvals.leaks == 0


def _lines(race: RaceResult, title: str) -> Iterator[str]:
    rows = [HEADER, *(_cells(score) for score in race.counts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    reads = sum(score.attempts for score in race.counts)
    yield f"{title}: {reads} reads and writes against {race.swaps} swaps"
    for name, *figures in rows:
        cells = (cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True))
        yield f"  {name.ljust(widths[0])}  {'  '.join(cells)}"
    for score in race.naive_counts:
        yield f"control: {score.leaks} leaks of a naive {score.name} in {score.attempts} tries"
    yield f"leaks: {race.leaks} {'FAIL' if race.leaks else 'PASS'}"


def _cells(score: AttemptCounts) -> tuple[str, ...]:
    return (score.name, *map(str, (score.attempts, score.succeeded, score.rejected, score.leaks)))
