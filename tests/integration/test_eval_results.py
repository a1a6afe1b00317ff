"""Eval results of a skill on every surface, bound to the digest of its files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.cli.runner import run
from skillhall._internal.evals.eval_workspace import EvalWorkspace
from skillhall._internal.evals.reports.served_results import find_served_overview, may_show_results
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import REPOSITORY_SOURCE, Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.wiring.skill_gate import open_server_gate
from tests.support.eval_results import make_helpful_runs, store_runs
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import RunningServer, make_settings, run_server
from tests.support.skills import make_skill, make_skill_md

HTML = {"Accept": "text/html"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run directory of a server with one user skill."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SKILLHALL_TRUST_PROJECT", "on")
    make_skill(tmp_path / ".agents/skills", "csv")
    return tmp_path / ".agents/skills"


@pytest.fixture
def collection(folder: Path) -> Collection:
    settings = Settings.read()
    return Collection(FolderStore(Path.cwd()), settings, served=open_server_gate(settings))


@pytest.fixture
def server(collection: Collection) -> Iterator[RunningServer]:
    services = Services(MemoryPromptService(), collection)
    with run_server(settings=make_settings(), services=services) as running:
        yield running


def store(folder: Path, collection: Collection) -> None:
    workspace = EvalWorkspace(folder / "csv-workspace")
    store_runs(workspace, make_helpful_runs(), collection.details("csv").digest)


def show(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:  # noqa: ANN401 - JSON
    capsys.readouterr()
    assert run([*argv, "csv", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["data"]


def test_results_are_the_same_on_every_surface(
    folder: Path,
    collection: Collection,
    server: RunningServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert server.request("GET", "/api/v1/skills/csv/evals").json["data"] == {"result": None}
    store(folder, collection)

    result = server.request("GET", "/api/v1/skills/csv/evals").json["data"]["result"]
    assert (result["current"], result["verdicts"]) == (True, ["better"])
    assert result["rates"][0] == pytest.approx(
        {"name": "with_skill", "value": 1.0, "low": 0.6097, "high": 1.0}, abs=1e-4
    )
    assert result["models"][0]["runs"]["with_skill"] == {
        "tokens": 1000.0,
        "seconds": 1.5,
        "cost": pytest.approx(0.002),
    }
    assert show(capsys, "show")["skill"]["evals"] == result
    line = "pass rate with the skill 1.00 (0.61 to 1.00)"
    assert show(capsys, "trust", "show")["evals"].startswith(line)
    trust = server.request("GET", "/api/v1/skills/csv/trust").json["data"]
    assert trust["evals"].startswith(line)
    assert len(trust["lines"]) == 4

    page = server.request("GET", "/skill/csv", headers=HTML).body.decode()
    assert "Pass rate with the skill: 1.00 (0.61 to 1.00)" in page
    assert "<strong>+0.83 (+0.33 to +1.00)</strong>, better" in page
    assert '<td class="number" data-label="Cost per run">$0.0020</td>' in page
    headers = {**HTML, "Accept-Language": "zh"}
    assert "使用技能的通过率" in server.request("GET", "/skill/csv", headers=headers).body.decode()


def test_results_of_an_older_version_are_shown_as_such(
    folder: Path,
    collection: Collection,
    server: RunningServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store(folder, collection)
    (folder / "csv/SKILL.md").write_bytes(make_skill_md("csv", "Something else."))

    result = server.request("GET", "/api/v1/skills/csv/evals").json["data"]["result"]
    assert result["current"] is False
    assert "older version" in server.request("GET", "/skill/csv", headers=HTML).body.decode()
    assert run(["show", "csv"]) == 0
    assert "; older version sha256:" in capsys.readouterr().out


def test_skill_without_results_has_no_card(server: RunningServer) -> None:
    assert 'id="evals"' not in server.request("GET", "/skill/csv", headers=HTML).body.decode()
    assert server.request("GET", "/api/v1/skills/unknown/evals").status == 404


def test_folder_of_results_replaces_the_one_next_to_the_skill(
    folder: Path, collection: Collection, tmp_path: Path
) -> None:
    store(folder, collection)
    collection.settings = collection.settings._replace(eval_results=str(tmp_path / "results"))
    assert find_served_overview(collection, "csv") is None
    workspace = EvalWorkspace(tmp_path / "results/csv-workspace")
    store_runs(workspace, make_helpful_runs(), collection.details("csv").digest)
    assert find_served_overview(collection, "csv") is not None


def test_results_that_come_with_a_repository_are_not_shown(collection: Collection) -> None:
    skill = collection.find("csv")
    root = skill.root._replace(source=REPOSITORY_SOURCE)
    other = skill._replace(catalog_root=skill.catalog_root._replace(root=root))
    assert may_show_results(skill, "")
    assert not may_show_results(other, "")
    assert may_show_results(other, "/srv/eval-results")
