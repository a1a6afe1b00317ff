"""Another project's client, with its own idea of the extension, finds and reads our skills."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.skills import make_skill, make_skill_md
from tests.support.trees import write_skill

ROOT = Path(__file__).resolve().parents[2]
FASTMCP = ROOT / ".venv-fastmcp" / ("Scripts" if os.name == "nt" else "bin") / "python"
DEADLINE = 120  # seconds; its first import alone may take some

# Run by the other environment, with our command as its words.
PROBE = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension

async def main():
    transport = StdioTransport(sys.argv[1], sys.argv[2:])
    async with Client(transport, extensions=[SkillsClientExtension()]) as client:
        told = {"version": client.protocol_version}
        skills = await client.list_skills()
        told["listed"] = [skill.model_dump(mode="json") for skill in skills]
        first = await client.get_skill("skill://s0000/SKILL.md")
        told["got"] = first.model_dump(mode="json")
        odd = await client.read_resource("skill://~odd/Odd%20Name/SKILL.md")
        told["odd"] = odd[0].text
        files = [one.uri for one in next(s for s in skills if s.uri.startswith("skill://files/")).resources]
        told["files"] = {}
        for uri in files:
            [content] = await client.read_resource(uri)
            told["files"][uri] = content.model_dump(mode="json")
        told["tools"] = [tool.name for tool in await client.list_tools()]
        loaded = await client.call_tool("load_skill", {"name": "files"})
        told["loaded"] = loaded.content[0].text
        told["prompts"] = len(await client.list_prompts())
    print(json.dumps(told))

asyncio.run(main())
"""


@pytest.fixture(scope="module", autouse=True)
def environment() -> None:
    """The client's own environment, made if it is not there yet."""
    subprocess.run([sys.executable, ROOT / "dev.py", "fastmcp"], check=True, timeout=DEADLINE)


def probed(root: Path) -> dict[str, Any]:
    words = [str(FASTMCP), "-c", PROBE, sys.executable, "-m", "skillhall", "mcp", str(root)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=DEADLINE, cwd=root
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_it_lists_gets_and_reads_our_skills(tmp_path: Path) -> None:
    names = [f"s{number:04}" for number in range(250)]
    for name in names:
        write_skill(tmp_path / name)
    data = make_skill_md("files", license="MIT", metadata="{version: 1.0}", version="2")
    make_skill(tmp_path, "files", data=data, files={"docs/a b.md": b"A.", "logo.png": b"\xff"})
    make_skill(tmp_path, "odd", data=make_skill_md("Odd Name"))
    make_skill(tmp_path, "list", data=make_skill_md("list", allowed_tools="[Read]"))

    told = probed(tmp_path)

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
    assert told["prompts"] == 252
