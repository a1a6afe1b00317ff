"""Server program that serves the skills of a script with the official SDK.

python mcp_sdk_server.py SCRIPT stdio
python mcp_sdk_server.py SCRIPT http       prints its port
"""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    BlobResourceContents,
    CacheableResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    TextResourceContents,
)
from pydantic import ConfigDict

INVALID = -32602


class ExtensionResult(CacheableResult):
    """Result with fields of the extension."""

    model_config = ConfigDict(extra="allow")


class GetSkillParams(RequestParams):
    """Parameters of `skills/get`."""

    uri: str


class ListSkillsParams(RequestParams):
    """Parameters of `skills/list`."""

    cursor: str | None = None


def make_server(script: dict[str, Any]) -> Server[Any]:
    """Build the server of a script."""

    async def read(_: object, params: ReadResourceRequestParams) -> ReadResourceResult:
        await anyio.lowlevel.checkpoint()
        content = script["contents"].get(str(params.uri))
        if content is None:
            raise MCPError(INVALID, "there is none")
        kind = TextResourceContents if "text" in content else BlobResourceContents
        return ReadResourceResult(contents=[kind(**content)])

    async def list_skills(_: object, params: ListSkillsParams) -> ExtensionResult:
        await anyio.lowlevel.checkpoint()
        start = int(params.cursor or 0)
        page: dict[str, Any] = {"skills": script["skills"][start : start + 1]}
        if len(script["skills"]) > start + 1:
            page["nextCursor"] = str(start + 1)
        return ExtensionResult.model_validate(page)

    async def get_skill(_: object, params: GetSkillParams) -> ExtensionResult:
        await anyio.lowlevel.checkpoint()
        result = [skill for skill in script["skills"] if skill["uri"] == params.uri]
        if not result:
            raise MCPError(INVALID, "there is none")
        return ExtensionResult.model_validate({"skill": result[0]})

    server: Server[Any] = Server("sdk", on_read_resource=read)
    server.extensions["io.modelcontextprotocol/skills"] = {}
    server.add_request_handler("skills/list", ListSkillsParams, list_skills)
    server.add_request_handler("skills/get", GetSkillParams, get_skill)
    return server


async def serve_streams(server: Server[Any]) -> None:
    """Respond until the input ends."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def serve_http(server: Server[Any]) -> None:
    """Serve on a free port until the process is killed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    made = make_server(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    if sys.argv[2] == "http":
        serve_http(made)
    else:
        anyio.run(serve_streams, made)
