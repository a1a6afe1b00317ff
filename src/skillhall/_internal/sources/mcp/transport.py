"""What a line to an MCP server carries: JSON-RPC messages, each bounded in size and in time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Protocol, TypeAlias

from skillhall._internal.net.connection import NetworkSettings
from skillhall.errors import SourceUnavailable

if TYPE_CHECKING:
    from skillhall._internal.net.connection import Timeout

Message: TypeAlias = "dict[str, object]"

CURRENT_PROTOCOL: Final = "2026-07-28"  # every request says which protocol it speaks
# The protocols before it, which begin with a handshake.
LEGACY_PROTOCOLS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602


class McpTimeouts(NamedTuple):
    """How long a server may take: for one answer, for a whole listing, for all files of an add."""

    # A command may have to be downloaded before it says its first word.
    startup: NetworkSettings = NetworkSettings(total=60, idle=60)
    response: NetworkSettings = NetworkSettings(total=60, idle=30)
    listing: NetworkSettings = NetworkSettings(total=120, idle=30)
    download: NetworkSettings = NetworkSettings(total=300, idle=30)


DEFAULT_MCP_TIMEOUTS: Final = McpTimeouts()


class McpCallError(SourceUnavailable):
    """A server that answers a call with an error; `rpc` is its number, 0 if it gives none."""

    def __init__(self, host: str, problem: str, rpc_code: int = 0, *, status: int = 0) -> None:
        super().__init__(host, problem, "ask those who run it", status=status)
        self.rpc_code = rpc_code


class McpTransport(Protocol):
    """A way to one server. Every error is a SkillhallError, and the last thing that is heard."""

    host: str  # what messages call the server
    protocol_version: str  # the protocol that was agreed on; "" before that

    def request(self, request: Message, max_bytes: int, timeout: Timeout) -> Message:
        """The response to a request.

        Raises: SourceUnavailable, SourceTimedOut, TooLarge, NotAuthenticated, RateLimited,
        SourceRejected.
        """

    def notify(self, notification: Message, timeout: Timeout) -> None:
        """Send what has no response. Raises: as `ask`."""

    def close(self, *, force: bool = False) -> None:
        """Let go of the server; at once, if something went wrong."""


def serialize_message(message: Message) -> bytes:
    """The message as it is sent: one line."""
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def parse_message(data: bytes) -> Message | None:
    """The message that the bytes hold; `None` if they are none."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None


def is_response(message: Message, request: Message) -> bool:
    """Whether it is the response to the request."""
    if message.get("id") != request["id"] or isinstance(message.get("id"), bool):
        return False
    return ("result" in message) is not ("error" in message)


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)
