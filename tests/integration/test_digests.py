"""One digest of a skill on every surface; files that it does not cover are never read."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest
from mcp import Client

from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.agent_tools import AgentTools
from skillhall._internal.asgi import Services
from skillhall._internal.cli.runner import run
from skillhall._internal.installer.lock import read_lock
from skillhall._internal.installer.locked_install import install_locked
from skillhall._internal.installer.update import find_outdated, update
from skillhall._internal.installer.verify import verify
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from tests.support.mcp_clients import (
    list_all,
    make_folder_server,
    read_error,
    run_client,
    send_request,
)
from tests.support.projects import (
    ProjectFixture,
    make_project,
    make_project_settings,
    read_tree,
)
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import RunningServer, make_settings, run_server
from tests.support.skills import make_skill

PDF = ".agents/skills/pdf"
HIDDEN = {".config/rules.md": b"rules", "scripts/.env.example": b"A=1"}
INVALID_PARAMS = -32602
UNCOVERED = (".git/config", "scripts/.git/x", "__MACOSX/x", "linked.md")


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """A project with an installed skill, which then gets files that no digest covers."""
    project = Path(make_project_settings(tmp_path).working_directory)
    monkeypatch.chdir(project)
    source = make_skill(tmp_path / "source", "pdf", files={"scripts/run.py": b"1", **HIDDEN})
    (source / ".git").mkdir()
    assert run(["add", str(source), "--yes", "--json"]) == 0
    added = json.loads(capsys.readouterr().out)["data"]["added"][0]
    assert read_lock(str(project)).entries[PDF].digest == added["digest"]
    skill = project / PDF
    assert not (skill / ".git").exists()
    for path in UNCOVERED[:3]:
        (skill / path).parent.mkdir(parents=True)
        (skill / path).write_bytes(b"secret")
    (skill / "linked.md").symlink_to("SKILL.md")
    return project


@pytest.fixture
def server(project: Path) -> Iterator[RunningServer]:
    settings = make_settings()._replace(working_directory=str(project))
    services = Services(MemoryPromptService(), Collection(FolderStore(project), settings))
    with run_server(settings=settings, services=services) as running:
        yield running


def test_every_surface_gives_the_same_digest(project: Path, server: RunningServer) -> None:
    locked = read_lock(str(project)).entries[PDF]
    assert {file.path for file in locked.files} >= set(HIDDEN)
    assert read_tree(project / PDF).keys() >= set(HIDDEN)
    details = server.request("GET", "/api/v1/skills/pdf").json["data"]
    mcp = make_folder_server(project / ".agents/skills")
    [entry] = run_client(mcp, lambda client: list_all(client, "skills/list", "skills"))
    assert details["digest"] == entry["_meta"]["skillhall/digest"] == locked.digest
    # Hidden files are covered by the digest but not published.
    assert [file["path"] for file in details["files"]] == ["SKILL.md", "scripts/run.py"]


@pytest.mark.parametrize("path", UNCOVERED)
def test_file_that_no_digest_covers_is_never_read(
    project: Path, server: RunningServer, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    assert run(["read", "pdf", path]) in {3, 4}
    assert server.request("GET", f"/api/v1/skills/pdf/files/{path}").status in {400, 403, 404}
    assert server.request("GET", f"/skill/pdf/files/{path}").status in {400, 403, 404}
    tools = AgentTools(AgentSkills.of(project / ".agents/skills"))
    result = tools.call("read_skill_file", {"name": "pdf", "path": path})
    assert result.is_error
    mcp = make_folder_server(project / ".agents/skills")

    async def read(client: Client) -> tuple[int, str]:
        uri = f"skill://pdf/{path}"
        return await read_error(send_request(client, "resources/read", uri=uri))

    assert run_client(mcp, read)[0] == INVALID_PARAMS
    assert "secret" not in capsys.readouterr().out


def test_command_reads_hidden_files_that_the_digest_covers(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.is_dir()
    assert run(["read", "pdf", ".config/rules.md"]) == 0
    assert capsys.readouterr().out == "rules"


@pytest.fixture
def earlier(tmp_path: Path) -> ProjectFixture:
    """A project whose lock file has no hidden files, although its source has some."""
    bench = make_project(tmp_path)
    bench.skill("pdf")
    bench.add()
    bench.write("pdf/.config/rules.md", "rules")
    return bench


def test_lock_without_hidden_files_stays_valid(earlier: ProjectFixture) -> None:
    project, folder = earlier.installer_project, earlier.project / PDF
    assert [result.is_intact for result in verify(project)] == [True]
    assert [str(result.status) for result in find_outdated(project)] == ["current"]
    rmtree(folder)
    assert [str(result.status) for result in install_locked(project, frozen=True)] == ["installed"]
    assert [*read_tree(folder)] == ["SKILL.md"]


def test_next_change_installs_the_hidden_files(earlier: ProjectFixture) -> None:
    earlier.skill("pdf", "Changed.\n")
    assert [str(result.status) for result in update(earlier.installer_project)] == ["updated"]
    assert [*read_tree(earlier.project / PDF)] == [".config/rules.md", "SKILL.md"]
