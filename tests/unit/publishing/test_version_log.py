"""Versions that are derived from files, and the file that stores them."""

import pytest

from skillhall._internal.publishing.version_log import (
    Bump,
    VersionLog,
    bump_version,
    parse_version_log,
    record_versions,
    render_version_log,
    yank_version,
)
from skillhall._internal.strict_json import InvalidJson
from skillhall.errors import VersionNotFound

NOW, LATER = "2026-01-31T12:00:00Z", "2026-02-01T12:00:00Z"
PDF = {"SKILL.md": (b"one", 0o644)}
EDITED = {"SKILL.md": (b"two", 0o644), "run.sh": (b"", 0o755)}


def record(
    log: VersionLog, skills: dict[str, dict[str, tuple[bytes, int]]], bump: Bump = Bump.PATCH
) -> VersionLog:
    return record_versions(log, skills, "metadata", bump, LATER if log.releases else NOW)


def versions(log: VersionLog) -> tuple[str, dict[str, str]]:
    release = log.releases[-1]
    return release.version, dict(release.skills)


@pytest.mark.parametrize(
    ("bump", "expected"),
    [(Bump.PATCH, "1.2.4"), (Bump.MINOR, "1.3.0"), (Bump.MAJOR, "2.0.0")],
)
def test_bump_increases_one_part_and_resets_the_lower_ones(bump: Bump, expected: str) -> None:
    assert bump_version("1.2.3", bump) == expected


def test_first_version_is_one() -> None:
    assert versions(record(VersionLog(), {"pdf": PDF})) == ("1.0.0", {"pdf": "1.0.0"})


def test_same_files_give_the_same_log() -> None:
    log = record(VersionLog(), {"pdf": PDF})
    assert record(log, {"pdf": PDF}, Bump.MAJOR) == log


def test_changed_files_get_a_version_with_a_list_of_changes() -> None:
    log = record(record(VersionLog(), {"pdf": PDF}), {"pdf": EDITED}, Bump.MINOR)
    assert versions(log) == ("1.1.0", {"pdf": "1.1.0"})
    latest = log.skills["pdf"].latest
    assert (latest.date, latest.changes) == (LATER, ("changed SKILL.md", "added run.sh"))


def test_changed_mode_gets_a_version() -> None:
    log = record(VersionLog(), {"pdf": PDF})
    assert versions(record(log, {"pdf": {"SKILL.md": (b"one", 0o755)}}))[1] == {"pdf": "1.0.1"}


@pytest.mark.parametrize(
    ("skills", "expected"),
    [
        ({"pdf": PDF, "csv": PDF}, "1.1.0"),  # one more
        ({"csv": PDF}, "2.0.0"),  # one less
    ],
)
def test_collection_version_says_what_happened_to_skills(
    skills: dict[str, dict[str, tuple[bytes, int]]], expected: str
) -> None:
    assert versions(record(record(VersionLog(), {"pdf": PDF}), skills))[0] == expected


def test_changed_metadata_is_a_patch_of_the_collection_only() -> None:
    log = record(VersionLog(), {"pdf": PDF})
    changed = record_versions(log, {"pdf": PDF}, "other", Bump.MAJOR, LATER)
    assert versions(changed) == ("1.0.1", {"pdf": "1.0.0"})


def test_yanked_version_is_left_out_until_the_files_change() -> None:
    log = yank_version(record(VersionLog(), {"pdf": PDF}), "pdf", "1.0.0", "leaks")
    log = record(log, {"pdf": PDF})
    assert versions(log) == ("2.0.0", {})
    log = record(log, {"pdf": EDITED})
    assert versions(log) == ("2.1.0", {"pdf": "1.0.1"})
    assert [one.yanked for one in log.skills["pdf"].releases] == ["leaks", None]


@pytest.mark.parametrize(("name", "version"), [("pdf", "1.0.1"), ("csv", "1.0.0")])
def test_yank_of_an_unknown_version_is_an_error(name: str, version: str) -> None:
    with pytest.raises(VersionNotFound):
        yank_version(record(VersionLog(), {"pdf": PDF}), name, version, "")


def test_file_round_trips() -> None:
    log = yank_version(record(VersionLog(), {"pdf": PDF, "csv": EDITED}), "pdf", "1.0.0", "")
    assert parse_version_log(render_version_log(log)) == log


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"format": 1', b'"format": 2'),
        (b'"1.0.0"', b'"1.0"'),
        (b"2026-01-31T", b"yesterday "),
        (b'"first version"', b"1"),
        (b'"SKILL.md": "', b'"SKILL.md": ["'),
        (b'"pdf": "1.0.0"', b'"pdf": 1'),
    ],
)
def test_damaged_file_is_an_error(old: bytes, new: bytes) -> None:
    data = render_version_log(record(VersionLog(), {"pdf": PDF}))
    assert old in data
    with pytest.raises(InvalidJson):
        parse_version_log(data.replace(old, new))
