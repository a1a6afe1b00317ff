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
    """An http or https URL, taken apart; `parse` is the only way to make one."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""
    fragment: str = ""

    @classmethod
    def parse(cls, text: str) -> WebUrl:
        """The checked URL. Raises: SourceRejected."""
        found = _URL.fullmatch(checked_characters(text))
        if found is None:
            raise SourceRejected("url", text, "it is not a URL")
        scheme, authority, path, query, fragment = found.groups(default="")
        if scheme.lower() not in {"https", "http"}:
            raise SourceRejected("scheme", text, f"{scheme!r} is not spoken here")
        if "@" in authority:
            problem = "it holds a user name or password"
            raise SourceRejected("host", text, problem, "remove them from the address")
        host, port = host_and_port(authority, text, PORTS[scheme.lower()])
        return cls(scheme.lower(), host, port, path or "/", query, fragment)

    @property
    def authority(self) -> str:
        """The host, and the port if it is an unusual one."""
        return authority_of(self.host, self.port, self.scheme)

    @property
    def origin(self) -> tuple[str, str, int]:
        """Whom we talk to."""
        return self.scheme, self.host, self.port

    @property
    def target(self) -> str:
        """What is asked of the host."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def place(self) -> str:
        """The URL without its query, which may hold secrets."""
        return f"{self.scheme}://{self.authority}{self.path}"


def checked_characters(text: str) -> str:
    """The text, if every reader of URLs takes it apart alike. Raises: SourceRejected."""
    if not _URL_CHARACTERS.fullmatch(text) or BAD_PERCENT.search(text):
        raise SourceRejected("url", text, "it holds characters that no URL has")
    return text


def host_and_port(authority: str, text: str, usual: int) -> tuple[str, int]:
    found = _PORT.fullmatch(authority)
    port = int(found[2]) if found and found[2] else usual
    if found is None or not 0 < port <= 0xFFFF:  # noqa: PLR2004 - sixteen bits
        raise SourceRejected("host", text, "its port is not a number of a port")
    try:
        return parse_host(found[1]), port
    except SourceRejected as error:
        raise SourceRejected("host", text, error.problem) from None


def authority_of(host: str, port: int, scheme: str) -> str:
    return host if port == PORTS[scheme] else f"{host}:{port}"
