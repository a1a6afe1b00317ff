"""HTTP transport of MCP: one POST per message; responses are JSON or events.

The user configured the URL. Its host is resolved once and checked, redirects are not followed, and
a response is read only up to the message that answers the request.
"""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skillhall._internal.net.addresses import AddressPolicy
from skillhall._internal.net.connection import (
    TOKEN_PATTERN,
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    limit_size,
    read_chunks,
    reveal_token,
    send_request,
    serialize_request,
)
from skillhall._internal.sources.mcp.transport import (
    CURRENT_PROTOCOL,
    McpCallError,
    is_response,
    parse_message,
    serialize_message,
)
from skillhall.errors import NotAuthenticated, RateLimited, SkillhallError, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from http.client import HTTPResponse

    from skillhall._internal.net.url import WebUrl
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.mcp.transport import Message

_JSON, _EVENTS = "application/json", "text/event-stream"
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
        revealed = reveal_token(token, token_variable)
        return cls(url.host, url, policy.with_named_loopback(url.host), revealed, token_variable)

    def request(self, request: Message, max_bytes: int, timeout: Timeout) -> Message:
        """Send a request and return its response. Raises: as `McpTransport`."""
        with self._post(request, max_bytes, timeout) as response:
            session_id = response.headers.get(_SESSION_HEADER, "")
            if TOKEN_PATTERN.fullmatch(session_id):
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
        with self._post(notification, _MAX_EMPTY_RESPONSE, timeout):
            pass

    def close(self, *, force: bool = False) -> None:
        """End the session, if there is one; failures are ignored."""
        if self.session_id and not force:
            timeout = Timeout(_CLOSE_NETWORK)
            with (
                suppress(SkillhallError),
                self._send("DELETE", {}, b"", _MAX_EMPTY_RESPONSE, timeout),
            ):
                self.session_id = ""

    @contextmanager
    def _post(self, message: Message, max_bytes: int, timeout: Timeout) -> Iterator[HTTPResponse]:
        """Send a message and open its response; the caller reads the body.

        Raises: as `McpTransport`.
        """
        headers = {"Accept": f"{_JSON}, {_EVENTS}", "Content-Type": _JSON}
        if self.protocol_version == CURRENT_PROTOCOL:
            headers["Mcp-Method"] = str(message["method"])
            params = message.get("params")
            if message["method"] == "resources/read" and isinstance(params, dict):
                uri = str(params["uri"])
                is_plain = _PLAIN_HEADER.fullmatch(uri) and not uri.startswith("=?")
                encoded = f"=?base64?{b64encode(uri.encode()).decode()}?="
                headers["Mcp-Name"] = uri if is_plain else encoded
        body = serialize_message(message)
        with self._send("POST", headers, body, max_bytes, timeout) as response:
            self._check_status(response)
            yield response

    def _send(
        self,
        method: str,
        extra_headers: Mapping[str, str],
        body: bytes,
        max_bytes: int,
        timeout: Timeout,
    ) -> AbstractContextManager[HTTPResponse]:
        headers = {
            **extra_headers,
            "MCP-Protocol-Version": self.protocol_version,
            _SESSION_HEADER: self.session_id,
            "Authorization": f"Bearer {self.token}" if self.token else "",
        }
        request = ConnectionRequest(self.url, timeout, NetworkSettings())
        data = serialize_request(method, self.url, headers, body)
        return send_request(request, self.policy, data, max_bytes)

    def _check_status(self, response: HTTPResponse) -> None:
        """Raise an error if the status makes the body irrelevant. Raises: SourceError."""
        status = response.status
        if status in _UNAUTHORIZED_STATUSES:
            raise NotAuthenticated(self.host, self.token_variable)
        if status in _REDIRECTS:
            hint = "use the URL that it redirects to"
            raise SourceUnavailable(self.host, "it responded with a redirect", hint, status=status)
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
        """Return the response to the request; `None` if the body does not contain it.

        Raises: SourceUnavailable, TooLarge.
        """
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status == _ACCEPTED or content_type not in {_JSON, _EVENTS}:
            return None
        is_events = content_type == _EVENTS
        chunks = read_chunks(response, self.host, is_event_stream=is_events)
        chunks = limit_size(chunks, max_bytes, self.host)
        for data in _parse_events(chunks) if is_events else [b"".join(chunks)]:
            message = parse_message(data)
            if message is None:
                return None
            if message.get("id") is None and "error" in message:
                # The server rejected the request before it read the id.
                message["id"] = request["id"]
            if is_response(message, request):
                return message
        return None


def _parse_events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each server-sent event."""
    buffer, data = bytearray(), list[bytes]()
    for chunk in chunks:
        start = len(buffer)  # the part before has no line break
        buffer += chunk
        while (end := buffer.find(b"\n", start)) >= 0:
            line = bytes(buffer[:end]).removesuffix(b"\r")
            del buffer[: end + 1]
            start = 0
            if line.startswith(b"data:"):
                data.append(line.removeprefix(b"data:").removeprefix(b" "))
            elif not line:
                if any(data):  # empty events are keep-alives
                    yield b"\n".join(data)
                data = []
