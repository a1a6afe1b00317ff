"""REST client for another Skillhall server: JSON in the envelope of `/api/v1`.

The user chose the URL, so every IP address is allowed. Responses are not trusted: they have time
and size limits, redirects are not followed, and they must be JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from skillhall._internal.net.addresses import ANY_ADDRESS, AddressPolicy, is_loopback
from skillhall._internal.net.connection import (
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    limit_size,
    parse_response_json,
    read_chunks,
    reveal_token,
    send_request,
    serialize_request,
)
from skillhall._internal.net.url import WebUrl
from skillhall._internal.settings import ProxySettings
from skillhall.errors import (
    NotAuthenticated,
    ServerRefused,
    SourceRejected,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.settings import Secret

MAX_RESPONSE_BYTES: Final = 128 * 1024 * 1024  # a skill of nearly 100 MiB in base64
TOKEN_VARIABLE: Final = "SKILLHALL_SERVER_TOKEN"  # noqa: S105 - the name of a variable
GIT_TOKEN_VARIABLE: Final = "SKILLHALL_GIT_TOKEN"  # noqa: S105 - the same
_UNAUTHORIZED = 401
_REDIRECTS = range(300, 400)
_OK = range(200, 300)
_MALFORMED_RESPONSE = "the response is malformed"


class ApiResponse(NamedTuple):
    """Data and metadata of a response."""

    data: Mapping[str, object]
    meta: Mapping[str, object]


class ServerTimeouts(NamedTuple):
    """Timeouts for connecting and for the response, which may wait for a git clone."""

    connect: NetworkSettings = NetworkSettings(total=10, idle=10)
    response: NetworkSettings = NetworkSettings(total=180, idle=150)


DEFAULT_SERVER_TIMEOUTS: Final = ServerTimeouts()


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """Client for one server. Create it with `from_url`."""

    url: WebUrl
    token: str = field(default="", repr=False)
    git_token: str = field(default="", repr=False)  # for the requested repository
    timeouts: ServerTimeouts = DEFAULT_SERVER_TIMEOUTS
    max_response_bytes: int = MAX_RESPONSE_BYTES
    policy: AddressPolicy = ANY_ADDRESS

    @classmethod
    def from_url(
        cls,
        text: str,
        token: Secret | None = None,
        timeouts: ServerTimeouts = DEFAULT_SERVER_TIMEOUTS,
        proxies: ProxySettings = ProxySettings(),  # noqa: B008 - a tuple
    ) -> ServerConnection:
        """Build the client for a server. Raises: SourceRejected, ConfigInvalid."""
        url = WebUrl.parse(text.rstrip("/"))
        if url.query or url.fragment:
            raise SourceRejected(
                "url", text, "the URL of a server must not have a query or fragment"
            )
        policy = replace(ANY_ADDRESS, proxies=proxies)
        token_text = reveal_token(token, TOKEN_VARIABLE)
        return cls(url, token_text, timeouts=timeouts, policy=policy)

    def with_git_token(self, token: Secret) -> ServerConnection:
        """Return a copy that sends a git token.

        If the token would be sent over a network unencrypted, returns the same connection.
        Raises: ConfigInvalid if the token is not valid in a header.
        """
        if self.url.scheme != "https" and not is_loopback(self.url.host):
            return self
        return replace(self, git_token=reveal_token(token, GIT_TOKEN_VARIABLE))

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
        query_text = urlencode({name: value for name, value in query.items() if value})
        url = replace(self.url, path=self.url.path.rstrip("/") + path, query=query_text)
        headers = {
            "Accept": "application/json",
            "Content-Type": "" if body is None else "application/json",
            "Authorization": f"Bearer {self.token}" if self.token else "",
            "X-Skillhall-Git-Token": self.git_token,
        }
        connect, limit = self.timeouts.connect, self.max_response_bytes
        request = ConnectionRequest(url, Timeout(connect), connect)
        data = serialize_request(method, url, headers, body)
        try:
            with send_request(
                request, self.policy, data, limit, self.timeouts.response
            ) as response:
                content = b"".join(limit_size(read_chunks(response, self.host), limit, self.host))
                return self._parse_response(response.status, content)
        except TooLarge:
            problem = f"the response is larger than {limit} bytes"
            raise SourceUnavailable(self.host, problem) from None

    def _parse_response(self, status: int, data: bytes) -> ApiResponse:
        if status == _UNAUTHORIZED:
            raise NotAuthenticated(self.host, TOKEN_VARIABLE)
        if status in _REDIRECTS:
            hint = "use the URL that it redirects to"
            raise SourceUnavailable(self.host, "it responded with a redirect", hint, status=status)
        envelope = parse_response_json(data)
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
        """Return a message from the server without our tokens, which it may repeat."""
        text = message if isinstance(message, str) and message else "no reason given"
        for token in filter(None, (self.token, self.git_token)):
            text = text.replace(token, "***")
        return text
