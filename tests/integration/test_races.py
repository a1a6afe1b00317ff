"""What is swapped for a link while it is used never leads out; `benchmarks races` has more."""

from tests.support.symlink_races import quick_folder, run_race

ROUNDS = 12  # about two seconds


def test_nothing_outside_is_read_or_written_while_folders_are_swapped_for_links() -> None:
    with quick_folder() as folder:
        race = run_race(folder, rounds=ROUNDS)
    assert [(score.name, score.leaks) for score in race.scores if score.leaks] == []
    assert all(score.tries >= ROUNDS for score in race.scores)
    assert race.swaps > ROUNDS
    assert sum(score.reached for score in race.scores) > 0
    assert sum(score.refused for score in race.scores) > 0
