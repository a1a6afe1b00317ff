"""What is swapped for a link while it is used never leads out; `benchmarks races` has more."""

from tests.support.approval_races import run_approval_race
from tests.support.symlink_races import make_memory_folder, run_race

ROUNDS = 12  # about two seconds


def test_nothing_outside_is_read_or_written_while_folders_are_swapped_for_links() -> None:
    with make_memory_folder() as folder:
        race = run_race(folder, rounds=ROUNDS)
    assert [(score.name, score.leaks) for score in race.counts if score.leaks] == []
    assert all(score.attempts >= ROUNDS for score in race.counts)
    assert race.swaps > ROUNDS
    assert sum(score.succeeded for score in race.counts) > 0
    assert sum(score.rejected for score in race.counts) > 0


def test_no_byte_that_was_not_approved_is_handed_out_while_files_change() -> None:
    with make_memory_folder() as folder:
        race = run_approval_race(folder, swaps=1_000, pause=0.0005)
    assert race.leaks == 0
    assert race.swaps == 1_000
    assert all(score.succeeded and score.rejected for score in race.counts)
