"""Proxies that the environment names: which one a request uses, and with which credentials."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import unquote

from skillhall._internal.net.addresses import is_loopback
from skillhall._internal.net.url import PORTS, WebUrl, host_and_port
from skillhall.errors import ConfigInvalid, SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.settings import ProxySettings

_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?(?:([!-~]*)@)?([^/@]+)/?")
_ENTRY = re.compile(r"(.+?)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Proxy:
    """HTTP proxy; its user and password are sent to no other host."""

    host: str
    port: int
    user_info: str = field(default="", repr=False)  # `user:password`, percent-encoded

    @property
    def url(self) -> str:
        """URL with the credentials, for other programs."""
        return f"http://{self.user_info}{'@' if self.user_info else ''}{self.host}:{self.port}"

    @property
    def authorization(self) -> str:
        """Value of the Proxy-Authorization header; "" without credentials."""
        if not self.user_info:
            return ""
        user, _, password = self.user_info.partition(":")
        pair = f"{unquote(user)}:{unquote(password)}".encode()
        return f"Basic {b64encode(pair).decode()}"

    def rewrite_request(self, url: WebUrl, request: bytes) -> bytes:
        """Return a request for plain http in the form that proxies expect."""
        head, _, rest = request.partition(b"\r\n")
        method, target, version = head.split(b" ")
        head = b" ".join((method, f"http://{url.authority}".encode() + target, version))
        if self.authorization:
            head += f"\r\nProxy-Authorization: {self.authorization}".encode()
        return head + b"\r\n" + rest


def find_proxy(scheme: str, host: str, port: int, settings: ProxySettings) -> Proxy | None:
    """Return the proxy for a parsed host; `None` if it is contacted directly.

    This machine is always contacted directly. Raises: ConfigInvalid.
    """
    secret = {"https": settings.https, "http": settings.http}.get(scheme)
    if secret is None or is_loopback(host):
        return None
    if any(_matches(entry, host, port) for entry in settings.exceptions):
        return None
    return _parse_proxy(secret.reveal(), f"{scheme.upper()}_PROXY")


def _parse_proxy(text: str, variable: str) -> Proxy:
    """Parse a URL, or a host and port. Raises: ConfigInvalid."""
    hint = "write it as http://host:port; NO_PROXY lists hosts that need no proxy"
    match = _URL.fullmatch(text)
    scheme = (match[1] or "http").lower() if match else ""
    if match is None or scheme != "http":
        # The text is not repeated, because it may contain a password.
        problem = f"{scheme!r} is not supported" if match else "it is not the URL of a proxy"
        raise ConfigInvalid(variable, problem, hint)
    try:
        host, port = host_and_port(match[3], match[3], PORTS["http"])
    except SourceRejected as error:
        raise ConfigInvalid(variable, error.problem, hint) from None
    return Proxy(host, port, match[2] or "")


def _matches(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY includes a host: a name with all below it, or a network."""
    if entry == "*":
        return True
    try:
        return ip_address(host.strip("[]")) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass  # not both are IP addresses
    match = _ENTRY.fullmatch(entry)
    name = match[1].lower().removeprefix("*").removeprefix(".") if match else ""
    if not match or (match[2] and int(match[2]) != port):
        return False
    return host == name or host.endswith(f".{name}")
