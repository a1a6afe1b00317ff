"""Completion of templates and prompts, and results of earlier protocols."""

from pathlib import Path

import pytest
from mcp import Client
from mcp_types import PromptReference, ResourceTemplateReference

from skillhall._internal.mcp.server import SkillServer
from skillhall._internal.prompt_server.prompt_model import PromptArgument
from tests.support.mcp_clients import (
    ERAS,
    HANDSHAKE,
    make_folder_server,
    read_error,
    run_client,
    send_request,
)
from tests.support.prompt_services import MemoryPromptService, make_prompt
from tests.support.skills import make_skill

INVALID_PARAMS = -32602
FILE = ResourceTemplateReference(type="ref/resource", uri="skill://{+skill_path}/{+file}")

eras = pytest.mark.parametrize("era", ERAS)


@eras
def test_skill_paths_and_files_are_completed(tmp_path: Path, era: str) -> None:
    for name in ("pdf-tools", "other-pdf", "notes"):
        make_skill(tmp_path, name, files={"a b.md": b"x", "scripts/b.py": b"x"})

    async def complete(client: Client) -> None:
        paths = await client.complete(FILE, {"name": "skill_path", "value": "PDF"})
        assert paths.completion.values == ["pdf-tools", "other-pdf"]
        assert (paths.completion.total, paths.completion.has_more) == (2, False)
        files = await client.complete(
            FILE, {"name": "file", "value": ""}, {"skill_path": "pdf-tools"}
        )
        assert files.completion.values == ["SKILL.md", "a%20b.md", "scripts/b.py"]
        for value in files.completion.values:
            assert (await client.read_resource(f"skill://pdf-tools/{value}")).contents
        unknown = await client.complete(FILE, {"name": "file", "value": ""}, {"skill_path": "x"})
        assert unknown.completion.values == []

    run_client(make_folder_server(tmp_path), complete, era)


def test_hundred_values_are_completed_and_the_rest_is_counted(tmp_path: Path) -> None:
    for number in range(101):
        make_skill(tmp_path, f"s{number:03}")

    async def complete(client: Client) -> None:
        found = (await client.complete(FILE, {"name": "skill_path", "value": ""})).completion
        assert (len(found.values), found.total, found.has_more) == (100, 101, True)

    run_client(make_folder_server(tmp_path), complete)


@eras
def test_free_text_of_prompts_has_no_completions(tmp_path: Path, era: str) -> None:
    prompts = MemoryPromptService([make_prompt("greet", arguments=[PromptArgument("who")])])
    server = SkillServer(make_folder_server(tmp_path).index, prompts, ttl_factor=0)
    greet = PromptReference(type="ref/prompt", name="greet")

    async def complete(client: Client) -> None:
        found = await client.complete(greet, {"name": "who", "value": "a"})
        assert found.completion.values == []
        wrong = client.complete(greet, {"name": "other", "value": "a"})
        assert await read_error(wrong) == (INVALID_PARAMS, "invalid_argument")
        unknown = PromptReference(type="ref/prompt", name="unknown")
        call = client.complete(unknown, {"name": "who", "value": "a"})
        assert await read_error(call) == (INVALID_PARAMS, "prompt_not_found")
        template = ResourceTemplateReference(type="ref/resource", uri="file:///{path}")
        call = client.complete(template, {"name": "path", "value": ""})
        assert await read_error(call) == (INVALID_PARAMS, "not_found")

    run_client(server, complete, era)


def test_result_of_subscribe_is_empty_for_strict_clients(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")

    async def subscribe(client: Client) -> None:
        uri = "skill://pdf/SKILL.md"
        for method in ("resources/subscribe", "resources/unsubscribe"):
            assert await send_request(client, method, uri=uri) == {"_meta": None}

    run_client(make_folder_server(tmp_path), subscribe, HANDSHAKE)


def test_file_of_a_skill_named_like_the_manifest_is_served_as_it_is(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf", files={"_manifest": b"own"})

    async def read(client: Client) -> None:
        [content] = (await client.read_resource("skill://pdf/_manifest")).contents
        assert content.model_dump()["text"] == "own"

    run_client(make_folder_server(tmp_path), read)
