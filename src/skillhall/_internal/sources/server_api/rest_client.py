"""A server that a person names, and what it answers: JSON in the envelope of `/api/v1`.

The address is the person's own choice, so any is dialled. What comes back is not trusted: it has a
deadline and a size, leads nowhere else, and is JSON or nothing.
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

MAX_RESPONSE_BYTES: Final = (
    128 * 1024 * 1024
)  # bytes; a skill of 100 MiB in base64 is a little more
TOKEN_VARIABLE: Final = "SKILLHALL_SERVER_TOKEN"  # noqa: S105 - the name of a variable
GIT_TOKEN_VARIABLE: Final = "SKILLHALL_GIT_TOKEN"  # noqa: S105 - the same
_ANY_ADDRESS = AddressPolicy.from_cidrs("0.0.0.0/0", "::/0")
_CHUNK = 256 * 1024  # bytes
_TOKEN_PATTERN = re.compile(r"[\x21-\x7e]{1,4096}")
_UNAUTHORIZED = 401
_REDIRECTS = range(300, 400)
_OK = range(200, 300)
_MALFORMED_RESPONSE = "its answer cannot be read"


class ApiResponse(NamedTuple):
    """What a server answers, and what it says about the answer."""

    data: Mapping[str, object]
    meta: Mapping[str, object]


class ServerTimeouts(NamedTuple):
    """How long we wait: to be heard at all, and for an answer, which may need a clone first."""

    connect: NetworkSettings = NetworkSettings(total=10, idle=10)
    response: NetworkSettings = NetworkSettings(total=180, idle=150)


DEFAULT_SERVER_TIMEOUTS: Final = ServerTimeouts()


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """One server and how to speak to it; `at` is the way to make one."""

    url: WebUrl
    token: str = field(default="", repr=False)
    git_token: str = field(default="", repr=False)  # for a repository that it is asked to read
    timeouts: ServerTimeouts = DEFAULT_SERVER_TIMEOUTS
    max_response_bytes: int = MAX_RESPONSE_BYTES

    @classmethod
    def from_url(
        cls,
        text: str,
        token: Secret | None = None,
        timeouts: ServerTimeouts = DEFAULT_SERVER_TIMEOUTS,
    ) -> ServerConnection:
        """The server at an http or https address. Raises: SourceRejected, ConfigInvalid."""
        url = WebUrl.parse(text.rstrip("/"))
        if url.query or url.fragment:
            raise SourceRejected("url", text, "a server's address has no query and no fragment")
        return cls(url, _check_token(token, TOKEN_VARIABLE), timeouts=timeouts)

    def with_git_token(self, token: Secret) -> ServerConnection:
        """The same server with a token for a repository, if nobody can read it on the way there.

        Raises: ConfigInvalid.
        """
        if self.url.scheme != "https" and not is_loopback(self.url.host):
            return self
        return replace(self, git_token=_check_token(token, GIT_TOKEN_VARIABLE))

    @property
    def host(self) -> str:
        """What messages call it."""
        return self.url.host

    @property
    def base_url(self) -> str:
        """The address without anything secret, in one spelling."""
        return self.url.without_query.rstrip("/")

    def get(self, path: str, query: Mapping[str, str]) -> ApiResponse:
        """An answer. Raises: SourceUnavailable, NotAuthenticated, ServerRefused."""
        return self._request("GET", path, query, None)

    def post(self, path: str, query: Mapping[str, str], body: object) -> ApiResponse:
        """The answer to a JSON body. Raises: as `get`."""
        return self._request("POST", path, query, json.dumps(body).encode())

    def build_malformed_response_error(self, detail: str = "") -> SourceUnavailable:
        """What to raise for an answer that is not what was agreed."""
        problem = f"{_MALFORMED_RESPONSE}: {detail}" if detail else _MALFORMED_RESPONSE
        return SourceUnavailable(self.host, problem, "is it a Skillhall server, and of this age?")

    def _request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None
    ) -> ApiResponse:
        target = self.url.path.rstrip("/") + path
        if any(query.values()):
            target += f"?{urlencode({key: text for key, text in query.items() if text})}"
        try:
            status, data = self._send(method, self._serialize_request(method, target, body))
        except TooLarge:
            problem = f"its answer is larger than {self.max_response_bytes} bytes"
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
        """The status and the body. Raises: SourceUnavailable, TooLarge."""
        with translate_network_errors(self.host):
            line = open_connection(
                self._build_connection_request(self.timeouts.connect), _ANY_ADDRESS
            )
        with closing(line), translate_network_errors(self.host):
            call = self._build_connection_request(self.timeouts.response)
            line.settimeout(call.timeout.next_timeout())
            line.sendall(request)
            # Of a socket, http.client uses `makefile` only.
            wire = cast("socket.socket", Connection(line, call, self.max_response_bytes))
            with closing(HTTPResponse(wire, method=method)) as response:
                response.begin()
                return response.status, self._read_body(response)

    def _build_connection_request(self, network: NetworkSettings) -> ConnectionRequest:
        return ConnectionRequest(self.url, Timeout(network), network)

    def _read_body(self, response: HTTPResponse) -> bytes:
        pieces, count = [], 0
        while piece := response.read(_CHUNK):
            count += len(piece)
            if count > self.max_response_bytes:
                raise TooLarge(self.host, self.max_response_bytes)
            pieces.append(piece)
        if response.length:  # of what was announced, this is missing
            raise SourceUnavailable(self.host, "its answer ends too early")
        return b"".join(pieces)

    def _parse_response(self, status: int, data: bytes) -> ApiResponse:
        if status == _UNAUTHORIZED:
            raise NotAuthenticated(self.host, TOKEN_VARIABLE)
        if status in _REDIRECTS:
            hint = "name the address that it redirects to"
            raise SourceUnavailable(self.host, "it redirects", hint, status=status)
        answer = _parse_json(data)
        if isinstance(answer, dict) and answer.get("success") is True and status in _OK:
            found, meta = answer.get("data"), answer.get("meta")
            if isinstance(found, dict):
                return ApiResponse(found, meta if isinstance(meta, dict) else {})
        if isinstance(answer, dict) and isinstance(error := answer.get("error"), dict):
            raise ServerRefused(self.host, status, self._redact_tokens(error.get("message")))
        if status not in _OK:
            raise SourceUnavailable(self.host, f"it answers with status {status}", status=status)
        raise self.build_malformed_response_error()

    def _redact_tokens(self, message: object) -> str:
        """A message of the server, which may repeat what it was sent."""
        text = message if isinstance(message, str) and message else "it gives no reason"
        for token in filter(None, (self.token, self.git_token)):
            text = text.replace(token, "***")
        return text


def _check_token(token: Secret | None, variable: str) -> str:
    """The token as it can stand in a header. Raises: ConfigInvalid."""
    shown = "" if token is None else token.reveal()
    if shown and not _TOKEN_PATTERN.fullmatch(shown):
        raise ConfigInvalid(variable, "it is not one word of ASCII characters")
    return shown


def _parse_json(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)
