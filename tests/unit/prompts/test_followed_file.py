"""The list of followed repositories: what it takes, and what becomes of a broken file."""

import json
from pathlib import Path

import pytest

from skillhall._internal.prompts.followed_file import (
    FILE,
    MAX_FOLLOWED,
    FollowedList,
    parse_followed,
)
from skillhall._internal.prompts.prompt_model import FollowedRepository, SourceSelector
from skillhall._internal.prompts.repo_source import GitHosts
from skillhall.errors import (
    ConfigInvalid,
    Conflict,
    FieldRefused,
    RecordNotFound,
    SkillhallError,
    SourceRejected,
)

HOSTS = GitHosts("https://github.com")
PDF, ODT = (
    FollowedRepository("https://example.com/pdf.git"),
    FollowedRepository("https://example.com/odt.git", "s", "v2"),
)


def test_what_is_added_is_read_in_order_by_whoever_comes_next(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    assert FollowedList(folder).read() == ()
    FollowedList(folder).add(PDF)
    assert FollowedList(folder).add(ODT) == (PDF, ODT)
    assert FollowedList(folder).remove(PDF.key) == (PDF, (ODT,))
    assert FollowedList(folder).read() == (ODT,)
    assert [item.name for item in Path(folder).iterdir()] == [FILE]


def test_nothing_is_added_twice_or_beyond_the_limit_and_nothing_removed_that_is_not_there(
    tmp_path: Path,
) -> None:
    those = FollowedList(str(tmp_path))
    for number in range(MAX_FOLLOWED):
        those.add(FollowedRepository(f"https://example.com/{number}.git"))
    with pytest.raises(Conflict):
        those.add(FollowedRepository("https://example.com/0.git"))
    with pytest.raises(FieldRefused) as full:
        those.add(PDF)
    assert full.value.hint == "remove one first"
    with pytest.raises(RecordNotFound):
        those.remove(PDF.key)
    assert len(those.read()) == MAX_FOLLOWED


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b'{"version": 2, "repositories": []}',
        b'{"version": 1, "repositories": {}}',
        b'{"version": 1, "repositories": ["https://example.com/a.git"]}',
        b'{"version": 1, "repositories": [{"repo": ""}]}',
        b'{"version": 1, "repositories": [{"repo": "https://example.com/a.git", "path": 1}]}',
        json.dumps({"version": 1, "repositories": [{"repo": f"r{n}"} for n in range(21)]}).encode(),
        b" " * 200_000,
    ],
)
def test_a_broken_file_is_told_of_and_left_as_it_is(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    those = FollowedList(str(tmp_path))
    for call in (those.read, lambda: those.add(PDF), lambda: those.remove(PDF.key)):
        with pytest.raises(ConfigInvalid, match=FILE) as told:
            call()
        assert told.value.hint
    assert (tmp_path / FILE).read_bytes() == data


def test_a_link_is_no_list(tmp_path: Path) -> None:
    (tmp_path / "other").write_text('{"version": 1, "repositories": []}', encoding="ascii")
    (tmp_path / FILE).symlink_to("other")
    with pytest.raises(ConfigInvalid):
        FollowedList(str(tmp_path)).read()


@pytest.mark.parametrize(
    ("asked", "followed"),
    [
        (SourceSelector(" acme/x "), FollowedRepository("https://github.com/acme/x.git")),
        (
            SourceSelector("acme/x", branch="main"),
            FollowedRepository("https://github.com/acme/x.git"),
        ),
        (
            SourceSelector("acme/x/a/b@v2"),
            FollowedRepository("https://github.com/acme/x.git", "a/b", "v2"),
        ),
        (
            SourceSelector("https://h.example/x.git", "/a/", "v2"),
            FollowedRepository("https://h.example/x.git", "a", "v2"),
        ),
        (
            SourceSelector("https://github.com/acme/x/tree/dev/skills"),
            FollowedRepository("https://github.com/acme/x.git", "skills", "dev"),
        ),
    ],
)
def test_a_place_is_kept_in_one_way_of_writing(
    asked: SourceSelector, followed: FollowedRepository
) -> None:
    assert parse_followed(asked, HOSTS) == followed
    assert parse_followed(SourceSelector(*followed), HOSTS) == followed


@pytest.mark.parametrize(
    "asked",
    [
        SourceSelector(""),
        SourceSelector("./folder"),
        SourceSelector("/etc"),
        SourceSelector("file:///etc"),
        SourceSelector("git@example.com:acme/x.git"),
        SourceSelector("ssh://git@example.com/x.git"),
        SourceSelector("http://127.0.0.1/x.git"),
        SourceSelector("http://example.com/x.git"),
        SourceSelector("https://example.com/skills.zip"),
        SourceSelector("python:json"),
        SourceSelector("mcp:label"),
        SourceSelector("acme/x", "../y"),
        SourceSelector("acme/x", branch="--upload-pack=x"),
        SourceSelector("https://example.com/x.git", "a" * 1001),
    ],
)
def test_only_repositories_by_https_are_followed(asked: SourceSelector) -> None:
    with pytest.raises(SourceRejected):
        parse_followed(asked, HOSTS)


@pytest.mark.parametrize(
    "address",
    [
        "https://s3cr3t@github.com/acme/x",
        "https://me:s3cr3t@example.com/x.git",
        "https://example.com/x.git?token=s3cr3t",
    ],
)
def test_an_address_with_a_token_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(SkillhallError) as told:
        parse_followed(SourceSelector(address), HOSTS)
    assert "SKILLHALL_GIT_TOKEN" in told.value.hint
    assert "s3cr3t" not in f"{told.value}{told.value.hint}"
