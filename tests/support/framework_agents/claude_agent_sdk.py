"""An agent on the Claude Agent SDK, with a script in the place of Claude Code and its model.

The SDK starts Claude Code and answers its messages: calls of the MCP servers in the process, and
hooks. The script sends the same messages through the SDK's interface for other transports.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    Transport,
    query,
)

from skillhall._internal.agents.adapters.claude_agent_sdk import with_skills
from skillhall._internal.agents.agent_skills import AgentSkills
from tests.support.model_server import ToolCall

SERVER = "skillhall"
COMPACT = "compact"  # a turn in which Claude Code shortens the conversation
Turn = ToolCall | str
_NUMBERS = itertools.count(1)


class ScriptedClaudeCode(Transport):
    """Plays a script, and records the tools and their results."""

    def __init__(self, script: Sequence[Turn]) -> None:
        self._script = script
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._replies: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._hooks: list[str] = []
        self._task: asyncio.Task[None] | None = None
        self.tools: dict[str, dict[str, Any]] = {}  # the JSON Schemas, by name
        self.results: list[tuple[str, bool]] = []  # the text, and whether it is an error

    async def connect(self) -> None:
        pass

    async def close(self) -> None:
        if self._task is not None:
            await self._task

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":  # its only request is `initialize`
            matchers = (message["request"].get("hooks") or {}).get("PreCompact", [])
            self._hooks = [one for matcher in matchers for one in matcher["hookCallbackIds"]]
            reply = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self._messages.put_nowait({"type": "control_response", "response": reply})
        elif message["type"] == "control_response":
            response = message["response"]
            self._replies.pop(response["request_id"]).set_result(response["response"])
        else:
            self._task = asyncio.create_task(self._play())

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._messages.get()) is not None:
            yield message

    async def _play(self) -> None:
        client = {"name": "claude-code", "version": "2.0.0"}
        version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        await self._call_mcp("initialize", version)
        listed = await self._call_mcp("tools/list", {})
        self.tools = {tool["name"]: tool["inputSchema"] for tool in listed["tools"]}
        for turn in self._script[:-1]:
            if isinstance(turn, ToolCall):
                call = {"name": turn.tool, "arguments": turn.arguments}
                result = await self._call_mcp("tools/call", call)
                text = "".join(block["text"] for block in result["content"])
                self.results.append((text, bool(result.get("isError"))))
            for hook in self._hooks if turn == COMPACT else ():
                await self._request(subtype="hook_callback", callback_id=hook, input={})
        result = {"type": "result", "subtype": "success", "result": self._script[-1]}
        result |= {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "session_id": "s"}
        self._messages.put_nowait({**result, "is_error": False})
        self._messages.put_nowait(None)

    async def _call_mcp(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": len(self.results) + 10, "method": method}
        reply = await self._request(
            subtype="mcp_message", server_name=SERVER, message={**message, "params": params}
        )
        result: dict[str, Any] = reply["mcp_response"]["result"]
        return result

    async def _request(self, **request: object) -> dict[str, Any]:
        number = f"request-{next(_NUMBERS)}"
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        message = {"type": "control_request", "request_id": number, "request": request}
        self._messages.put_nowait(message)
        async with asyncio.timeout(30):
            return await reply


def ask(skills: AgentSkills, script: Sequence[Turn], question: str) -> ScriptedClaudeCode:
    """Ask an agent; its reply must be the last turn of the script."""

    async def ask() -> ScriptedClaudeCode:
        transport = ScriptedClaudeCode(script)
        options = with_skills(ClaudeAgentOptions(), skills)
        reply = ""
        async for message in query(prompt=question, options=options, transport=transport):
            if isinstance(message, ResultMessage):
                reply = message.result or ""
        assert reply == script[-1]
        return transport

    return asyncio.run(ask())
