import pytest

from skillhall.policy.scanning import CLUTTER, LITTER, ScanPolicy


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".git", "never part of a skill"),
        ("._pdf", "never part of a skill"),
        ("node_modules", "ignored by name"),
        (".venv", "ignored by name"),
        (".hidden", "hidden"),
        ("pdf", None),
        ("Node_Modules", None),
        ("_pdf", None),
    ],
)
def test_an_entry_is_passed_over_for_a_reason(name: str, reason: str | None) -> None:
    assert ScanPolicy(skip_names=CLUTTER).reason_to_skip(name) == reason


def test_hidden_entries_are_kept_where_that_is_asked() -> None:
    policy = ScanPolicy(skip_hidden=False)
    assert policy.reason_to_skip(".hidden") is None
    assert policy.reason_to_skip(".git") == "never part of a skill"


def test_litter_starts_with_a_dot_or_an_underscore() -> None:
    assert {name[0] for name in LITTER} == {".", "_"}


@pytest.mark.parametrize(("depth", "candidate"), [(1, True), (2, False), (64, False)])
def test_every_folder_is_a_candidate_only_in_a_flat_scan(depth: int, candidate: bool) -> None:
    assert ScanPolicy(depth=depth).every_folder_is_a_candidate is candidate
