"""News: who listens for changes, in either era of the protocol, and what they are told."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
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

from skillhall._internal.mcp.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

MAX_URIS = 1000  # that one client may ask to be told about


class Change(NamedTuple):
    """What is not as it was."""

    skills: bool = False
    prompts: bool = False
    uris: tuple[str, ...] = ()


class News:
    """The listeners of one server; used in its event loop alone."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._streams = 0
        self._streamed: Counter[str] = Counter()  # addresses that streams ask about
        # Clients of the handshake era, and what each asks about, for as long as they are there.
        self._sessions: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._streams or len(self._sessions))

    @property
    def uris(self) -> Sequence[str]:
        """The addresses that somebody asks about."""
        return [*{*self._streamed, *(uri for uris in self._sessions.values() for uri in uris)}]

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of the 2026 era until it ends. Raises: MCPError."""
        uris = params.notifications.resource_subscriptions or []
        _refuse_many(uris)
        with self._streaming(uris):
            return await self._listen(ctx, params)

    def knows(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Whether a client was noted already, or is none that can be told anything."""
        connection = _connection(ctx)
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return is_modern or not connection.has_standalone_channel or connection in self._sessions

    def begin_session(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Note a client of the handshake era."""
        self._sessions.setdefault(_connection(ctx), set())

    def subscribe(self, ctx: ServerRequestContext[Any, Any], uri: str) -> None:
        """Tell that client when the resource changes. Raises: MCPError for too many."""
        uris = self._sessions.setdefault(_connection(ctx), set())
        _refuse_many([*uris, uri])
        uris.add(uri)

    def unsubscribe(self, ctx: ServerRequestContext[Any, Any], uri: str) -> None:
        """Tell it no more."""
        self._sessions.get(_connection(ctx), set()).discard(uri)

    async def tell(self, change: Change) -> None:
        """Tell everybody what they asked for."""
        if change.skills:
            await self._bus.publish(ResourcesListChanged())
            await self._bus.publish(ToolsListChanged())
        if change.prompts:
            await self._bus.publish(PromptsListChanged())
        for uri in change.uris:
            await self._bus.publish(ResourceUpdated(uri))
        for connection, uris in [*self._sessions.items()]:
            await _tell_session(connection, uris, change)

    def close(self) -> None:
        """End every stream, with a last word to its client."""
        self._listen.close()

    @contextmanager
    def _streaming(self, uris: Sequence[str]) -> Iterator[None]:
        self._streams += 1
        self._streamed.update(uris)
        try:
            yield
        finally:
            self._streams -= 1
            self._streamed.subtract(uris)
            self._streamed = +self._streamed


async def _tell_session(connection: Connection, uris: set[str], change: Change) -> None:
    if change.skills:
        await connection.send_resource_list_changed()
        await connection.send_tool_list_changed()
    if change.prompts:
        await connection.send_prompt_list_changed()
    for uri in uris.intersection(change.uris):
        await connection.send_resource_updated(uri)


def _connection(ctx: ServerRequestContext[Any, Any]) -> Connection:
    # The session is a proxy that lives as long as one request; what it stands for has no other way
    # to it.
    return ctx.session._connection  # noqa: SLF001


def _refuse_many(uris: Sequence[str]) -> None:
    if len(uris) > MAX_URIS:
        raise invalid(f"at most {MAX_URIS} resources can be subscribed to", "too_many")
