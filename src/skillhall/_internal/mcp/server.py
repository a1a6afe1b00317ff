"""The MCP server, for stdio and streamable HTTP and for both protocol versions."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    NotificationParams,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.cache import TTL_FACTOR
from skillhall._internal.http.access import check_action
from skillhall._internal.http.thread_pool import Work, WorkerPool, WorkerPools
from skillhall._internal.mcp.errors import build_invalid_params, to_mcp_error
from skillhall._internal.mcp.handshake import INSTRUCTIONS, SERVER_NAME
from skillhall._internal.mcp.prompt_handlers import PromptSource
from skillhall._internal.mcp.serializers import LIST_TTL_MS, with_ttl
from skillhall._internal.mcp.skill_index import (
    RESOURCE_TEMPLATE,
    DirectoryParams,
    SkillIndex,
    SkillParams,
)
from skillhall._internal.mcp.subscriptions import MIN_POLL_INTERVAL, Subscriptions
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.server.context import HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from skillhall._internal.agents.tool_definition import ToolResult
    from skillhall._internal.agents.usage_recorder import UsageRecorder
    from skillhall._internal.catalog.skill_view import SkillProvider
    from skillhall._internal.mcp.serializers import JsonObject
    from skillhall._internal.mcp.skill_index import ListKind
    from skillhall._internal.prompt_server.service import PromptService

    Context = ServerRequestContext[Any, Any]

EXTENSION = "io.modelcontextprotocol/skills"
EXTENSION_METHODS = ("skills/list", "skills/get", "resources/directory/read")
# The action that a user needs for each method and tool. One without an action is not served.
METHOD_ACTIONS = {
    "completion/complete": Action.READ,
    "prompts/list": Action.READ,
    "prompts/get": Action.READ,
    "resources/list": Action.READ,
    "resources/templates/list": Action.READ,
    "resources/read": Action.READ,
    "resources/directory/read": Action.READ,
    "resources/subscribe": Action.READ,
    "resources/unsubscribe": Action.READ,
    "skills/list": Action.READ,
    "skills/get": Action.READ,
    "subscriptions/listen": Action.READ,
    "tools/list": Action.READ,
    "tools/call": Action.READ,  # and the action of the tool
}
TOOL_ACTIONS = {
    "list_skills": Action.READ,
    "search_skills": Action.READ,
    "load_skill": Action.READ,
    "read_skill_file": Action.READ,
}
_TOOL_TITLES = {
    "list_skills": "List skills",
    "search_skills": "Search skills",
    "load_skill": "Load a skill",
    "read_skill_file": "Read a file of a skill",
}
# The tools change nothing, are idempotent and reach no other system.
_TOOL_HINTS = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}

_P = TypeVar("_P", bound=BaseModel)


class SkillServer(Server[None]):
    """The MCP server of a skill provider.

    Without a prompt service, the skills are also the prompts.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        provider: SkillProvider,
        prompt_service: PromptService | None = None,
        *,
        is_stateful: bool = True,
        ttl_factor: float = TTL_FACTOR,
        max_view_age: float = math.inf,
        poll_interval: float = MIN_POLL_INTERVAL,
        workers: WorkerPool | None = None,
        usage: UsageRecorder | None = None,
    ) -> None:
        """Create the server; `workers` runs its handlers, which only read from disk.

        `usage` records the skills that are loaded and read by tools.

        With `max_view_age`, changes show within that many seconds even if the provider was slow.
        """
        self.index = SkillIndex(provider, ttl_factor, max_view_age)
        self._usage = usage
        self._workers = workers or WorkerPools()[Work.DISK]
        self._prompts = PromptSource(self.index, prompt_service)
        self.subscriptions = Subscriptions(
            self.index,
            self._prompts,
            self._workers,
            min_interval=poll_interval,
            ttl_factor=ttl_factor,
        )
        self._is_stateful = is_stateful
        super().__init__(
            SERVER_NAME, version=VERSION, instructions=INSTRUCTIONS, lifespan=self._run_poller
        )
        self.extensions = {EXTENSION: {"directoryRead": True}}
        self._add_handlers()

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002 - the SDK's
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,  # noqa: ARG002 - the SDK's
    ) -> InitializationOptions:
        """Return the options for protocols before 2026, which have no extensions."""
        stateful = self._is_stateful  # a stateless server cannot send notifications
        options = NotificationOptions(stateful, stateful, stateful)
        return super().create_initialization_options(options, experimental_capabilities, {})

    @asynccontextmanager
    async def _run_poller(self, _: Server[None]) -> AsyncIterator[None]:
        task = asyncio.create_task(self.subscriptions.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _add_handlers(self) -> None:
        index, prompts, add = self.index, self._prompts, self._add_handler
        templates = with_ttl({"resourceTemplates": [RESOURCE_TEMPLATE]}, LIST_TTL_MS)
        blocking, paginated = self._add_blocking_handler, PaginatedRequestParams
        blocking("prompts/list", paginated, prompts.list_page)
        blocking("prompts/get", GetPromptRequestParams, prompts.get)
        add("resources/list", paginated, partial(self._list_page, "resources"))
        blocking("resources/templates/list", paginated, lambda _: templates)
        blocking("resources/read", ReadResourceRequestParams, index.read_resource)
        blocking("completion/complete", CompleteRequestParams, self._complete)
        blocking("tools/list", paginated, partial(_list_tools, index))
        blocking("tools/call", CallToolRequestParams, self._call_tool)
        add("skills/list", paginated, partial(self._list_page, "skills"))
        blocking("skills/get", SkillParams, index.get_skill_entry)
        blocking("resources/directory/read", DirectoryParams, index.read_directory)
        add("subscriptions/listen", SubscriptionsListenRequestParams, self.subscriptions.listen)
        if self._is_stateful:
            add("resources/subscribe", SubscribeRequestParams, self.subscriptions.subscribe)
            add("resources/unsubscribe", UnsubscribeRequestParams, self.subscriptions.unsubscribe)
            self.add_notification_handler(
                "notifications/initialized", NotificationParams, self._register_client
            )

    def _add_blocking_handler(
        self, method: str, params: type[_P], function: Callable[[_P], JsonObject]
    ) -> None:
        """Add a handler that runs in a thread."""

        async def handle(_: Context, request: _P) -> JsonObject:
            return await self._workers.run(function, request)

        self._add_handler(method, params, handle)

    def _add_handler(
        self,
        method: str,
        params: type[_P],
        handler: Callable[[Context, _P], Awaitable[HandlerResult]],
    ) -> None:
        is_extension, action = method in EXTENSION_METHODS, METHOD_ACTIONS[method]

        async def handle(ctx: Context, request: _P) -> HandlerResult:
            if is_extension and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
            try:
                _check_action(ctx, action)
                if isinstance(request, CallToolRequestParams) and request.name in TOOL_ACTIONS:
                    _check_action(ctx, TOOL_ACTIONS[request.name])
                await self._register_client(ctx)
                result = await handler(ctx, request)
            except Exception as error:  # noqa: BLE001 - clients never see a traceback
                raise to_mcp_error(error, getattr(request, "uri", None)) from None
            is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            if isinstance(result, dict) and is_modern:  # strict clients of earlier ones reject it
                return {"resultType": "complete", **result}
            return result

        self.add_request_handler(method, params, handle)

    async def _list_page(
        self, kind: ListKind, _: Context, params: PaginatedRequestParams
    ) -> JsonObject:
        page = self.index.get_cached_page(kind, params.cursor)
        if page is None:
            page = await self._workers.run(self.index.get_page, kind, params.cursor)
        return page

    def _complete(self, params: CompleteRequestParams) -> JsonObject:
        is_prompt = isinstance(params.ref, PromptReference)
        return self._prompts.complete(params) if is_prompt else self.index.complete(params)

    def _call_tool(self, params: CallToolRequestParams) -> JsonObject:
        """Return the result of a tool call.

        Every `load_skill` returns the instructions, since the server does not know the
        conversation. Raises: MCPError for an unknown tool.
        """
        for tool in SkillTools(self.index).tools():
            if tool.name == params.name and tool.name in TOOL_ACTIONS:
                result = tool.call(params.arguments)
                if self._usage is not None:
                    view, tokens = self.index.current_view(), estimate_tokens(result.text)
                    self._usage.record_call(view, tool.name, params.arguments, result, tokens)
                return _serialize_tool_result(result)
        raise build_invalid_params(f"unknown tool: {params.name[:80]!r}")

    async def _register_client(self, ctx: Context, _: NotificationParams | None = None) -> None:
        # The SDK handles notifications concurrently, so the first response may be sent before
        # `notifications/initialized` is handled. The baseline is recorded before either: otherwise
        # it would include a change right after that response, which is then never reported.
        if self._is_stateful:
            await self.subscriptions.add_session(ctx)


def _check_action(ctx: Context, action: Action) -> None:
    """Check that a request over HTTP may perform an action. Raises: SkillhallError."""
    if ctx.request is not None:
        check_action(ctx.request.scope, action)


def _list_tools(index: SkillIndex, _: PaginatedRequestParams) -> JsonObject:
    """Return the tools; none if there are no skills."""
    tools = [
        {
            "name": tool.name,
            "title": _TOOL_TITLES[tool.name],
            "description": tool.description,
            "inputSchema": tool.parameters,
            "annotations": {"title": _TOOL_TITLES[tool.name], **_TOOL_HINTS},
        }
        for tool in SkillTools(index).tools()
        if tool.name in TOOL_ACTIONS
    ]
    return with_ttl({"tools": tools}, LIST_TTL_MS)


def _serialize_tool_result(result: ToolResult) -> JsonObject:
    text, structured = result.text, {}
    if result.is_error:
        error = {"code": result.code, "message": text}
        text = f"{text} [{result.code}]"
        structured = {"structuredContent": {"error": error}, "isError": True}
    elif not isinstance(result.content, str):
        structured = {"structuredContent": {**result.content}}
    return {"content": [{"type": "text", "text": text}], **structured}
