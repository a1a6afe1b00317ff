"""Subscriptions of clients of both protocol versions, and the poller behind them."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import anyio
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillhall._internal.cache import TTL_FACTOR
from skillhall._internal.mcp.errors import LOG, build_invalid_params
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp_types import (
        SubscribeRequestParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
        UnsubscribeRequestParams,
    )

    from skillhall._internal.http.thread_pool import WorkerPool
    from skillhall._internal.mcp.prompt_handlers import PromptSource
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.mcp.skill_index import SkillIndex

    Context = ServerRequestContext[Any, Any]

MAX_SUBSCRIBED_URIS = 1000  # per client
MIN_POLL_INTERVAL = 2.0  # seconds


class ObservedState(NamedTuple):
    """The state of the skills, prompts and subscribed files at one poll."""

    skills_revision: str
    prompts_digest: str
    file_states: Mapping[str, str]  # by URI


class Subscriptions:
    """The subscribers of one server. Not thread-safe: use it in the event loop only.

    While there are subscribers, `run` compares the current state with the previous one.
    """

    def __init__(
        self,
        index: SkillIndex,
        prompts: PromptSource,
        workers: WorkerPool,
        *,
        min_interval: float = MIN_POLL_INTERVAL,
        ttl_factor: float = TTL_FACTOR,
    ) -> None:
        self._index = index
        self._prompts = prompts
        self._workers = workers
        self._min_interval = min_interval
        self._ttl_factor = ttl_factor
        self._bus = InMemorySubscriptionBus()
        self._listen_handler = ListenHandler(self._bus)
        self._stream_count = 0
        self._stream_uris: Counter[str] = Counter()  # number of streams per URI
        # The subscribed URIs of connected clients with a protocol before 2026.
        self._sessions: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()
        self._baseline: ObservedState | None = None
        # A poll that began before a subscription must not replace the subscription's baseline.
        self._poll_lock = anyio.Lock()

    async def listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of protocol 2026 until it ends. Raises: MCPError."""
        uris = params.notifications.resource_subscriptions or []
        _check_uri_limit(uris)
        await self._record_baseline(uris)
        self._stream_count += 1
        self._stream_uris.update(uris)
        try:
            return await self._listen_handler(ctx, params)
        finally:
            self._stream_count -= 1
            self._stream_uris.subtract(uris)
            self._stream_uris = +self._stream_uris  # without zero counts

    async def add_session(self, ctx: Context) -> None:
        """Register a client with a protocol before 2026 if it can receive notifications."""
        connection = _get_connection(ctx)
        if (
            ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS
            and connection.has_standalone_channel
            and connection not in self._sessions
        ):
            await self._record_baseline()
            self._sessions.setdefault(connection, set())

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> JsonObject:
        """Subscribe the client to a resource. Raises: MCPError if it has too many."""
        uris = self._sessions.setdefault(_get_connection(ctx), set())
        _check_uri_limit([*uris, params.uri])
        uris.add(params.uri)
        await self._record_baseline([params.uri])
        return {}

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> JsonObject:
        """Unsubscribe the client from a resource."""
        self._sessions.get(_get_connection(ctx), set()).discard(params.uri)
        return {}

    def close(self) -> None:
        """End every stream with a final message."""
        self._listen_handler.close()

    async def run(self) -> None:
        """Poll and notify until cancelled. Slow polls are followed by longer pauses."""
        pause = self._min_interval
        while True:
            await anyio.sleep(pause)
            started = time.monotonic()
            if self._stream_count or len(self._sessions):
                await self._poll_and_notify()
            else:
                self._baseline = None
            pause = max(self._min_interval, self._ttl_factor * (time.monotonic() - started))

    async def _record_baseline(self, uris: Sequence[str] = ()) -> None:
        """Record the current state as the baseline for new subscribers."""
        if self._baseline is not None and self._baseline.file_states.keys() >= {*uris}:
            return
        async with self._poll_lock:
            known = self._baseline
            unknown = [uri for uri in uris if known is None or uri not in known.file_states]
            if unknown or known is None:
                observed = await self._workers.run(self._observe, unknown)
                known = known or observed
                file_states = {**observed.file_states, **known.file_states}
                self._baseline = known._replace(file_states=file_states)

    async def _poll_and_notify(self) -> None:
        session_uris = (uri for uris in self._sessions.values() for uri in uris)
        subscribed = [*{*self._stream_uris, *session_uris}]
        async with self._poll_lock:
            try:
                after = await self._workers.run(self._observe, subscribed)
            except (SkillhallError, OSError) as error:  # retried with the next poll
                LOG.warning("cannot poll for changes: %s", error)
                return
            before, self._baseline = self._baseline or after, after
        await self._notify(before, after)

    def _observe(self, uris: Sequence[str]) -> ObservedState:
        revision = self._index.refresh().revision
        file_states = {uri: self._index.compute_file_state(uri) for uri in uris}
        return ObservedState(revision, self._prompts.current().digest, file_states)

    async def _notify(self, before: ObservedState, after: ObservedState) -> None:
        """Notify the subscribers of the changes between two polls."""
        has_new_skills = before.skills_revision != after.skills_revision
        has_new_prompts = before.prompts_digest != after.prompts_digest
        changed = [
            uri
            for uri, state in after.file_states.items()
            if before.file_states.get(uri, state) != state
        ]
        if has_new_skills:
            await self._bus.publish(ResourcesListChanged())
            await self._bus.publish(ToolsListChanged())
        if has_new_prompts:
            await self._bus.publish(PromptsListChanged())
        for uri in changed:
            await self._bus.publish(ResourceUpdated(uri))
        for connection, uris in [*self._sessions.items()]:
            if has_new_skills:
                await connection.send_resource_list_changed()
                await connection.send_tool_list_changed()
            if has_new_prompts:
                await connection.send_prompt_list_changed()
            for uri in uris.intersection(changed):
                await connection.send_resource_updated(uri)


def _get_connection(ctx: Context) -> Connection:
    # The session is a proxy that lives for one request; the SDK has no public access to its target.
    return ctx.session._connection  # noqa: SLF001


def _check_uri_limit(uris: Sequence[str]) -> None:
    if len(uris) > MAX_SUBSCRIBED_URIS:
        raise build_invalid_params(
            f"too many subscriptions: the limit is {MAX_SUBSCRIBED_URIS} resources", "too_many"
        )
