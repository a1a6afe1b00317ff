"""Another project's client, with its own idea of the extension, finds and reads our skills."""

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
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from tests.support.skills import make_skill, make_skill_md
from tests.support.trees import write_skill

DEADLINE = 120  # seconds
REPAIRED = b"---\nname: repaired\ndescription: Use when: a PDF is involved.\n---\nDo it.\n"


async def verified(client: Client[Any], skill: Skill) -> bool:
    """Whether the SKILL.md has the announced bytes, and says what the entry says."""
    [content] = await client.read_resource(skill.uri)
    assert isinstance(content, TextResourceContents)
    own = skill.resources[0]
    assert isinstance(own, SkillResource)
    data = content.text.encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return own.digest == digest and parse_frontmatter(data) == skill.frontmatter


async def refused(client: Client[Any], uri: str) -> Any:  # noqa: ANN401 - of an error
    """The data of the error that asking for a skill ends in."""
    with pytest.raises(MCPError) as caught:
        await client.get_skill(uri)
    return caught.value.error.data


async def probe(root: Path) -> dict[str, Any]:
    """What the client finds by each of its calls."""
    words = ["-m", "skillhall", "mcp", str(root)]
    transport = StdioTransport(sys.executable, words, cwd=str(root))
    async with Client(transport, extensions=[SkillsClientExtension()]) as client:
        skills = await client.list_skills()
        files = next(one for one in skills if one.uri.startswith("skill://files/"))
        read = {one.uri: await client.read_resource(one.uri) for one in files.resources}
        loaded = await client.call_tool("load_skill", {"name": "files"})
        return {
            "version": client.protocol_version,
            "listed": [skill.model_dump(mode="json") for skill in skills],
            "got": (await client.get_skill("skill://s0000/SKILL.md")).model_dump(mode="json"),
            "odd": (await client.read_resource("skill://~odd/Odd%20Name/SKILL.md"))[0].text,
            "files": {uri: one.model_dump(mode="json") for uri, [one] in read.items()},
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

    told = asyncio.run(asyncio.wait_for(probe(tmp_path), DEADLINE))

    assert told["version"] == "2026-07-28"
    assert [skill["frontmatter"]["name"] for skill in told["listed"]] == ["files", *names]
    assert told["got"] == told["listed"][1]
    assert told["odd"] == make_skill_md("Odd Name").decode()
    assert [*told["files"]] == [
        "skill://files/SKILL.md",
        "skill://files/docs/a%20b.md",
        "skill://files/logo.png",
    ]
    text = told["files"]["skill://files/SKILL.md"]["text"].encode()
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    assert told["listed"][0]["resources"][0]["digest"] == digest
    assert told["tools"] == ["list_skills", "search_skills", "load_skill", "read_skill_file"]
    assert "<skill_content" in told["loaded"]
    assert told["prompts"] == 253
    assert told["read"] == [True] * 3
    assert told["repaired"] == REPAIRED.decode()
    assert told["unknown"] == {"code": "not_found", "uri": "skill://unknown/SKILL.md"}
    assert told["unverifiable"] == {"code": "invalid_skill", "uri": "skill://repaired/SKILL.md"}
