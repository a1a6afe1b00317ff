"""List of followed repositories: parsing, limits and invalid files."""

import json
from pathlib import Path

import pytest

from skillhall._internal.prompt_server.followed_file import (
    FILE,
    MAX_FOLLOWED,
    FollowedList,
    parse_followed,
)
from skillhall._internal.prompt_server.prompt_model import FollowedRepository, SourceSelector
from skillhall._internal.prompt_server.repo_source import GitHosts
from skillhall.errors import (
    ConfigInvalid,
    Conflict,
    FieldRefused,
    RecordNotFound,
    SkillhallError,
    SourceRejected,
)
from tests.support.actors import ACTOR

HOSTS = GitHosts("https://github.com")
PDF, ODT = (
    FollowedRepository("https://example.com/pdf.git"),
    FollowedRepository("https://example.com/odt.git", "s", "v2"),
)


def test_repositories_are_read_in_insertion_order(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    assert FollowedList(folder).read() == ()
    FollowedList(folder).add(PDF, actor=ACTOR)
    assert FollowedList(folder).add(ODT, actor=ACTOR) == (PDF, ODT)
    assert FollowedList(folder).remove(PDF.key, actor=ACTOR) == (PDF, (ODT,))
    assert FollowedList(folder).read() == (ODT,)
    assert [item.name for item in Path(folder).iterdir()] == [FILE]


def test_duplicate_excess_and_unknown_repositories_are_rejected(
    tmp_path: Path,
) -> None:
    followed = FollowedList(str(tmp_path))
    for number in range(MAX_FOLLOWED):
        followed.add(FollowedRepository(f"https://example.com/{number}.git"), actor=ACTOR)
    with pytest.raises(Conflict):
        followed.add(FollowedRepository("https://example.com/0.git"), actor=ACTOR)
    with pytest.raises(FieldRefused) as error_info:
        followed.add(PDF, actor=ACTOR)
    assert error_info.value.hint == "remove one first"
    with pytest.raises(RecordNotFound):
        followed.remove(PDF.key, actor=ACTOR)
    assert len(followed.read()) == MAX_FOLLOWED


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
def test_invalid_file_is_reported_and_not_overwritten(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    followed = FollowedList(str(tmp_path))
    for call in (
        followed.read,
        lambda: followed.add(PDF, actor=ACTOR),
        lambda: followed.remove(PDF.key, actor=ACTOR),
    ):
        with pytest.raises(ConfigInvalid, match=FILE) as error_info:
            call()
        assert error_info.value.hint
    assert (tmp_path / FILE).read_bytes() == data


def test_linked_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "other").write_text('{"version": 1, "repositories": []}', encoding="ascii")
    (tmp_path / FILE).symlink_to("other")
    with pytest.raises(ConfigInvalid):
        FollowedList(str(tmp_path)).read()


@pytest.mark.parametrize(
    ("selector", "followed"),
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
def test_repository_reference_is_normalized(
    selector: SourceSelector, followed: FollowedRepository
) -> None:
    assert parse_followed(selector, HOSTS) == followed
    assert parse_followed(SourceSelector(*followed), HOSTS) == followed


@pytest.mark.parametrize(
    "selector",
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
def test_only_https_repositories_are_accepted(selector: SourceSelector) -> None:
    with pytest.raises(SourceRejected):
        parse_followed(selector, HOSTS)


@pytest.mark.parametrize(
    "url",
    [
        "https://s3cr3t@github.com/acme/x",
        "https://me:s3cr3t@example.com/x.git",
        "https://example.com/x.git?token=s3cr3t",
    ],
)
def test_url_with_credentials_is_rejected_without_repeating_them(url: str) -> None:
    with pytest.raises(SkillhallError) as error_info:
        parse_followed(SourceSelector(url), HOSTS)
    assert "SKILLHALL_GIT_TOKEN" in error_info.value.hint
    assert "s3cr3t" not in f"{error_info.value}{error_info.value.hint}"
