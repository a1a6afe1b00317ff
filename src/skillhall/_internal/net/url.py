"""Web URLs: parsing and character checks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillhall._internal.net.addresses import parse_host
from skillhall.errors import SourceRejected

PORTS = {"https": 443, "http": 80, "ssh": 22}
_URL = re.compile(r"([A-Za-z]+)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?")
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")
BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PORT = re.compile(r"(.*?)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class WebUrl:
    """Parts of an http or https URL. Create it with `parse`, which checks it."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""
    fragment: str = ""

    @classmethod
    def parse(cls, text: str) -> WebUrl:
        """Parse and check a URL. Raises: SourceRejected."""
        match = _URL.fullmatch(checked_characters(text))
        if match is None:
            raise SourceRejected("url", text, "it is not a URL")
        scheme, authority, path, query, fragment = match.groups(default="")
        if scheme.lower() not in {"https", "http"}:
            raise SourceRejected("scheme", text, f"{scheme!r} is not supported")
        if "@" in authority:
            problem = "it contains a user name or password"
            raise SourceRejected("host", text, problem, "remove them from the URL")
        host, port = host_and_port(authority, text, PORTS[scheme.lower()])
        return cls(scheme.lower(), host, port, path or "/", query, fragment)

    @property
    def authority(self) -> str:
        """Host, with the port if it is not the scheme's default."""
        return authority_of(self.host, self.port, self.scheme)

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        return self.scheme, self.host, self.port

    @property
    def target(self) -> str:
        """Request target: path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def without_query(self) -> str:
        """URL without query and fragment, which may contain secrets."""
        return f"{self.scheme}://{self.authority}{self.path}"


def checked_characters(text: str) -> str:
    """Return the text if all its characters are valid in URLs. Raises: SourceRejected."""
    # URL parsers disagree about other characters: the host that is contacted could differ from the
    # one that was checked.
    if not _URL_CHARACTERS.fullmatch(text) or BAD_PERCENT.search(text):
        raise SourceRejected("url", text, "it contains characters that are not valid in URLs")
    return text


def host_and_port(authority: str, text: str, default: int) -> tuple[str, int]:
    match = _PORT.fullmatch(authority)
    port = int(match[2]) if match and match[2] else default
    if match is None or not 0 < port <= 0xFFFF:  # noqa: PLR2004 - sixteen bits
        raise SourceRejected("host", text, "its port is not valid")
    try:
        return parse_host(match[1]), port
    except SourceRejected as error:
        raise SourceRejected("host", text, error.problem) from None


def authority_of(host: str, port: int, scheme: str) -> str:
    return host if port == PORTS[scheme] else f"{host}:{port}"
