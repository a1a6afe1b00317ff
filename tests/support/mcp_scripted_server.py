"""MCP server over stdio that follows a script, well-behaved or hostile.

Run it as a program with the path of a script. The SDK does not allow hostile behavior. It imports
only the standard library, so that it starts quickly.
"""

import json
import sys
import threading
from pathlib import Path
from typing import Any, TypedDict

EXTENSION = "io.modelcontextprotocol/skills"
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
NOT_FOUND, INVALID = -32601, -32602
FLOOD = b"x" * 65_536


class Script(TypedDict, total=False):
    """Content and behavior of a server."""

    skills: list[Any]  # listed entries
    hidden: list[Any]  # unlisted entries
    contents: dict[str, Any]  # of resources, by URI
    capabilities: Any
    is_old: bool  # supports only the handshake
    page: int  # entries per page
    results: dict[str, Any]  # replace the correct result, by method
    errors: dict[str, int]  # codes, by method
    raw: dict[str, str]  # lines sent instead of the response, by method
    silent: list[str]  # methods without a response
    dies: list[str]  # methods at which the server exits
    floods: list[str]  # methods with an endless line as response
    asks: int  # requests of the server before each response
    asked_as: str  # prefix of their ids
    is_deaf: bool  # sends responses without reading requests


def capabilities() -> dict[str, Any]:
    """Return the capabilities of a well-behaved server."""
    return {"resources": {}, "extensions": {EXTENSION: {}}}


def build_result(script: Script, method: str, params: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return the correct result of a call; an integer is an error code."""
    declared = script.get("capabilities", capabilities())
    if method == "server/discover" and not script.get("is_old"):
        return {"supportedVersions": [MODERN], "capabilities": declared, **_cacheable()}
    if method == "initialize":
        info = {"name": "scripted", "version": "1"}
        return {"protocolVersion": HANDSHAKE, "capabilities": declared, "serverInfo": info}
    if method == "skills/list":
        return _page(script, params)
    if method == "skills/get":
        known = [*script.get("skills", []), *script.get("hidden", [])]
        result = [
            item for item in known if isinstance(item, dict) and item.get("uri") == params["uri"]
        ]
        return {"skill": result[0], **_cacheable()} if result else INVALID
    if method == "resources/read":
        content = script.get("contents", {}).get(params["uri"])
        return INVALID if content is None else {"contents": [content], **_cacheable()}
    return NOT_FOUND


def _page(script: Script, params: dict[str, Any]) -> dict[str, Any]:
    skills, size = script.get("skills", []), script.get("page", 100)
    start = int(params.get("cursor", 0))
    page: dict[str, Any] = {"skills": skills[start : start + size], **_cacheable()}
    return page | ({"nextCursor": str(start + size)} if len(skills) > start + size else {})


def _cacheable() -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def build_response(script: Script, request: dict[str, Any]) -> bytes:
    """Return the response to a request, or the script's replacement."""
    method, params = request["method"], request.get("params", {})
    if method in script.get("raw", {}):
        return script["raw"][method].encode()
    if method in script.get("results", {}):
        result = script["results"][method]
    elif method in script.get("errors", {}):
        result = script["errors"][method]
    else:
        result = build_result(script, method, params)
    message = {"jsonrpc": "2.0", "id": request["id"]}
    if isinstance(result, int):
        return json.dumps({**message, "error": {"code": result, "message": "no"}}).encode()
    return json.dumps({**message, "result": result}).encode()


def respond_without_reading(script: Script) -> None:
    """Send the expected responses in order and wait to be killed."""
    requests = [{"id": 1, "method": "server/discover"}]
    requests += [{"id": number, "method": "skills/list"} for number in range(2, 2000)]
    for request in requests:
        response = json.loads(build_response(script, request))
        response["result"]["nextCursor"] = str(request["id"])
        sys.stdout.write(json.dumps(response) + "\n")
    sys.stdout.flush()
    threading.Event().wait()


def main(script: Script) -> None:
    """Respond until the input ends."""
    out = sys.stdout.buffer
    if script.get("is_deaf"):
        respond_without_reading(script)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        method = request.get("method")
        if "id" not in request or method is None or method in script.get("silent", []):
            continue
        if method in script.get("dies", []):
            return
        while method in script.get("floods", []):
            out.write(FLOOD)
        for number in range(script.get("asks", 0)):
            question = {
                "jsonrpc": "2.0",
                "id": f"{script.get('asked_as', 'q')}{number}",
                "method": ["ping", "roots/list"][number % 2],
            }
            out.write(json.dumps(question).encode() + b"\n")
            out.write(b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}\n')
        out.write(build_response(script, request) + b"\n")
        out.flush()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
