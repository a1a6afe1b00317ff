"""What git says becomes an error of ours, without anything that should not be shown."""

from dataclasses import replace

import pytest

from skillhall._internal.settings import Secret
from skillhall._internal.sources.git.failures import GitFailed, Trouble, explained, scrubbed
from skillhall._internal.sources.git.remote import Remote, encoded, parse_endpoint
from skillhall.errors import (
    RateLimited,
    SkillhallError,
    SourceNotFound,
    SourceTimedOut,
    SourceUnavailable,
)

TOKEN = Secret("s3cr3t")


def remote(url: str = "https://git.example/x.git", token: Secret | None = None) -> Remote:
    return Remote(parse_endpoint(url), (), token)


@pytest.mark.parametrize(
    ("said", "trouble", "error"),
    [
        ("fatal: couldn't find remote ref nope", Trouble.NO_REF, SourceNotFound),
        ("fatal: remote error: upload-pack: not our ref 11", Trouble.NO_REF, SourceNotFound),
        ("fatal: repository 'https://h/x/' not found", Trouble.NO_REPOSITORY, SourceNotFound),
        ("ERROR: Repository not found.\nfatal: Could not", Trouble.NO_REPOSITORY, SourceNotFound),
        ("The requested URL returned error: 301", Trouble.MOVED, SourceUnavailable),
        ("fatal: could not read Username for 'h'", Trouble.CREDENTIALS, SourceUnavailable),
        ("The requested URL returned error: 403", Trouble.REFUSED, SourceUnavailable),
        ("git@h: Permission denied (publickey).", Trouble.REFUSED, SourceUnavailable),
        ("Host key verification failed.", Trouble.HOST_KEY, SourceUnavailable),
        ("The requested URL returned error: 429", Trouble.LIMITED, RateLimited),
        ("Connection timed out", Trouble.SLOW, SourceTimedOut),
        ("Operation too slow. Less than 1 bytes/sec", Trouble.SLOW, SourceTimedOut),
        ("Failed to connect to h port 1", Trouble.UNREACHABLE, SourceUnavailable),
        ("server certificate verification failed", Trouble.CERTIFICATE, SourceUnavailable),
        ("fatal: the remote end hung up unexpectedly", Trouble.BROKE, SourceUnavailable),
        ("fatal: fsck error in packed object", Trouble.UNSAFE, SourceUnavailable),
        ("fatal: mismatched algorithms: client", Trouble.OTHER_FORMAT, SourceUnavailable),
        ("something else", Trouble.UNKNOWN, SourceUnavailable),
        ("", Trouble.UNKNOWN, SourceUnavailable),
    ],
)
def test_what_git_says_is_understood(
    said: str, trouble: Trouble, error: type[SkillhallError]
) -> None:
    failure = GitFailed(said)
    assert failure.trouble is trouble
    assert type(explained(failure, remote(), "x")) is error


def test_what_the_host_says_in_passing_is_not_taken_for_a_failure() -> None:
    said = "remote: couldn't find remote ref\rremote: error: 429\nfatal: odd"
    assert GitFailed(said).trouble is Trouble.UNKNOWN


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://github.com/a/b.git", "GITHUB_TOKEN"),
        ("https://gitlab.com/a/b.git", "GITLAB_TOKEN"),
        ("https://git.example:8443/b.git", "SKILLHALL_GIT_TOKEN_HOSTS to git.example:8443"),
    ],
)
def test_who_has_no_token_is_told_where_to_put_one(url: str, variable: str) -> None:
    failure = GitFailed("fatal: could not read Username")
    assert variable in explained(failure, remote(url), "x").hint
    assert "check that the token" in explained(failure, remote(url, TOKEN), "x").hint


def test_a_github_of_ones_own_takes_the_same_token() -> None:
    own = replace(remote("https://git.example/a/b.git"), github="git.example")
    assert "GITHUB_TOKEN" in explained(GitFailed("fatal: could not read Username"), own, "x").hint


def test_secrets_paths_and_controls_are_not_repeated() -> None:
    basic = encoded(TOKEN)
    said = f"noise\nfatal: s3cr3t {basic} https://ada:pw@h/x \x1b[31m /home/user/.cache/x/pack"
    shown = scrubbed(said, TOKEN)
    assert "s3cr3t" not in shown
    assert basic not in shown
    assert "pw" not in shown
    assert "/home" not in shown
    assert shown.isprintable()


def test_a_flood_is_cut_before_it_is_read() -> None:
    shown = scrubbed("fatal: " + "https://a@" * 200_000, TOKEN)
    assert len(shown) <= 310


def test_a_token_is_not_shown_by_halves() -> None:
    token = Secret("t" * 40)
    assert "tt" not in scrubbed(f"fatal: {'x' * 280}{token.reveal()}", token)
