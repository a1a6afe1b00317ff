"""Why git failed: known by a few stable texts of its own English, and told in our words."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from skillhall._internal.net.fetch import DEFAULT_RETRY_AFTER
from skillhall._internal.sources.git.remote import encode_basic_auth
from skillhall.errors import (
    RateLimited,
    SkillhallError,
    SourceNotFound,
    SourceTimedOut,
    SourceUnavailable,
    without_credentials,
)

if TYPE_CHECKING:
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.git.remote import Remote

_MAX_SHOWN = 300  # characters of git's own words
_MAX_EXAMINED = 4096  # characters of them that are looked at: the last ones


class GitFailureKind(Enum):
    """A kind of failure; the text is part of what git says."""

    REF_NOT_FOUND = r"couldn't find remote ref|not our ref|no such remote ref"
    REPOSITORY_NOT_FOUND = (
        r"repository (?:'[^']*' )?not found|info/refs not valid|does not appear to be"
    )
    MOVED = r"returned error: 30[12378]"
    AUTHENTICATION = r"could not read (?:Username|Password)|Authentication failed|error: 401"
    FORBIDDEN = r"returned error: 403|Permission denied"
    RATE_LIMITED = r"returned error: 429"
    TIMED_OUT = r"timed out|Operation too slow|Timeout was reached"
    HOST_KEY = r"Host key verification failed"
    UNREACHABLE = r"Could not resolve host|Failed to connect|Couldn't connect|Connection refused"
    CERTIFICATE = r"certificate"
    CONNECTION_LOST = (
        r"hung up|Empty reply|early EOF|RPC failed|returned error: 5\d\d|reset by peer"
    )
    FSCK_FAILED = r"fsck error"
    COMMIT_FETCH_UNSUPPORTED = r"does not allow request for unadvertised"
    HASH_FORMAT_MISMATCH = r"mismatched algorithms"
    UNKNOWN = r""


_PATTERNS = [(trouble, re.compile(trouble.value, re.IGNORECASE)) for trouble in GitFailureKind]
_PROBLEMS = {
    GitFailureKind.MOVED: "it redirects to another address",
    GitFailureKind.FORBIDDEN: "it does not let us in",
    GitFailureKind.HOST_KEY: "its key is not among the known hosts",
    GitFailureKind.UNREACHABLE: "it cannot be reached",
    GitFailureKind.CERTIFICATE: "its certificate is not valid",
    GitFailureKind.CONNECTION_LOST: "the connection to it broke",
    GitFailureKind.FSCK_FAILED: "git's own checks refuse what it sends",
    GitFailureKind.COMMIT_FETCH_UNSUPPORTED: "it gives no single commits",
}
_HINTS = {
    GitFailureKind.MOVED: "use the repository's present address",
    GitFailureKind.FORBIDDEN: "check that you may read the repository",
    GitFailureKind.HOST_KEY: "connect to it once with ssh, and check its key",
    GitFailureKind.CERTIFICATE: "check the address, and the certificates of this system",
    GitFailureKind.FSCK_FAILED: "the repository has files that could harm: tell its owner",
    GitFailureKind.COMMIT_FETCH_UNSUPPORTED: "name a branch or tag",
}


class GitCommandError(Exception):
    """A run of git against a remote that failed."""

    def __init__(self, stderr: str) -> None:
        super().__init__()
        # What a host says in passing is no failure of ours.
        lines = re.split(r"[\r\n]+", stderr[-_MAX_EXAMINED:])
        self.stderr = "\n".join(line for line in lines if not line.startswith("remote: "))
        self.kind = next(t for t, pattern in _PATTERNS if pattern.search(self.stderr))


def to_source_error(failure: GitCommandError, remote: Remote, source_text: str) -> SkillhallError:
    """The error that callers meet; `text` names what was asked for."""
    trouble, host = failure.kind, remote.endpoint.authority
    if trouble in (GitFailureKind.REF_NOT_FOUND, GitFailureKind.REPOSITORY_NOT_FOUND):
        return SourceNotFound(source_text)
    if trouble is GitFailureKind.RATE_LIMITED:
        return RateLimited(host, DEFAULT_RETRY_AFTER)
    if trouble is GitFailureKind.TIMED_OUT:
        return SourceTimedOut(host, "it takes too long")
    if trouble is GitFailureKind.AUTHENTICATION:
        return _build_authentication_error(remote)
    said = f"git says: {redact_git_output(failure.stderr, remote.token)}"
    error = SourceUnavailable(host, _PROBLEMS.get(trouble, said))
    error.hint = _HINTS.get(trouble, error.hint)
    return error


def _build_authentication_error(remote: Remote) -> SourceUnavailable:
    endpoint = remote.endpoint
    if remote.token is not None:
        error = SourceUnavailable(endpoint.authority, "it does not accept the token")
        error.hint = "check that the token is valid, and that it may read the repository"
        return error
    problem = "it asks for credentials: the repository is private, or not there"
    error = SourceUnavailable(endpoint.authority, problem)
    if remote.has_withheld_credentials:
        error.hint = "if it is private, the operator can add it to SKILLHALL_GIT_TOKEN_REPOS"
        return error
    general = f"SKILLHALL_GIT_TOKEN, and SKILLHALL_GIT_TOKEN_HOSTS to {endpoint.authority}"
    variables = {remote.github_host: "GITHUB_TOKEN", "gitlab.com": "GITLAB_TOKEN"}
    error.hint = f"if it is private, set {variables.get(endpoint.authority, general)}"
    return error


def redact_git_output(stderr: str, token: Secret | None) -> str:
    """The last thing that git said, on one line, without secrets, paths of ours or controls."""
    for secret in (token.reveal(), encode_basic_auth(token)) if token is not None else ():
        stderr = stderr.replace(secret, "***")
    lines = [line for line in stderr[-_MAX_EXAMINED:].splitlines() if line.strip()]
    line = next((line for line in reversed(lines) if line.startswith("fatal: ")), "")
    line = (line or "".join(lines[-1:])).removeprefix("fatal: ")[:_MAX_SHOWN]
    plain = "".join(c if c.isprintable() else "?" for c in line)
    return without_credentials(re.sub(r"(?<![\w:/])/[^\s':]+", "…", plain)) or "nothing"
