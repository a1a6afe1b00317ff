"""Git failures: classification and redaction."""

from dataclasses import replace

import pytest

from skillhall._internal.hints import TOKEN_HINTS, find_hint
from skillhall._internal.settings import Secret
from skillhall._internal.sources.git.failures import (
    GitCommandError,
    GitFailureKind,
    redact_git_output,
    to_source_error,
)
from skillhall._internal.sources.git.remote import (
    GitAccess,
    Remote,
    parse_endpoint,
)
from skillhall._internal.sources.logins.login import Login
from skillhall.errors import (
    RateLimited,
    SkillhallError,
    SourceNotFound,
    SourceTimedOut,
    SourceUnavailable,
)

TOKEN = Secret("s3cr3t")


def remote(url: str = "https://git.example/x.git", token: Secret | None = None) -> Remote:
    login = None if token is None else Login("x-access-token", token)
    return Remote(parse_endpoint(url), (), login, GitAccess(""))


@pytest.mark.parametrize(
    ("said", "trouble", "error"),
    [
        ("fatal: couldn't find remote ref nope", GitFailureKind.REF_NOT_FOUND, SourceNotFound),
        (
            "fatal: remote error: upload-pack: not our ref 11",
            GitFailureKind.REF_NOT_FOUND,
            SourceNotFound,
        ),
        (
            "fatal: repository 'https://h/x/' not found",
            GitFailureKind.REPOSITORY_NOT_FOUND,
            SourceNotFound,
        ),
        (
            "ERROR: Repository not found.\nfatal: Could not",
            GitFailureKind.REPOSITORY_NOT_FOUND,
            SourceNotFound,
        ),
        ("The requested URL returned error: 301", GitFailureKind.MOVED, SourceUnavailable),
        (
            "fatal: could not read Username for 'h'",
            GitFailureKind.AUTHENTICATION,
            SourceUnavailable,
        ),
        ("The requested URL returned error: 403", GitFailureKind.FORBIDDEN, SourceUnavailable),
        ("git@h: Permission denied (publickey).", GitFailureKind.FORBIDDEN, SourceUnavailable),
        ("Host key verification failed.", GitFailureKind.HOST_KEY, SourceUnavailable),
        ("The requested URL returned error: 429", GitFailureKind.RATE_LIMITED, RateLimited),
        ("Connection timed out", GitFailureKind.TIMED_OUT, SourceTimedOut),
        ("Operation too slow. Less than 1 bytes/sec", GitFailureKind.TIMED_OUT, SourceTimedOut),
        ("Failed to connect to h port 1", GitFailureKind.UNREACHABLE, SourceUnavailable),
        ("server certificate verification failed", GitFailureKind.CERTIFICATE, SourceUnavailable),
        (
            "fatal: the remote end hung up unexpectedly",
            GitFailureKind.CONNECTION_LOST,
            SourceUnavailable,
        ),
        ("fatal: fsck error in packed object", GitFailureKind.FSCK_FAILED, SourceUnavailable),
        (
            "fatal: mismatched algorithms: client",
            GitFailureKind.HASH_FORMAT_MISMATCH,
            SourceUnavailable,
        ),
        ("something else", GitFailureKind.UNKNOWN, SourceUnavailable),
        ("", GitFailureKind.UNKNOWN, SourceUnavailable),
    ],
)
def test_git_output_is_classified(
    said: str, trouble: GitFailureKind, error: type[SkillhallError]
) -> None:
    failure = GitCommandError(said)
    assert failure.kind is trouble
    assert type(to_source_error(failure, remote(), "x")) is error


def test_output_of_host_is_ignored() -> None:
    output = "remote: couldn't find remote ref\rremote: error: 429\nfatal: odd"
    assert GitCommandError(output).kind is GitFailureKind.UNKNOWN


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://github.com/a/b.git", "GITHUB_TOKEN"),
        ("https://gitlab.com/a/b.git", "GITLAB_TOKEN"),
        ("https://git.example:8443/b.git", "add git.example:8443 to SKILLHALL_GIT_TOKEN_HOSTS"),
    ],
)
def test_missing_token_hint_names_variable(url: str, variable: str) -> None:
    failure = GitCommandError("fatal: could not read Username")
    assert variable in find_hint(to_source_error(failure, remote(url), "x"), TOKEN_HINTS)
    rejected = to_source_error(failure, remote(url, TOKEN), "x")
    assert "check that the token" in find_hint(rejected, {})


def test_self_hosted_github_uses_same_variable() -> None:
    access = GitAccess("", github_host="git.example")
    own = replace(remote("https://git.example/a/b.git"), access=access)
    error = to_source_error(GitCommandError("fatal: could not read Username"), own, "x")
    assert "GITHUB_TOKEN" in find_hint(error, TOKEN_HINTS)


def test_redacted_output_has_no_secrets_paths_or_controls() -> None:
    token, basic = remote(token=TOKEN).secrets
    output = f"noise\nfatal: s3cr3t {basic} https://ada:pw@h/x \x1b[31m /home/user/.cache/x/pack"
    shown = redact_git_output(output, [token, basic])
    assert "s3cr3t" not in shown
    assert basic not in shown
    assert "pw" not in shown
    assert "/home" not in shown
    assert shown.isprintable()


def test_long_output_is_truncated_before_matching() -> None:
    shown = redact_git_output("fatal: " + "https://a@" * 200_000, [TOKEN.reveal()])
    assert len(shown) <= 310


def test_truncated_output_does_not_show_part_of_token() -> None:
    token = "t" * 40
    assert "tt" not in redact_git_output(f"fatal: {'x' * 280}{token}", [token])
