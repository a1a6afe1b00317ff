"""Transport to an MCP server: JSON-RPC messages with size and time limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from skillhall._internal.net.connection import NetworkSettings, parse_response_json
from skillhall.errors import SourceUnavailable

if TYPE_CHECKING:
    from skillhall._internal.net.connection import Timeout

Message: TypeAlias = "dict[str, object]"

CURRENT_PROTOCOL: Final = "2026-07-28"  # stateless: every request names its protocol version
# Earlier versions, which start with a handshake.
LEGACY_PROTOCOLS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602


class McpTimeouts(NamedTuple):
    """Timeouts for startup, one response, a complete listing, and a complete download."""

    # Long, because a command such as npx may first download its package.
    startup: NetworkSettings = NetworkSettings(total=60, idle=60)
    response: NetworkSettings = NetworkSettings(total=60, idle=30)
    listing: NetworkSettings = NetworkSettings(total=120, idle=30)
    download: NetworkSettings = NetworkSettings(total=300, idle=30)


DEFAULT_MCP_TIMEOUTS: Final = McpTimeouts()


class McpCallError(SourceUnavailable):
    """A server responded with an error; `rpc_code` is 0 if there is no JSON-RPC code."""

    def __init__(self, host: str, problem: str, rpc_code: int = 0, *, status: int = 0) -> None:
        super().__init__(host, problem, "contact the administrator of the server", status=status)
        self.rpc_code = rpc_code


class McpTransport(Protocol):
    """Message channel to one server. Do not use it after an error."""

    host: str  # names the server in errors
    protocol_version: str  # as negotiated; "" before that

    def request(self, request: Message, max_bytes: int, timeout: Timeout) -> Message:
        """Send a request and return its response.

        Raises: SourceUnavailable, SourceTimedOut, TooLarge, NotAuthenticated, RateLimited,
        SourceRejected.
        """

    def notify(self, notification: Message, timeout: Timeout) -> None:
        """Send a notification. Raises: as `request`."""

    def close(self, *, force: bool = False) -> None:
        """Close the connection; `force` skips the graceful shutdown."""


def serialize_message(message: Message) -> bytes:
    """Serialize a message as one line of JSON."""
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def parse_message(data: bytes) -> Message | None:
    """Parse a JSON-RPC message; `None` if the data is not one."""
    value = parse_response_json(data)
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None


def is_response(message: Message, request: Message) -> bool:
    """Whether the message is the response to the request."""
    if message.get("id") != request["id"] or isinstance(message.get("id"), bool):
        return False
    return ("result" in message) is not ("error" in message)
