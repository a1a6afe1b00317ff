"""Prompts, resources and tools, for both protocol versions."""

import base64
import json
from pathlib import Path

import pytest
from mcp import Client
from mcp_types import BlobResourceContents, TextContent, TextResourceContents

from skillhall._internal.mcp.server import SkillServer
from skillhall._internal.prompt_server.prompt_model import PromptArgument
from tests.support.mcp_clients import (
    ERAS,
    MODERN,
    VERSIONS,
    list_all,
    make_folder_server,
    read_error,
    run_client,
    send_request,
)
from tests.support.prompt_services import MemoryPromptService, make_prompt
from tests.support.skills import make_skill, make_skill_md

INVALID_PARAMS, METHOD_NOT_FOUND = -32602, -32601
UNKNOWN = INVALID_PARAMS, "not_found"

eras = pytest.mark.parametrize("era", ERAS)


def server_with(root: Path, prompt_service: MemoryPromptService) -> SkillServer:
    """A server with the prompts of a service and the skills of a folder."""
    return SkillServer(make_folder_server(root).index, prompt_service, ttl_factor=0)


@pytest.fixture
def prompt_service() -> MemoryPromptService:
    arguments = [PromptArgument("who", "Whom to greet", required=True), PromptArgument("how")]
    with_files = make_prompt("with-files", files={"a.txt": b"x"})
    return MemoryPromptService([make_prompt("greet", arguments=arguments), with_files])


@eras
def test_client_uses_its_protocol_version(tmp_path: Path, era: str) -> None:
    async def version(client: Client) -> str:
        return client.protocol_version

    assert run_client(make_folder_server(tmp_path), version, era) == VERSIONS[era]


@eras
def test_prompts_without_files_are_listed_with_their_arguments(
    tmp_path: Path, prompt_service: MemoryPromptService, era: str
) -> None:
    [prompt] = run_client(server_with(tmp_path, prompt_service), list_prompts, era)
    assert (prompt["name"], prompt["description"]) == ("greet", "Does greet.")
    assert prompt["arguments"] == [
        {"name": "who", "description": "Whom to greet", "required": True},
        {"name": "how", "description": "", "required": False},
    ]


async def list_prompts(client: Client) -> list[dict[str, object]]:
    result = await client.list_prompts()
    return [prompt.model_dump(exclude_none=True) for prompt in result.prompts]


@eras
def test_prompt_arguments_are_filled_in(
    tmp_path: Path, prompt_service: MemoryPromptService, era: str
) -> None:
    async def greeting(client: Client) -> str:
        result = await client.get_prompt("greet", {"who": "{{how}} $& \\1"})
        assert result.description == "Does greet."
        [message] = result.messages
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        return message.content.text

    assert (
        run_client(server_with(tmp_path, prompt_service), greeting, era) == "Hello {{how}} $& \\1."
    )


@eras
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("with-files", "prompt_not_found"),
        ("nothing", "prompt_not_found"),
        ("greet", "invalid_argument"),
    ],
)
def test_unavailable_prompt_is_rejected(
    tmp_path: Path, prompt_service: MemoryPromptService, era: str, name: str, code: str
) -> None:
    error = run_client(
        server_with(tmp_path, prompt_service),
        lambda client: read_error(client.get_prompt(name, {"who": ""})),
        era,
    )
    assert error == (INVALID_PARAMS, code)


def test_skills_without_files_are_prompts(tmp_path: Path) -> None:
    arguments = "\n  - name: who\n    required: true"
    plain = make_skill_md("plain", body="Hello {{who}}.\n", arguments=arguments)
    make_skill(tmp_path, "plain", data=plain)
    make_skill(tmp_path, "files", files={"a.txt": b""})
    make_skill(tmp_path, "linked")
    (tmp_path / "linked" / "a").symlink_to("/etc/hostname")
    make_skill(tmp_path, "quiet", data=make_skill_md("quiet", disable_model_invocation="true"))

    async def everything(client: Client) -> object:
        listed = [prompt.name for prompt in (await client.list_prompts()).prompts]
        got = await client.get_prompt("plain", {"who": "you"})
        assert isinstance(got.messages[0].content, TextContent)
        refused = [await read_error(client.get_prompt(name)) for name in ("files", "linked")]
        return listed, got.messages[0].content.text, refused

    unknown = INVALID_PARAMS, "prompt_not_found"
    expected = ["plain", "quiet"], "Hello you.", [unknown, unknown]
    assert run_client(make_folder_server(tmp_path), everything) == expected


