"""Why git failed: known by a few stable texts of its own English, and told in our words."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from skillhall._internal.net.fetch import UNKNOWN_WAIT
from skillhall._internal.sources.git.remote import encoded
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

_SHOWN = 300  # characters of git's own words
_READ = 4096  # characters of them that are looked at: the last ones


class Trouble(Enum):
    """A kind of failure; the text is part of what git says."""

    NO_REF = r"couldn't find remote ref|not our ref|no such remote ref"
    NO_REPOSITORY = r"repository (?:'[^']*' )?not found|info/refs not valid|does not appear to be"
    MOVED = r"returned error: 30[12378]"
    CREDENTIALS = r"could not read (?:Username|Password)|Authentication failed|error: 401"
    REFUSED = r"returned error: 403|Permission denied"
    LIMITED = r"returned error: 429"
    SLOW = r"timed out|Operation too slow|Timeout was reached"
    HOST_KEY = r"Host key verification failed"
    UNREACHABLE = r"Could not resolve host|Failed to connect|Couldn't connect|Connection refused"
    CERTIFICATE = r"certificate"
    BROKE = r"hung up|Empty reply|early EOF|RPC failed|returned error: 5\d\d|reset by peer"
    UNSAFE = r"fsck error"
    BY_NAME_ONLY = r"does not allow request for unadvertised"
    OTHER_FORMAT = r"mismatched algorithms"
    UNKNOWN = r""


_PATTERNS = [(trouble, re.compile(trouble.value, re.IGNORECASE)) for trouble in Trouble]
_PROBLEMS = {
    Trouble.MOVED: "it redirects to another address",
    Trouble.REFUSED: "it does not let us in",
    Trouble.HOST_KEY: "its key is not among the known hosts",
    Trouble.UNREACHABLE: "it cannot be reached",
    Trouble.CERTIFICATE: "its certificate is not valid",
    Trouble.BROKE: "the connection to it broke",
    Trouble.UNSAFE: "git's own checks refuse what it sends",
    Trouble.BY_NAME_ONLY: "it gives no single commits",
}
_HINTS = {
    Trouble.MOVED: "use the repository's present address",
    Trouble.REFUSED: "check that you may read the repository",
    Trouble.HOST_KEY: "connect to it once with ssh, and check its key",
    Trouble.CERTIFICATE: "check the address, and the certificates of this system",
    Trouble.UNSAFE: "the repository has files that could harm: tell its owner",
    Trouble.BY_NAME_ONLY: "name a branch or tag",
}


class GitFailed(Exception):
    """A run of git against a remote that failed."""

    def __init__(self, said: str) -> None:
        super().__init__()
        # What a host says in passing is no failure of ours.
        lines = re.split(r"[\r\n]+", said[-_READ:])
        self.said = "\n".join(line for line in lines if not line.startswith("remote: "))
        self.trouble = next(t for t, pattern in _PATTERNS if pattern.search(self.said))


def explained(failure: GitFailed, remote: Remote, text: str) -> SkillhallError:
    """The error that callers meet; `text` names what was asked for."""
    trouble, host = failure.trouble, remote.endpoint.authority
    if trouble in (Trouble.NO_REF, Trouble.NO_REPOSITORY):
        return SourceNotFound(text)
    if trouble is Trouble.LIMITED:
        return RateLimited(host, UNKNOWN_WAIT)
    if trouble is Trouble.SLOW:
        return SourceTimedOut(host, "it takes too long")
    if trouble is Trouble.CREDENTIALS:
        return _credentials(remote)
    said = f"git says: {scrubbed(failure.said, remote.token)}"
    error = SourceUnavailable(host, _PROBLEMS.get(trouble, said))
    error.hint = _HINTS.get(trouble, error.hint)
    return error


def _credentials(remote: Remote) -> SourceUnavailable:
    endpoint = remote.endpoint
    if remote.token is not None:
        error = SourceUnavailable(endpoint.authority, "it does not accept the token")
        error.hint = "check that the token is valid, and that it may read the repository"
        return error
    problem = "it asks for credentials: the repository is private, or not there"
    error = SourceUnavailable(endpoint.authority, problem)
    if remote.is_withheld:
        error.hint = "if it is private, the operator can add it to SKILLHALL_GIT_TOKEN_REPOS"
        return error
    general = f"SKILLHALL_GIT_TOKEN, and SKILLHALL_GIT_TOKEN_HOSTS to {endpoint.authority}"
    variables = {remote.github: "GITHUB_TOKEN", "gitlab.com": "GITLAB_TOKEN"}
    error.hint = f"if it is private, set {variables.get(endpoint.authority, general)}"
    return error


def scrubbed(said: str, token: Secret | None) -> str:
    """The last thing that git said, on one line, without secrets, paths of ours or controls."""
    for secret in (token.reveal(), encoded(token)) if token is not None else ():
        said = said.replace(secret, "***")
    lines = [line for line in said[-_READ:].splitlines() if line.strip()]
    line = next((line for line in reversed(lines) if line.startswith("fatal: ")), "")
    line = (line or "".join(lines[-1:])).removeprefix("fatal: ")[:_SHOWN]
    plain = "".join(c if c.isprintable() else "?" for c in line)
    return without_credentials(re.sub(r"(?<![\w:/])/[^\s':]+", "…", plain)) or "nothing"
