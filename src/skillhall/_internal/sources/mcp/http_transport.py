"""HTTP transport of MCP: one POST per message; the response is JSON or events.

The user configured the URL. Its host is resolved once and checked, redirects are not followed, and
a response is read only up to its message.
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
_MAX_EMPTY_RESPONSE: Final = 64 * 1024  # bytes of a response without a message
_DEFAULT_RETRY_AFTER: Final = 60  # seconds, for a status 429 without a time
_CLOSE_NETWORK = NetworkSettings(total=3, idle=3)
_MALFORMED_RESPONSE = "the response is malformed"
_NOT_MCP_HINT = "check that it is the URL of an MCP server, as in https://host/mcp"


@dataclass(slots=True)
class HttpTransport:
    """HTTP transport to one server. Create it with `for_url`."""

    host: str
    url: WebUrl
    policy: AddressPolicy
    token: str = field(default="", repr=False)
    token_variable: str = ""  # for hints in errors
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
        """Build a transport, without connecting. Raises: ConfigInvalid."""
        revealed = "" if token is None else token.reveal()
        if revealed and not _TOKEN_PATTERN.fullmatch(revealed):
            raise ConfigInvalid(token_variable, "it contains spaces or non-ASCII characters")
        # Loopback is allowed if the URL names it; other host names must not resolve to it.
        extra = _LOOPBACK_NETWORKS if is_loopback(url.host) else ()
        policy = AddressPolicy((*policy.allowed, *extra))
        return cls(url.host, url, policy, revealed, token_variable)

    def request(self, request: Message, max_bytes: int, timeout: Timeout) -> Message:
        """Send a request and return its response. Raises: as `McpTransport`."""
        with self._send(self._serialize_post(request), max_bytes, timeout) as response:
            self._check_status(response)
            session_id = response.headers.get(_SESSION_HEADER, "")
            if _TOKEN_PATTERN.fullmatch(session_id):
                self.session_id = session_id
            message = self._read_response(response, request, max_bytes)
            if message is not None:
                return message
            if response.status not in _OK:
                problem = f"it responded with status {response.status}"
                raise McpCallError(self.host, problem, status=response.status)
        raise SourceUnavailable(self.host, _MALFORMED_RESPONSE, _NOT_MCP_HINT)

    def notify(self, notification: Message, timeout: Timeout) -> None:
        """Send a notification. Raises: as `McpTransport`."""
        data = self._serialize_post(notification)
        with self._send(data, _MAX_EMPTY_RESPONSE, timeout) as response:
            self._check_status(response)

    def close(self, *, force: bool = False) -> None:
        """End the session, if there is one; failures are ignored."""
        if self.session_id and not force:
            data = self._serialize_request("DELETE", {}, b"")
            with (
                suppress(SkillhallError),
                self._send(data, _MAX_EMPTY_RESPONSE, Timeout(_CLOSE_NETWORK)),
            ):
                self.session_id = ""

    @contextmanager
    def _send(self, data: bytes, max_bytes: int, timeout: Timeout) -> Iterator[HTTPResponse]:
        """Send a request and open its response, body not read yet. Raises: as `McpTransport`."""
        request = ConnectionRequest(self.url, timeout, NetworkSettings())
        with (
            translate_network_errors(self.host),
            closing(open_connection(request, self.policy)) as sock,
        ):
            sock.settimeout(timeout.next_timeout())
            sock.sendall(data)
            # The only method of a socket that http.client calls is `makefile`.
            connection = cast("socket.socket", Connection(sock, request, max_bytes))
            with closing(HTTPResponse(connection, method="POST")) as response:
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
        """Raise the error for a failed request. Raises: SkillhallError."""
        status = response.status
        if status in _UNAUTHORIZED_STATUSES:
            raise NotAuthenticated(self.host, self.token_variable)
        if status in _REDIRECTS:
            hint = "use the URL that it redirects to"
            raise SourceUnavailable(self.host, "it redirects", hint, status=status)
        if status == _TOO_MANY_REQUESTS:
            retry = response.headers.get("Retry-After", "")
            seconds = int(retry) if _SECONDS.fullmatch(retry) else _DEFAULT_RETRY_AFTER
            raise RateLimited(self.host, seconds)
        if status in _SERVER_ERRORS:
            problem = f"it responded with status {status}"
            raise SourceUnavailable(self.host, problem, status=status)

    def _read_response(
        self, response: HTTPResponse, request: Message, max_bytes: int
    ) -> Message | None:
        """Return the response message, if the body has one. Raises: TooLarge, OSError."""
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status == _ACCEPTED or content_type not in {_JSON, _EVENTS}:
            return None
        chunks = _read_limited(response, self.host, max_bytes)
        for data in _parse_events(chunks) if content_type == _EVENTS else [b"".join(chunks)]:
            message = parse_message(data)
            if message is None:
                return None
            if message.get("id") is None and "error" in message:
                message["id"] = request["id"]  # rejected before its id was read
            if is_response(message, request):
                return message
        return None


def _read_limited(response: HTTPResponse, host: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the body in chunks. Raises: TooLarge, SourceUnavailable, OSError."""
    # Counted here, because `read1` of some versions of http.client waits for more than the length.
    length, count = response.length, 0
    while length is None or count < length:
        chunk = response.read1(_CHUNK)
        if not chunk:
            break
        count += len(chunk)
        if count > max_bytes:
            raise TooLarge(host, max_bytes)
        yield chunk
    if length is not None and count < length:
        raise SourceUnavailable(host, "the response is incomplete")


def _parse_events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each server-sent event."""
    data: list[bytes] = []
    for line in _split_lines(chunks):
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line:
            if any(data):  # empty events are keep-alives
                yield b"\n".join(data)
            data = []


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    buffer = bytearray()
    for chunk in chunks:
        start = len(buffer)  # the part before has no line break
        buffer += chunk
        while (end := buffer.find(b"\n", start)) >= 0:
            yield bytes(buffer[:end]).removesuffix(b"\r")
            del buffer[: end + 1]
            start = 0


def _encode_header(text: str) -> str:
    """Encode a header value; text that is not plain ASCII as MCP's base64 form."""
    if _PLAIN_HEADER.fullmatch(text) and not text.startswith("=?"):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