@eras
def test_every_file_is_a_resource(tmp_path: Path, era: str) -> None:
    make_skill(tmp_path, "pdf", files={"docs/a.md": b"x", "LICENSE": b"", "x.ts": b""})
    rows = run_client(
        make_folder_server(tmp_path),
        lambda client: list_all(client, "resources/list", "resources"),
        era,
    )
    resources = {row["uri"]: (row["name"], row.get("mimeType"), row["size"]) for row in rows}
    own = len(make_skill_md("pdf"))
    assert resources == {
        "skill://pdf/SKILL.md": ("pdf", "text/markdown", own),
        "skill://pdf/LICENSE": ("LICENSE", None, 0),
        "skill://pdf/docs/a.md": ("a.md", "text/markdown", 1),
        "skill://pdf/x.ts": ("x.ts", "text/x-typescript", 0),
    }
    assert rows[0]["description"] == "Reads PDF files."
    assert rows[0]["annotations"]["priority"] == 0.8


@eras
def test_resource_template_describes_uris(tmp_path: Path, era: str) -> None:
    async def templates(client: Client) -> list[str]:
        result = await client.list_resource_templates()
        return [template.uri_template for template in result.resource_templates]

    assert run_client(make_folder_server(tmp_path), templates, era) == [
        "skill://{+skill_path}/{+file}"
    ]


@eras
def test_text_and_binary_resources_are_unchanged(tmp_path: Path, era: str) -> None:
    text, blob = "\ufeffa\r\né\n".encode(), b"\x89PNG\xff"
    make_skill(tmp_path, "pdf", files={"a.txt": text, "logo.png": blob, "zero": b"\0"})

    async def read(client: Client) -> list[tuple[str | None, bytes]]:
        result = []
        for path in ("a.txt", "logo.png", "zero"):
            [content] = (await client.read_resource(f"skill://pdf/{path}")).contents
            if isinstance(content, TextResourceContents):
                result.append((content.mime_type, content.text.encode()))
            else:
                assert isinstance(content, BlobResourceContents)
                result.append((content.mime_type, base64.b64decode(content.blob)))
        return result

    assert run_client(make_folder_server(tmp_path), read, era) == [
        ("text/plain", text),
        ("image/png", blob),
        ("application/octet-stream", b"\0"),
    ]


@eras
@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("skill://pdf", "not_a_file"),
        ("skill://pdf/docs", "not_found"),
        ("skill://pdf/nothing", "not_found"),
        ("skill://nothing/SKILL.md", "not_found"),
        ("skill://pdf/../secret", "invalid_path"),
        ("skill://pdf/%2e%2e/secret", "invalid_path"),
        ("skill://pdf/docs%2Fa.md", "not_found"),
        ("skill://pdf/%00", "invalid_path"),
        ("skill://pdf//etc/passwd", "not_found"),
        ("skill://pdf/link", "not_found"),
        ("file:///etc/passwd", "not_found"),
    ],
)
def test_unknown_resource_is_rejected(tmp_path: Path, era: str, uri: str, code: str) -> None:
    make_skill(tmp_path / "skills", "pdf", files={"docs/a.md": b""})
    (tmp_path / "skills" / "secret").write_bytes(b"secret")
    (tmp_path / "skills" / "pdf" / "link").symlink_to(tmp_path / "skills" / "secret")
    error = run_client(
        make_folder_server(tmp_path / "skills"),
        lambda client: read_error(client.read_resource(uri)),
        era,
    )
    assert error == (INVALID_PARAMS, code)


