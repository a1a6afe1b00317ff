"""The SDK's client against our server, for both protocol versions."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
from skillhall._internal.mcp.server import SkillServer
from skillhall._internal.policy.profiles import LENIENT, Profile
from skillhall._internal.sources.folder.root import Root

T = TypeVar("T")
ClientAction = Callable[[Client], Awaitable[T]]

DEADLINE = 120  # seconds; a longer test hangs
MODERN, HANDSHAKE = "auto", "legacy"  # modes of the client
ERAS = (MODERN, HANDSHAKE)
VERSIONS = {MODERN: "2026-07-28", HANDSHAKE: "2025-11-25"}


class RawResult(mcp_types.Result):
    """A result with arbitrary fields."""

    model_config = ConfigDict(extra="allow")


def make_folder_server(*roots: Path, profile: Profile = LENIENT) -> SkillServer:
    """Return a server without caching and with frequent polls."""
    provider = FolderSkillProvider([Root(str(root)) for root in roots], profile)
    return SkillServer(provider, ttl_factor=0, poll_interval=0.01)


def run_client(server: Any, action: ClientAction[T], mode: str = MODERN) -> T:  # noqa: ANN401 - the client's
    """Run an action with a client of a server or transport."""

    async def main() -> T:
        with anyio.fail_after(DEADLINE):
            async with Client(server, mode=mode, cache=None) as client:
                return await action(client)

    try:
        return anyio.run(main)
    except BaseExceptionGroup as group:  # transports raise groups
        raise _first_exception(group) from None


def run_http_client(
    port: int, action: ClientAction[T], headers: Mapping[str, str] | None = None, mode: str = MODERN
) -> T:
    """Run an action with a client of the server at a port."""

    async def main() -> T:
        with anyio.fail_after(DEADLINE):
            async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE) as http_client:
                url = f"http://127.0.0.1:{port}/mcp"
                transport = streamable_http_client(url, http_client=http_client)
                async with Client(transport, mode=mode, cache=None) as client:
                    return await action(client)

    return anyio.run(main)


def _first_exception(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def send_request(client: Client, method: str, **params: object) -> dict[str, Any]:
    """Send a request that the client has no method for."""
    request = mcp_types.Request[dict[str, object], str](method=method, params=params)
    result = await client.session.send_request(request, RawResult)
    return result.model_dump(by_alias=True)


async def read_error(call: Awaitable[object]) -> tuple[int, str]:
    """Return the JSON-RPC code and our code of a failed call."""
    try:
        result = await call
    except MCPError as error:
        data = error.error.data
        return error.error.code, data["code"] if isinstance(data, dict) else ""
    raise AssertionError(f"the call succeeded: {result!r}")


async def read_error_data(call: Awaitable[object]) -> object:
    """Return the error data of a failed call."""
    try:
        result = await call
    except MCPError as error:
        return error.error.data
    raise AssertionError(f"the call succeeded: {result!r}")


async def list_all(client: Client, method: str, key: str) -> list[dict[str, Any]]:
    """Return all rows of a paginated list."""
    rows: list[dict[str, Any]] = []
    cursor: dict[str, object] = {}
    while True:
        page = await send_request(client, method, **cursor)
        rows += page[key]
        if page.get("nextCursor") is None:
            return rows
        cursor = {"cursor": page["nextCursor"]}


def stdio_command(*options: object) -> StdioServerParameters:
    """Return the command `skillhall mcp`, as clients start it."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    arguments = ["-m", "skillhall", "mcp", *map(str, options)]
    return StdioServerParameters(command=sys.executable, args=arguments, env=variables)


@asynccontextmanager
async def open_stdio(command: StdioServerParameters, log: Path) -> AsyncIterator[Any]:
    """Open a transport to the command, with stderr in a file."""
    with log.open("w", encoding="utf-8") as errors:
        async with stdio_client(command, errlog=errors) as streams:
            yield streams
