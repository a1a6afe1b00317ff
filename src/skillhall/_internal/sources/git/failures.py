"""Failures of git commands, classified by git's English messages."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from skillhall._internal.net.fetch import DEFAULT_RETRY_AFTER
from skillhall.errors import (
    RateLimited,
    SkillhallError,
    SourceNotFound,
    SourceTimedOut,
    SourceUnavailable,
    without_credentials,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.sources.git.remote import Remote

_MAX_SHOWN = 300  # characters of git's message
_MAX_EXAMINED = 4096  # characters at the end of git's output


class GitFailureKind(Enum):
    """Kind of failure; values are patterns for git's output, tried in this order."""

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


_PATTERNS = [(kind, re.compile(kind.value, re.IGNORECASE)) for kind in GitFailureKind]
_PROBLEMS = {
    GitFailureKind.MOVED: "it redirects to a different URL",
    GitFailureKind.FORBIDDEN: "access is forbidden",
    GitFailureKind.HOST_KEY: "its host key is not in known_hosts, or has changed",
    GitFailureKind.UNREACHABLE: "the connection failed",
    GitFailureKind.CERTIFICATE: "invalid certificate",
    GitFailureKind.CONNECTION_LOST: "the connection was lost",
    GitFailureKind.FSCK_FAILED: "git rejected its objects (fsck)",
    GitFailureKind.COMMIT_FETCH_UNSUPPORTED: "it does not serve single commits",
}
_HINTS = {
    GitFailureKind.MOVED: "use the repository's new URL",
    GitFailureKind.FORBIDDEN: "check that you have read access to the repository",
    GitFailureKind.HOST_KEY: "connect to it once with ssh and verify its key",
    GitFailureKind.CERTIFICATE: "check the URL, and the certificates of this system",
    GitFailureKind.FSCK_FAILED: "the repository has unsafe objects: contact its owner",
    GitFailureKind.COMMIT_FETCH_UNSUPPORTED: "use a branch or tag instead",
}


class GitCommandError(Exception):
    """A git command that uses the remote failed."""

    def __init__(self, stderr: str) -> None:
        super().__init__()
        # Lines from the host are not errors of git; a host could fake any of them.
        lines = re.split(r"[\r\n]+", stderr[-_MAX_EXAMINED:])
        self.stderr = "\n".join(line for line in lines if not line.startswith("remote: "))
        self.kind = next(kind for kind, pattern in _PATTERNS if pattern.search(self.stderr))


def to_source_error(failure: GitCommandError, remote: Remote, source_text: str) -> SkillhallError:
    """Return the source error for a failed git command."""
    kind, host = failure.kind, remote.endpoint.authority
    if kind in (GitFailureKind.REF_NOT_FOUND, GitFailureKind.REPOSITORY_NOT_FOUND):
        return SourceNotFound(source_text)
    if kind is GitFailureKind.RATE_LIMITED:
        return RateLimited(host, DEFAULT_RETRY_AFTER)
    if kind is GitFailureKind.TIMED_OUT:
        return SourceTimedOut(host, "the request timed out")
    if kind is GitFailureKind.AUTHENTICATION:
        return _build_authentication_error(remote)
    message = f"git failed: {redact_git_output(failure.stderr, remote.secrets)}"
    return SourceUnavailable(host, _PROBLEMS.get(kind, message), _HINTS.get(kind, ""))


def _build_authentication_error(remote: Remote) -> SourceUnavailable:
    """Return the error for a host that asks for credentials or rejects the token."""
    host = remote.endpoint.authority
    if remote.has_stored_login:
        return SourceUnavailable(host, "it rejected the credentials", access="login_rejected")
    if remote.login is not None:
        return SourceUnavailable(host, "it rejected the token", access="token_rejected")
    problem = "it asks for credentials: the repository is private or does not exist"
    if remote.access.has_withheld_credentials:
        return SourceUnavailable(host, problem, access="token_withheld")
    variables = {remote.access.github_host: "GITHUB_TOKEN", "gitlab.com": "GITLAB_TOKEN"}
    if variable := variables.get(host):
        return SourceUnavailable(host, problem, access="no_token", token_variable=variable)
    variable = "SKILLHALL_GIT_TOKEN"
    return SourceUnavailable(host, problem, access="no_token_for_host", token_variable=variable)


def redact_git_output(stderr: str, secrets: Iterable[str]) -> str:
    """Return git's last message on one line, without secrets and local paths.

    Control characters are replaced.
    """
    for secret in secrets:
        stderr = stderr.replace(secret, "***")
    lines = [line for line in stderr[-_MAX_EXAMINED:].splitlines() if line.strip()]
    line = next((line for line in reversed(lines) if line.startswith("fatal: ")), "")
    line = (line or "".join(lines[-1:])).removeprefix("fatal: ")[:_MAX_SHOWN]
    printable = "".join(c if c.isprintable() else "?" for c in line)
    return without_credentials(re.sub(r"(?<![\w:/])/[^\s':]+", "…", printable)) or "no message"
