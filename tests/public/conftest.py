"""A project folder with skills and a GitHub server, for programs that a reader would write."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.github_api_server import Repository, run_github_api_server
from tests.support.mcp_servers import LABEL, make_script, write_script
from tests.support.skills import make_skill, make_skill_md

HIDDEN = make_skill_md("deploy", "Deploys.", "# Ship it\n", disable_model_invocation="true")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with a folder `skills`; one of the skills is hidden from models."""
    make_skill(
        tmp_path / "skills",
        "pdf-tools",
        data=make_skill_md("pdf-tools", "Fills in PDF forms."),
        files={"references/forms.md": b"Forms.\n"},
    )
    make_skill(tmp_path / "skills", "csv-report")
    make_skill(tmp_path / "skills", "deploy", data=HIDDEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def github(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """The repository acme/skills on a loopback GitHub."""
    with run_github_api_server() as server:
        repository = server.repositories["acme/skills"] = Repository()
        files = {
            f"skills/{name}/SKILL.md": make_skill_md(name) for name in ("pdf", "lint", "pdf-tools")
        }
        for ref in ("main", "v2"):
            repository.commit(files, ref)
        monkeypatch.setenv("SKILLHALL_GIT", "off")
        monkeypatch.setenv("SKILLHALL_ALLOW_NETWORKS", "127.0.0.0/8")
        monkeypatch.setenv("SKILLHALL_GITHUB_API_URL", server.api_url)
        yield repository


@pytest.fixture
def mcp_server(project: Path) -> None:
    """The configured MCP server `acme`, with the skill `pdf`."""
    command = write_script(make_script(), project / "script.json")
    servers = {"version": 1, "servers": {LABEL: {"command": command}}}
    (project / "data").mkdir()
    (project / "data" / "mcp-servers.json").write_text(json.dumps(servers), "utf-8")