@eras
def test_tools_are_marked_read_only(tmp_path: Path, era: str) -> None:
    make_skill(tmp_path, "pdf")

    async def tools(client: Client) -> dict[str, object]:
        result = (await client.list_tools()).tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in result)
        return {tool.name: tool.input_schema["required"] for tool in result}

    assert run_client(make_folder_server(tmp_path), tools, era) == {
        "list_skills": [],
        "search_skills": ["query"],
        "load_skill": ["name"],
        "read_skill_file": ["name", "path"],
    }


@eras
def test_no_tools_without_skills(tmp_path: Path, era: str) -> None:
    async def tools(client: Client) -> object:
        refused = await read_error(client.call_tool("load_skill", {"name": "x"}))
        return (await client.list_tools()).tools, refused

    assert run_client(make_folder_server(tmp_path), tools, era) == ([], UNKNOWN)


@eras
def test_tool_calls_return_results(tmp_path: Path, era: str) -> None:
    make_skill(tmp_path, "pdf", files={"a.md": b"A."})

    async def answers(client: Client) -> list[str]:
        calls = [
            client.call_tool("list_skills"),
            client.call_tool("search_skills", {"query": "pdf"}),
            client.call_tool("load_skill", {"name": "pdf"}),
            client.call_tool("load_skill", {"name": "pdf"}),
            client.call_tool("read_skill_file", {"name": "pdf", "path": "a.md"}),
        ]
        texts = []
        for call in calls:
            result = await call
            assert not result.is_error
            [content] = result.content
            assert isinstance(content, TextContent)
            texts.append(content.text)
        return texts

    listed, searched, first, second, file = run_client(make_folder_server(tmp_path), answers, era)
    row = {"name": "pdf", "description": "Reads PDF files."}
    assert json.loads(listed) == {"skills": [row], "total": 1}
    row["why"] = "name: pdf; description: PDF"
    assert json.loads(searched) == {"skills": [row], "total": 1}
    assert first == second
    assert "# Steps" in first
    assert file == "A."


@eras
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("load_skill", {"name": "pfd"}, "not_found"),
        ("load_skill", {}, "invalid_argument"),
        ("load_skill", {"name": 5}, "invalid_argument"),
        ("load_skill", {"name": "pdf", "more": 1}, "invalid_argument"),
        ("load_skill", {"name": "x" * 100_000}, "not_found"),
        ("read_skill_file", {"name": "pdf", "path": "../x"}, "invalid_path"),
    ],
)
def test_tool_error_has_a_code(
    tmp_path: Path, era: str, tool: str, arguments: dict[str, object], code: str
) -> None:
    make_skill(tmp_path, "pdf")

    async def failed(client: Client) -> str:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert isinstance(result.structured_content, dict)
        return str(result.structured_content["error"]["code"])

    assert run_client(make_folder_server(tmp_path), failed, era) == code


@eras
def test_bug_is_described_only_in_the_log(
    tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    prompt_service = MemoryPromptService(error=RuntimeError("a secret of the machine"))
    error = run_client(
        server_with(tmp_path, prompt_service), lambda client: read_error(client.list_prompts()), era
    )
    assert error == (-32603, "internal")
    assert "a secret of the machine" in caplog.text


@eras
def test_unknown_method_is_rejected(tmp_path: Path, era: str) -> None:
    error = run_client(
        make_folder_server(tmp_path),
        lambda client: read_error(send_request(client, "skills/dance")),
        era,
    )
    assert error[0] == METHOD_NOT_FOUND


def test_storage_error_does_not_leak_the_path(tmp_path: Path) -> None:
    fault = OSError(5, "Input/output error", str(tmp_path))
    error = run_client(
        server_with(tmp_path, MemoryPromptService(error=fault)),
        lambda client: read_error(client.list_prompts()),
        MODERN,
    )
    assert error == (-32603, "storage_unavailable")
