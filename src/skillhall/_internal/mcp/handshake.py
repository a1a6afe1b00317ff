"""Early handshake: answers `initialize` over stdio before the MCP SDK is imported.

Importing the SDK takes about a second, and hosts wait for this response when they start. The answer
is the one that the SDK would give; a test compares the two. The server then gets the same request,
so that its state is right, and its second response is dropped.

Anything unusual is left to the SDK. This module must not import it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from typing import Final, NamedTuple

from skillhall._version import VERSION

# As in the SDK, which tests compare. Later protocols have no `initialize`.
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SERVER_NAME: Final = "skillhall"
INSTRUCTIONS: Final = (
    "This server has skills: instructions for particular kinds of tasks. Before a task, check "
    "whether a skill's description matches it (list_skills, search_skills or skills/list). If so, "
    "load the skill (load_skill) and follow it. Read its other files with read_skill_file."
)
_CAPABILITIES: Final = {
    "completions": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
_MAX_LINE = 8192  # bytes; a longer first line is left to the SDK
_PATIENCE = 2.0  # seconds; a client that waits longer gets the SDK's answer
_CLIENT_CAPABILITIES = {"roots", "sampling", "elicitation", "experimental"}


class FirstLine(NamedTuple):
    """The data read from stdin, and the id of its request if that was answered."""

    data: bytes
    answered_id: str | int | None = None


def _exit_when_stdout_closes() -> None:
    """Exit as soon as the client closes our stdout, even if it keeps our stdin open."""
    if sys.platform == "win32":  # no poll; the next failed write ends the process
        return
    poll = select.poll()
    poll.register(os.dup(sys.stdout.fileno()), 0)  # 0: report only that it is closed

    def exit_on_close() -> None:
        poll.poll()
        os._exit(0)

    threading.Thread(target=exit_on_close, daemon=True).start()


def answer_initialize() -> FirstLine:
    """Read the first line of stdin, and answer it if it is a plain `initialize`."""
    # Later, a thread blocks in a read of stdin that Python's own SIGINT handler cannot interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _exit_when_stdout_closes()
    data = _read_line(0)
    request_id, version = _parse_initialize(data)
    if request_id is None:
        return FirstLine(data)
    response = build_response(request_id, version).encode()
    rest = memoryview(response + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]
    return FirstLine(data, request_id)


def build_response(request_id: str | int, version: str) -> str:
    """Return the response to an `initialize` request that proposes this version."""
    negotiated = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    result = {
        "capabilities": _CAPABILITIES,
        "instructions": INSTRUCTIONS,
        "protocolVersion": negotiated,
        "serverInfo": {"name": SERVER_NAME, "version": VERSION},
    }
    response = {"jsonrpc": "2.0", "id": request_id, "result": result}
    return json.dumps(response, ensure_ascii=False, separators=(",", ":"))


def _read_line(descriptor: int) -> bytes:
    """Read one line and not a byte more, since the SDK reads the rest.

    Returns an incomplete line if it is too long, or if the client stops sending.
    """
    if sys.platform == "win32":  # no poll on pipes
        return b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = bytearray()
    while len(data) < _MAX_LINE and not data.endswith(b"\n") and poll.poll(_PATIENCE * 1000):
        if not (byte := os.read(descriptor, 1)):
            break
        data += byte
    return bytes(data)


def complete_line(data: bytes) -> bytes:
    """Return the line that starts with `data`; read the rest of it from stdin."""
    parts = [data]
    while parts[-1] and not parts[-1].endswith(b"\n"):
        parts.append(os.read(0, 1))
    return b"".join(parts)


def _parse_initialize(data: bytes) -> tuple[str | int | None, str]:
    """Return the id and version of a plain `initialize` request, else `None` and ""."""
    try:
        message = json.loads(data) if data.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None, ""
    if not isinstance(message, dict) or message.keys() != {"jsonrpc", "id", "method", "params"}:
        return None, ""
    request_id, params = message["id"], message["params"]
    is_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    is_request = message["jsonrpc"] == "2.0" and message["method"] == "initialize"
    if not is_id or not is_request or not _is_plain_params(params):
        return None, ""
    return request_id, params["protocolVersion"]


def _is_plain_params(params: object) -> bool:
    """Whether the SDK is certain to accept these parameters."""
    names = {"protocolVersion", "capabilities", "clientInfo"}
    if not isinstance(params, dict) or params.keys() != names:
        return False
    client, capabilities = params["clientInfo"], params["capabilities"]
    return (
        isinstance(params["protocolVersion"], str)
        and isinstance(client, dict)
        and {"name", "version"} <= client.keys() <= {"name", "version", "title"}
        and all(isinstance(value, str) for value in client.values())
        and isinstance(capabilities, dict)
        and capabilities.keys() <= _CLIENT_CAPABILITIES
        and all(_is_plain_capability(name, value) for name, value in capabilities.items())
    )


def _is_plain_capability(name: str, value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if name == "roots":
        is_plain = isinstance(value.get("listChanged", False), bool)
        return is_plain and value.keys() <= {"listChanged"}
    return all(item == {} for item in value.values())
