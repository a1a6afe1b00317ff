"""The MCP server: one object for stdio and streamable HTTP, and for both eras of the protocol."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from anyio.to_thread import run_sync
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    GetPromptRequestParams,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from skillhall._internal.cache import SHARE
from skillhall._internal.mcp.change_poller import INTERVAL, Watch
from skillhall._internal.mcp.directories import read_directory
from skillhall._internal.mcp.errors import failure_of
from skillhall._internal.mcp.prompt_handlers import SkillPromptSupply, get_prompt, prompts_page
from skillhall._internal.mcp.serializers import LIST_TTL, fresh
from skillhall._internal.mcp.skill_index import Stock
from skillhall._internal.mcp.subscriptions import News
from skillhall._internal.mcp.tool_handlers import call_tool, list_tools
from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.server.context import HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from skillhall._internal.catalog.skill_view import Offering
    from skillhall._internal.mcp.prompt_handlers import PromptList, PromptSupply
    from skillhall._internal.mcp.serializers import Wire

    Context = ServerRequestContext[Any, Any]

EXTENSION = "io.modelcontextprotocol/skills"
EXTENSION_METHODS = ("skills/list", "skills/get", "resources/directory/read")
INSTRUCTIONS = (
    "This server has skills: instructions for kinds of tasks. Before a task, look whether a skill "
    "matches it, by its description (list_skills, search_skills, or skills/list), load it "
    "(load_skill), and follow it. Its other files are read with read_skill_file."
)
_TEMPLATE = {
    "uriTemplate": "skill://{+skill_path}/{+file}",
    "name": "skill-file",
    "title": "A file of a skill",
    "description": "Any file of any skill; SKILL.md holds its instructions.",
}

_P = TypeVar("_P", bound=BaseModel)


class DirectoryParams(PaginatedRequestParams):
    """Which directory is read."""

    uri: str


class SkillParams(RequestParams):
    """Which skill is asked for, by the address of its SKILL.md."""

    uri: str


class SkillServer(Server[None]):
    """The SDK's server over an offering of skills, which are its prompts if no others are given."""

    def __init__(
        self,
        offering: Offering,
        prompts: PromptSupply | None = None,
        *,
        keeps_sessions: bool = True,
        share: float = SHARE,
        interval: float = INTERVAL,
    ) -> None:
        self.stock = Stock(offering, share)
        self.news = News()
        self._prompts = SkillPromptSupply(self.stock) if prompts is None else prompts
        self._watch = Watch(self.stock, self._prompts, self.news, interval, share)
        self._keeps_sessions = keeps_sessions
        super().__init__(
            "skillhall", version=VERSION, instructions=INSTRUCTIONS, lifespan=self._watched
        )
        self.extensions = {EXTENSION: {"directoryRead": True}}
        self._add_handlers()

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002 - the SDK's
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,  # noqa: ARG002 - the SDK's
    ) -> InitializationOptions:
        """What clients of the handshake era are promised; the extension is not for them."""
        kept = self._keeps_sessions
        promised = NotificationOptions(kept, kept, kept)
        return super().create_initialization_options(promised, experimental_capabilities, {})

    @asynccontextmanager
    async def _watched(self, _: Server[None]) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch.run())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    def _add_handlers(self) -> None:
        self._add("prompts/list", PaginatedRequestParams, self._list_prompts)
        self._add("prompts/get", GetPromptRequestParams, self._get_prompt)
        self._add("resources/list", PaginatedRequestParams, partial(self._page, "resources"))
        self._add("resources/templates/list", PaginatedRequestParams, self._list_templates)
        self._add("resources/read", ReadResourceRequestParams, self._read_resource)
        self._add("tools/list", PaginatedRequestParams, self._list_tools)
        self._add("tools/call", CallToolRequestParams, self._call_tool)
        self._add("skills/list", PaginatedRequestParams, partial(self._page, "skills"))
        self._add("skills/get", SkillParams, self._get_skill)
        self._add("resources/directory/read", DirectoryParams, self._read_directory)
        self._add("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        if self._keeps_sessions:
            self._add("resources/subscribe", SubscribeRequestParams, self._subscribe)
            self._add("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
            self.add_notification_handler(
                "notifications/initialized", NotificationParams, self._begin_session
            )

    def _add(
        self,
        method: str,
        params: type[_P],
        handler: Callable[[Context, _P], Awaitable[HandlerResult]],
    ) -> None:
        is_ours = method in EXTENSION_METHODS

        async def answer(ctx: Context, given: _P) -> HandlerResult:
            if is_ours and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
            try:
                await self._join(ctx)
                return await handler(ctx, given)
            except Exception as error:  # noqa: BLE001 - the last net: no client meets a traceback
                raise failure_of(error, getattr(given, "uri", None)) from None

        self.add_request_handler(method, params, answer)

    async def _page(self, kind: str, _: Context, given: PaginatedRequestParams) -> Wire:
        ready = self.stock.ready(kind, given.cursor)
        return await run_sync(self.stock.page, kind, given.cursor) if ready is None else ready

    async def _get_skill(self, _: Context, given: SkillParams) -> Wire:
        return await run_sync(self.stock.entry, given.uri)

    async def _read_resource(self, _: Context, given: ReadResourceRequestParams) -> Wire:
        return await run_sync(self.stock.read, given.uri)

    async def _read_directory(self, _: Context, given: DirectoryParams) -> Wire:
        return await run_sync(lambda: read_directory(self.stock.view(), given.uri, given.cursor))

    async def _list_templates(self, _: Context, _given: PaginatedRequestParams) -> Wire:
        return fresh({"resourceTemplates": [_TEMPLATE]}, LIST_TTL)

    async def _list_tools(self, _: Context, _given: PaginatedRequestParams) -> Wire:
        return await run_sync(list_tools, self.stock)

    async def _call_tool(self, _: Context, given: CallToolRequestParams) -> Wire:
        return await run_sync(call_tool, self.stock, given.name, given.arguments)

    async def _list_prompts(self, _: Context, given: PaginatedRequestParams) -> Wire:
        return await run_sync(lambda: prompts_page(self._current_prompts(), given.cursor))

    async def _get_prompt(self, _: Context, given: GetPromptRequestParams) -> Wire:
        values = given.arguments
        return await run_sync(lambda: get_prompt(self._current_prompts(), given.name, values))

    def _current_prompts(self) -> PromptList:
        return self._prompts.current() or self._prompts.snapshot()

    async def _listen(self, ctx: Context, given: SubscriptionsListenRequestParams) -> HandlerResult:
        await self._watch.begin(given.notifications.resource_subscriptions or ())
        return await self.news.listen(ctx, given)

    async def _begin_session(self, ctx: Context, _: NotificationParams) -> None:
        await self._join(ctx)

    async def _join(self, ctx: Context) -> None:
        # The SDK handles notifications beside requests, so the answer to a first request may be
        # ready before `notifications/initialized` is handled. The state to compare with is read
        # before either: otherwise a change right after that answer is in it, and never reported.
        if self._keeps_sessions and not self.news.knows(ctx):
            await self._watch.begin()
            self.news.begin_session(ctx)

    async def _subscribe(self, ctx: Context, given: SubscribeRequestParams) -> Wire:
        self.news.subscribe(ctx, given.uri)
        await self._watch.begin([given.uri])
        return {}

    async def _unsubscribe(self, ctx: Context, given: UnsubscribeRequestParams) -> Wire:
        self.news.unsubscribe(ctx, given.uri)
        return {}
