"""A line to an MCP server by http: one POST for each message, answered by JSON or by events.

The address is one that a person named. A host is looked up once and dialled as it was checked; an
answer leads nowhere else, and is read no further than its message.
"""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Final, cast

from skillhall._internal.net.addresses import AddressPolicy, is_loopback
from skillhall._internal.net.connection import (
    Connection,
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    open_connection,
    translate_network_errors,
)
from skillhall._internal.sources.mcp.transport import (
    CURRENT_PROTOCOL,
    McpCallError,
    is_response,
    parse_message,
    serialize_message,
)
from skillhall._version import VERSION
from skillhall.errors import (
    ConfigInvalid,
    NotAuthenticated,
    RateLimited,
    SkillhallError,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.net.url import WebUrl
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.mcp.transport import Message

_LOOPBACK_NETWORKS = AddressPolicy.from_cidrs("127.0.0.0/8", "::1/128").allowed
_JSON, _EVENTS = "application/json", "text/event-stream"
_CHUNK: Final = 64 * 1024  # bytes
_TOKEN_PATTERN = re.compile(r"[\x21-\x7e]{1,4096}")
_PLAIN_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_SESSION_HEADER = "Mcp-Session-Id"
_SECONDS = re.compile(r"[0-9]{1,6}")
_ACCEPTED = 202
_OK, _REDIRECTS, _SERVER_ERRORS = range(200, 300), range(300, 400), range(500, 600)
_UNAUTHORIZED_STATUSES, _TOO_MANY_REQUESTS = {401, 403}, 429
_MAX_EMPTY_RESPONSE: Final = 64 * 1024  # bytes of an answer that says nothing
_DEFAULT_RETRY_AFTER: Final = 60  # seconds, if a server asks to wait and does not say how long
_CLOSE_NETWORK = NetworkSettings(total=3, idle=3)
_MALFORMED_RESPONSE = "its answer cannot be read"
_NOT_MCP_HINT = "is it the address of an MCP server, as in https://host/mcp?"


@dataclass(slots=True)
class HttpTransport:
    """One server and how to speak to it; `to` is the way to make one."""

    host: str
    url: WebUrl
    policy: AddressPolicy
    token: str = field(default="", repr=False)
    token_variable: str = ""  # that the token came from
    protocol_version: str = ""
    session_id: str = field(default="", repr=False)

    @classmethod
    def for_url(
        cls,
        url: WebUrl,
        policy: AddressPolicy,
        token: Secret | None = None,
        token_variable: str = "",
    ) -> HttpTransport:
        """The line to an address, on which nothing is said yet. Raises: ConfigInvalid."""
        shown = "" if token is None else token.reveal()
        if shown and not _TOKEN_PATTERN.fullmatch(shown):
            raise ConfigInvalid(token_variable, "it is not one word of ASCII characters")
        # Who names this machine by its own name means it; other names must not lead here.
        allowed = (
            (*policy.allowed, *_LOOPBACK_NETWORKS) if is_loopback(url.host) else policy.allowed
        )
        return cls(url.host, url, AddressPolicy(allowed), shown, token_variable)

    def request(self, request: Message, max_bytes: int, timeout: Timeout) -> Message:
        """The response to a request. Raises: as `Line` says."""
        with self._send(self._serialize_post(request), max_bytes, timeout) as response:
            self._check_status(response)
            self.session_id = self._read_session_id(response)
            message = self._read_response(response, request, max_bytes)
            if message is not None:
                return message
            if response.status not in _OK:
                problem = f"it answers with status {response.status}"
                raise McpCallError(self.host, problem, status=response.status)
        raise SourceUnavailable(self.host, _MALFORMED_RESPONSE, _NOT_MCP_HINT)

    def notify(self, notification: Message, timeout: Timeout) -> None:
        """Send what has no response. Raises: as `Line` says."""
        with self._send(
            self._serialize_post(notification), _MAX_EMPTY_RESPONSE, timeout
        ) as response:
            self._check_status(response)

    def close(self, *, force: bool = False) -> None:
        """Tell the server that its session is over, if there is one; it need not listen."""
        if self.session_id and not force:
            farewell = self._serialize_request("DELETE", {}, b"")
            with (
                suppress(SkillhallError),
                self._send(farewell, _MAX_EMPTY_RESPONSE, Timeout(_CLOSE_NETWORK)),
            ):
                self.session_id = ""

    @contextmanager
    def _send(self, data: bytes, max_bytes: int, timeout: Timeout) -> Iterator[HTTPResponse]:
        """The answer to what is sent, its body not read yet. Raises: as `Line` says."""
        call = ConnectionRequest(self.url, timeout, NetworkSettings())
        with (
            translate_network_errors(self.host),
            closing(open_connection(call, self.policy)) as line,
        ):
            line.settimeout(timeout.next_timeout())
            line.sendall(data)
            # Of a socket, http.client uses `makefile` only.
            wire = cast("socket.socket", Connection(line, call, max_bytes))
            with closing(HTTPResponse(wire, method="POST")) as response:
                response.begin()
                yield response

    def _serialize_post(self, message: Message) -> bytes:
        headers = {"Accept": f"{_JSON}, {_EVENTS}", "Content-Type": _JSON}
        if self.protocol_version == CURRENT_PROTOCOL:
            headers["Mcp-Method"] = str(message["method"])
            params = message.get("params")
            if message["method"] == "resources/read" and isinstance(params, dict):
                headers["Mcp-Name"] = _encode_header(str(params["uri"]))
        return self._serialize_request("POST", headers, serialize_message(message))

    def _serialize_request(
        self, method: str, extra_headers: Mapping[str, str], body: bytes
    ) -> bytes:
        headers = {
            "Host": self.url.authority,
            "User-Agent": f"skillhall/{VERSION}",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "Content-Length": str(len(body)),
            **extra_headers,
            "MCP-Protocol-Version": self.protocol_version,
            _SESSION_HEADER: self.session_id,
            "Authorization": f"Bearer {self.token}" if self.token else "",
        }
        lines = [f"{name}: {text}" for name, text in headers.items() if text]
        return "\r\n".join([f"{method} {self.url.target} HTTP/1.1", *lines, "", ""]).encode() + body

    def _check_status(self, response: HTTPResponse) -> None:
        """Refuse what is wrong with the answer as such. Raises: SkillhallError."""
        status = response.status
        if status in _UNAUTHORIZED_STATUSES:
            raise NotAuthenticated(self.host, self.token_variable)
        if status in _REDIRECTS:
            hint = "name the address that it redirects to"
            raise SourceUnavailable(self.host, "it redirects", hint, status=status)
        if status == _TOO_MANY_REQUESTS:
            asked = response.headers.get("Retry-After", "")
            raise RateLimited(
                self.host, int(asked) if _SECONDS.fullmatch(asked) else _DEFAULT_RETRY_AFTER
            )
        if status in _SERVER_ERRORS:
            raise SourceUnavailable(self.host, f"it answers with status {status}", status=status)

    def _read_session_id(self, response: HTTPResponse) -> str:
        given = response.headers.get(_SESSION_HEADER, "")
        return given if _TOKEN_PATTERN.fullmatch(given) else self.session_id

    def _read_response(
        self, response: HTTPResponse, request: Message, max_bytes: int
    ) -> Message | None:
        """The response to the request, if the answer holds one. Raises: TooLarge, OSError."""
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status == _ACCEPTED or kind not in {_JSON, _EVENTS}:
            return None
        pieces = _read_limited(response, self.host, max_bytes)
        for data in _parse_events(pieces) if kind == _EVENTS else [b"".join(pieces)]:
            message = parse_message(data)
            if message is None:
                return None
            if message.get("id") is None and "error" in message:
                message["id"] = request["id"]  # refused before it was read
            if is_response(message, request):
                return message
        return None


def _read_limited(response: HTTPResponse, host: str, max_bytes: int) -> Iterator[bytes]:
    """The body, piece by piece as it comes. Raises: TooLarge, SourceUnavailable, OSError."""
    # Counted here: some versions of http.client forget to, and would wait for more.
    announced, count = response.length, 0
    while announced is None or count < announced:
        piece = response.read1(_CHUNK)
        if not piece:
            break
        count += len(piece)
        if count > max_bytes:
            raise TooLarge(host, max_bytes)
        yield piece
    if announced is not None and count < announced:
        raise SourceUnavailable(host, "its answer ends too early")


def _parse_events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event."""
    data: list[bytes] = []
    for line in _split_lines(chunks):
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line:
            if any(data):  # an empty one only says that the server is there
                yield b"\n".join(data)
            data = []


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = bytearray()
    for piece in chunks:
        looked = len(rest)
        rest += piece
        while (end := rest.find(b"\n", looked)) >= 0:
            yield bytes(rest[:end]).removesuffix(b"\r")
            del rest[: end + 1]
            looked = 0


def _encode_header(text: str) -> str:
    """The text as a header may hold it, in the protocol's own way if it is not plain."""
    if _PLAIN_HEADER.fullmatch(text) and not text.startswith("=?"):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
