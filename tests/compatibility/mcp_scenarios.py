"""Recorded messages of the MCP server, for both protocol versions."""

from dataclasses import dataclass, field
from typing import Any

from tests.compatibility.normalize import Normalizer
from tests.compatibility.program import StdioClient

MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "recorder", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {
    "protocolVersion": HANDSHAKE,
    "capabilities": {},
    "clientInfo": {"name": "recorder", "version": "1"},
}
_PDF, _ODD = "skill://pdf-tools", "skill://~odd-name/Odd%20Name"
_DESCRIPTIONS = frozenset({"description", "title"})
_INSTRUCTIONS = frozenset({"instructions"})


@dataclass(frozen=True)
class Message:
    """A request; `prose` are the keys of its result that may be reworded."""

    name: str
    method: str
    params: dict[str, Any] = field(default_factory=dict)
    prose: frozenset[str] = frozenset()


def _call(tool: str, **arguments: object) -> Message:
    shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return Message(f"{tool}({shown})", "tools/call", {"name": tool, "arguments": arguments})


_BOTH = (
    Message("tools", "tools/list", prose=_DESCRIPTIONS),
    _call("list_skills"),
    _call("search_skills", query="pdf"),
    _call("search_skills", query="zzzz"),
    _call("search_skills"),
    _call("load_skill", name="pdf-tools"),
    _call("load_skill", name="Odd Name"),
    _call("load_skill", name="secret-keeper"),
    _call("load_skill", name="nothing"),
    _call("read_skill_file", name="pdf-tools", path="references/forms.md"),
    _call("read_skill_file", name="pdf-tools", path="../csv-report/SKILL.md"),
    _call("read_skill_file", name="pdf-tools", path="nothing.md"),
    _call("no_such_tool"),
    Message("resources", "resources/list"),
    Message("resource templates", "resources/templates/list", prose=_DESCRIPTIONS),
    Message("resource", "resources/read", {"uri": f"{_PDF}/SKILL.md"}),
    Message("resource, file", "resources/read", {"uri": f"{_PDF}/references/forms.md"}),
    Message("resource, odd name", "resources/read", {"uri": f"{_ODD}/SKILL.md"}),
    Message("resource, unknown", "resources/read", {"uri": "skill://nothing/SKILL.md"}),
    Message("resource, leaves", "resources/read", {"uri": f"{_PDF}/../csv-report/SKILL.md"}),
    Message("resource, other scheme", "resources/read", {"uri": "file:///etc/passwd"}),
    Message("prompts", "prompts/list"),
    Message("prompt", "prompts/get", {"name": "csv-report"}),
    Message("prompt, hidden from models", "prompts/get", {"name": "secret-keeper"}),
    Message("prompt, with argument", "prompts/get", {"name": "greet", "arguments": {"who": "A"}}),
    Message("prompt, argument missing", "prompts/get", {"name": "greet"}),
    Message("prompt, unknown", "prompts/get", {"name": "nothing"}),
    Message("list, wrong cursor", "resources/list", {"cursor": "nonsense"}),
    Message("unknown method", "no/such/method"),
)
_EXTENSION = (
    Message("skills", "skills/list"),
    Message("skill", "skills/get", {"uri": f"{_PDF}/SKILL.md"}),
    Message("skill, unknown", "skills/get", {"uri": "skill://nothing/SKILL.md"}),
    Message("skill, no URI", "skills/get"),
    Message("directory", "resources/directory/read", {"uri": _PDF}),
    Message("directory, inner", "resources/directory/read", {"uri": f"{_PDF}/references"}),
    Message("directory, unknown", "resources/directory/read", {"uri": "skill://nothing"}),
)
SCENARIOS = {
    MODERN: (
        Message("discover", "server/discover", prose=_INSTRUCTIONS),
        *_BOTH,
        *_EXTENSION,
    ),
    HANDSHAKE: (
        Message("initialize", "initialize", INITIALIZE, prose=_INSTRUCTIONS),
        *_BOTH,
        *_EXTENSION[:1],
    ),
}


def run(client: StdioClient, normalizer: Normalizer, era: str) -> list[dict[str, Any]]:
    """Return the messages of a protocol version with their results or errors."""
    steps = []
    for message in SCENARIOS[era]:
        params = {**message.params, "_meta": META} if era == MODERN else message.params
        response = client.request(message.method, params)
        if message.method == "initialize":
            client.notify("notifications/initialized")
        result = {key: value for key, value in response.items() if key in {"result", "error"}}
        steps.append(
            {
                "name": message.name,
                "request": {"method": message.method, "params": message.params},
                "response": normalizer.value(result, message.prose),
            }
        )
    return steps
