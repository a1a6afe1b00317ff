"""Subscriptions and change notifications, for both protocol versions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillhall._internal.mcp.errors import build_invalid_params

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

MAX_SUBSCRIBED_URIS = 1000  # per client


class CatalogChange(NamedTuple):
    """What changed between two polls."""

    skills: bool = False
    prompts: bool = False
    uris: tuple[str, ...] = ()


class Subscriptions:
    """The subscribers of one server. Not thread-safe: use it in the event loop only."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._listen_handler = ListenHandler(self._bus)
        self._stream_count = 0
        self._stream_uris: Counter[str] = Counter()  # number of streams per URI
        # The subscribed URIs of connected clients before protocol 2026.
        self._sessions: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()

    @property
    def has_subscribers(self) -> bool:
        """Whether there are subscribers."""
        return bool(self._stream_count or len(self._sessions))

    @property
    def subscribed_uris(self) -> Sequence[str]:
        """The URIs with at least one subscriber."""
        return [*{*self._stream_uris, *(uri for uris in self._sessions.values() for uri in uris)}]

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of protocol 2026 until it ends. Raises: MCPError."""
        uris = params.notifications.resource_subscriptions or []
        _check_uri_limit(uris)
        self._stream_count += 1
        self._stream_uris.update(uris)
        try:
            return await self._listen_handler(ctx, params)
        finally:
            self._stream_count -= 1
            self._stream_uris.subtract(uris)
            self._stream_uris = +self._stream_uris  # without zero counts

    def needs_no_session(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Whether a client is registered already, or cannot receive notifications."""
        connection = _get_connection(ctx)
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return is_modern or not connection.has_standalone_channel or connection in self._sessions

    def add_session(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Register a client before protocol 2026."""
        self._sessions.setdefault(_get_connection(ctx), set())

    def subscribe(self, ctx: ServerRequestContext[Any, Any], uri: str) -> None:
        """Subscribe the client to a resource. Raises: MCPError for too many."""
        uris = self._sessions.setdefault(_get_connection(ctx), set())
        _check_uri_limit([*uris, uri])
        uris.add(uri)

    def unsubscribe(self, ctx: ServerRequestContext[Any, Any], uri: str) -> None:
        """Unsubscribe the client from a resource."""
        self._sessions.get(_get_connection(ctx), set()).discard(uri)

    async def notify(self, change: CatalogChange) -> None:
        """Notify all subscribers of a change."""
        if change.skills:
            await self._bus.publish(ResourcesListChanged())
            await self._bus.publish(ToolsListChanged())
        if change.prompts:
            await self._bus.publish(PromptsListChanged())
        for uri in change.uris:
            await self._bus.publish(ResourceUpdated(uri))
        for connection, uris in [*self._sessions.items()]:
            if change.skills:
                await connection.send_resource_list_changed()
                await connection.send_tool_list_changed()
            if change.prompts:
                await connection.send_prompt_list_changed()
            for uri in uris.intersection(change.uris):
                await connection.send_resource_updated(uri)

    def close(self) -> None:
        """End every stream with a final message."""
        self._listen_handler.close()


def _get_connection(ctx: ServerRequestContext[Any, Any]) -> Connection:
    # The session is a proxy that lives for one request; the SDK has no public access to its target.
    return ctx.session._connection  # noqa: SLF001


def _check_uri_limit(uris: Sequence[str]) -> None:
    if len(uris) > MAX_SUBSCRIBED_URIS:
        raise build_invalid_params(
            f"too many subscriptions: the limit is {MAX_SUBSCRIBED_URIS} resources", "too_many"
        )
