"""REST client of another Skillhall server: JSON in the envelope of `/api/v1`.

The user chose the URL, so every IP address is allowed. Responses are not trusted: they have time
and size limits, redirects are not followed, and they must be JSON.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import dataclass, field, replace
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, cast
from urllib.parse import urlencode

from skillhall._internal.net.addresses import AddressPolicy, is_loopback
from skillhall._internal.net.connection import (
    Connection,
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    open_connection,
    translate_network_errors,
)
from skillhall._internal.net.url import WebUrl
from skillhall._version import VERSION
from skillhall.errors import (
    ConfigInvalid,
    NotAuthenticated,
    ServerRefused,
    SourceRejected,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from skillhall._internal.settings import Secret

MAX_RESPONSE_BYTES: Final = 128 * 1024 * 1024  # a skill of nearly 100 MiB in base64
TOKEN_VARIABLE: Final = "SKILLHALL_SERVER_TOKEN"  # noqa: S105 - the name of a variable
GIT_TOKEN_VARIABLE: Final = "SKILLHALL_GIT_TOKEN"  # noqa: S105 - the same
_ANY_ADDRESS = AddressPolicy.from_cidrs("0.0.0.0/0", "::/0")
_CHUNK = 256 * 1024  # bytes
_TOKEN_PATTERN = re.compile(r"[\x21-\x7e]{1,4096}")
_UNAUTHORIZED = 401
_REDIRECTS = range(300, 400)
_OK = range(200, 300)
_MALFORMED_RESPONSE = "the response is malformed"


class ApiResponse(NamedTuple):
    """Data and metadata of a response."""

    data: Mapping[str, object]
    meta: Mapping[str, object]


class ServerTimeouts(NamedTuple):
    """Timeouts for the connection and the response, which may need a clone first."""

    connect: NetworkSettings = NetworkSettings(total=10, idle=10)
    response: NetworkSettings = NetworkSettings(total=180, idle=150)


DEFAULT_SERVER_TIMEOUTS: Final = ServerTimeouts()


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """Client of one server. Create it with `from_url`."""

    url: WebUrl
    token: str = field(default="", repr=False)
    git_token: str = field(default="", repr=False)  # for the requested repository
    timeouts: ServerTimeouts = DEFAULT_SERVER_TIMEOUTS
    max_response_bytes: int = MAX_RESPONSE_BYTES

    @classmethod
    def from_url(
        cls,
        text: str,
        token: Secret | None = None,
        timeouts: ServerTimeouts = DEFAULT_SERVER_TIMEOUTS,
    ) -> ServerConnection:
        """Build the client of a server. Raises: SourceRejected, ConfigInvalid."""
        url = WebUrl.parse(text.rstrip("/"))
        if url.query or url.fragment:
            raise SourceRejected("url", text, "the URL of a server has no query and no fragment")
        return cls(url, _check_token(token, TOKEN_VARIABLE), timeouts=timeouts)

    def with_git_token(self, token: Secret) -> ServerConnection:
        """Return a copy with a git token, unless the connection is unencrypted.

        Raises: ConfigInvalid.
        """
        if self.url.scheme != "https" and not is_loopback(self.url.host):
            return self
        return replace(self, git_token=_check_token(token, GIT_TOKEN_VARIABLE))

    @property
    def host(self) -> str:
        """The host, for error messages."""
        return self.url.host

    @property
    def base_url(self) -> str:
        """The normalized URL, without a final slash."""
        return self.url.without_query.rstrip("/")

    def get(self, path: str, query: Mapping[str, str]) -> ApiResponse:
        """Send a GET request. Raises: SourceUnavailable, NotAuthenticated, ServerRefused."""
        return self._request("GET", path, query, None)

    def post(self, path: str, query: Mapping[str, str], body: object) -> ApiResponse:
        """Send a POST request with a JSON body. Raises: as `get`."""
        return self._request("POST", path, query, json.dumps(body).encode())

    def build_malformed_response_error(self, detail: str = "") -> SourceUnavailable:
        """Return the error for an unexpected response."""
        problem = f"{_MALFORMED_RESPONSE}: {detail}" if detail else _MALFORMED_RESPONSE
        hint = "check that it is a Skillhall server of a compatible version"
        return SourceUnavailable(self.host, problem, hint)

    def _request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None
    ) -> ApiResponse:
        target = self.url.path.rstrip("/") + path
        if any(query.values()):
            target += f"?{urlencode({name: value for name, value in query.items() if value})}"
        try:
            status, data = self._send(method, self._serialize_request(method, target, body))
        except TooLarge:
            problem = f"the response is larger than {self.max_response_bytes} bytes"
            raise SourceUnavailable(self.host, problem) from None
        return self._parse_response(status, data)

    def _serialize_request(self, method: str, target: str, body: bytes | None) -> bytes:
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self.url.authority}",
            f"User-Agent: skillhall/{VERSION}",
            "Accept: application/json",
            "Accept-Encoding: identity",
            "Connection: close",
        ]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        if self.git_token:
            lines.append(f"X-Skillhall-Git-Token: {self.git_token}")
        return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")

    def _send(self, method: str, request: bytes) -> tuple[int, bytes]:
        """Return the status and the body. Raises: SourceUnavailable, TooLarge."""
        with translate_network_errors(self.host):
            target = self._build_connection_request(self.timeouts.connect)
            sock = open_connection(target, _ANY_ADDRESS)
        with closing(sock), translate_network_errors(self.host):
            target = self._build_connection_request(self.timeouts.response)
            sock.settimeout(target.timeout.next_timeout())
            sock.sendall(request)
            # The only method of a socket that http.client calls is `makefile`.
            connection = Connection(sock, target, self.max_response_bytes)
            opened = HTTPResponse(cast("socket.socket", connection), method=method)
            with closing(opened) as response:
                response.begin()
                return response.status, self._read_body(response)

    def _build_connection_request(self, network: NetworkSettings) -> ConnectionRequest:
        return ConnectionRequest(self.url, Timeout(network), network)

    def _read_body(self, response: HTTPResponse) -> bytes:
        body = bytearray()
        while chunk := response.read(_CHUNK):
            body += chunk
            if len(body) > self.max_response_bytes:
                raise TooLarge(self.host, self.max_response_bytes)
        if response.length:  # http.client counts it down to the bytes that are missing
            raise SourceUnavailable(self.host, "the response is incomplete")
        return bytes(body)

    def _parse_response(self, status: int, data: bytes) -> ApiResponse:
        if status == _UNAUTHORIZED:
            raise NotAuthenticated(self.host, TOKEN_VARIABLE)
        if status in _REDIRECTS:
            hint = "use the URL that it redirects to"
            raise SourceUnavailable(self.host, "it redirects", hint, status=status)
        envelope = _parse_json(data)
        if isinstance(envelope, dict) and envelope.get("success") is True and status in _OK:
            content, meta = envelope.get("data"), envelope.get("meta")
            if isinstance(content, dict):
                return ApiResponse(content, meta if isinstance(meta, dict) else {})
        if isinstance(envelope, dict) and isinstance(error := envelope.get("error"), dict):
            raise ServerRefused(self.host, status, self._redact_tokens(error.get("message")))
        if status not in _OK:
            problem = f"it responded with status {status}"
            raise SourceUnavailable(self.host, problem, status=status)
        raise self.build_malformed_response_error()

    def _redact_tokens(self, message: object) -> str:
        """Return a message of the server without tokens, which it may repeat."""
        text = message if isinstance(message, str) and message else "no reason given"
        for token in filter(None, (self.token, self.git_token)):
            text = text.replace(token, "***")
        return text


def _check_token(token: Secret | None, variable: str) -> str:
    """Return the token if it is valid in a header. Raises: ConfigInvalid."""
    revealed = "" if token is None else token.reveal()
    if revealed and not _TOKEN_PATTERN.fullmatch(revealed):
        raise ConfigInvalid(variable, "it contains spaces or non-ASCII characters")
    return revealed


def _parse_json(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)
