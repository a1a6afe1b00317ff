"""FastMCP's client, with its own implementation of the extension, reads our skills."""

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension
from fastmcp.skills._snapshot import parse_frontmatter
from fastmcp.skills.models import Skill, SkillResource
from fastmcp.utilities.skills import download_skill
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from tests.support.skills import make_skill, make_skill_md
from tests.support.trees import write_skill

DEADLINE = 120  # seconds
REPAIRED = b"---\nname: repaired\ndescription: Use when: a PDF is involved.\n---\nDo it.\n"


async def verified(client: Client[Any], skill: Skill) -> bool:
    """Whether the SKILL.md has the listed digest and frontmatter."""
    [content] = await client.read_resource(skill.uri)
    assert isinstance(content, TextResourceContents)
    own = skill.resources[0]
    assert isinstance(own, SkillResource)
    data = content.text.encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return own.digest == digest and parse_frontmatter(data) == skill.frontmatter


async def refused(client: Client[Any], uri: str) -> Any:  # noqa: ANN401 - of an error
    """Return the error data of a failed `skills/get`."""
    with pytest.raises(MCPError) as caught:
        await client.get_skill(uri)
    return caught.value.error.data


async def probe(root: Path) -> dict[str, Any]:
    """Return the result of each call of the client."""
    arguments = ["-m", "skillhall", "mcp", str(root)]
    transport = StdioTransport(sys.executable, arguments, cwd=str(root))
    async with Client(transport, extensions=[SkillsClientExtension()]) as client:
        skills = await client.list_skills()
        files = next(skill for skill in skills if skill.uri.startswith("skill://files/"))
        read = {file.uri: await client.read_resource(file.uri) for file in files.resources}
        loaded = await client.call_tool("load_skill", {"name": "files"})
        return {
            "version": client.protocol_version,
            "listed": [skill.model_dump(mode="json") for skill in skills],
            "got": (await client.get_skill("skill://s0000/SKILL.md")).model_dump(mode="json"),
            "odd": (await client.read_resource("skill://~odd/Odd%20Name/SKILL.md"))[0].text,
            "files": {uri: content.model_dump(mode="json") for uri, [content] in read.items()},
            "tools": [tool.name for tool in await client.list_tools()],
            "loaded": loaded.content[0].text,
            "prompts": len(await client.list_prompts()),
            "read": [await verified(client, skill) for skill in skills[1:4]],
            "repaired": (await client.read_resource("skill://repaired/SKILL.md"))[0].text,
            "unknown": await refused(client, "skill://unknown/SKILL.md"),
            "unverifiable": await refused(client, "skill://repaired/SKILL.md"),
        }


def test_fastmcp_client_lists_and_reads_skills(tmp_path: Path) -> None:
    names = [f"s{number:04}" for number in range(250)]
    for name in names:
        write_skill(tmp_path / name)
    data = make_skill_md("files", license="MIT", metadata="{version: 1.0}", version="2")
    make_skill(tmp_path, "files", data=data, files={"docs/a b.md": b"A.", "logo.png": b"\xff"})
    make_skill(tmp_path, "repaired", data=REPAIRED)
    make_skill(tmp_path, "odd", data=make_skill_md("Odd Name"))
    make_skill(tmp_path, "list", data=make_skill_md("list", allowed_tools="[Read]"))

    result = asyncio.run(asyncio.wait_for(probe(tmp_path), DEADLINE))

    assert result["version"] == "2026-07-28"
    assert [skill["frontmatter"]["name"] for skill in result["listed"]] == ["files", *names]
    assert result["got"]["meta"].pop("skillhall/trust")
    assert result["got"] == result["listed"][1]
    assert result["odd"] == make_skill_md("Odd Name").decode()
    assert [*result["files"]] == [
        "skill://files/SKILL.md",
        "skill://files/docs/a%20b.md",
        "skill://files/logo.png",
    ]
    text = result["files"]["skill://files/SKILL.md"]["text"].encode()
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    assert result["listed"][0]["resources"][0]["digest"] == digest
    assert result["tools"] == ["list_skills", "search_skills", "load_skill", "read_skill_file"]
    assert "<skill_content" in result["loaded"]
    assert result["prompts"] == 253
    assert result["read"] == [True] * 3
    assert result["repaired"] == REPAIRED.decode()
    assert result["unknown"] == {"code": "not_found", "uri": "skill://unknown/SKILL.md"}
    assert result["unverifiable"] == {"code": "invalid_skill", "uri": "skill://repaired/SKILL.md"}


def test_fastmcp_downloads_a_skill_by_its_manifest(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf", files={"scripts/a.bin": b"\0\xff"})

    async def download() -> Path:
        arguments = ["-m", "skillhall", "mcp", str(tmp_path / "skills")]
        async with Client(StdioTransport(sys.executable, arguments)) as client:
            return await download_skill(client, "pdf", tmp_path / "copy")

    copy = asyncio.run(asyncio.wait_for(download(), DEADLINE))
    for path in ("SKILL.md", "scripts/a.bin"):
        assert (copy / path).read_bytes() == (tmp_path / "skills/pdf" / path).read_bytes()
