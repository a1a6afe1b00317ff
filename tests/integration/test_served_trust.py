"""Policies on a server: pages, REST, MCP and the indexes for installers."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillhall._internal import settings as settings_module
from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.asgi import Services
from skillhall._internal.catalog.trust import server_gate
from skillhall._internal.cli.runner import run
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.skill_gate import open_server_gate
from skillhall.errors import PromptNotFound
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import HttpResponse, RunningServer, make_settings, run_server
from tests.support.signatures import KEYS, sign
from tests.support.skills import make_skill

HTML = {"Accept": "text/html"}
DENY = 'deny = [{ name = "miner" }]'


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "etc/policy.toml"
    monkeypatch.setattr(settings_module, "MACHINE_POLICY", str(path))
    # Rules are read at every request.
    monkeypatch.setattr(server_gate, "CHECK_INTERVAL", 0.0)
    monkeypatch.setattr(server_gate, "COST_FACTOR", 0)
    path.parent.mkdir(mode=0o755)
    return path


@pytest.fixture
def collection(tmp_path: Path, policy: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    assert not policy.exists()
    run = tmp_path / "run"
    make_skill(run / ".agents/skills", "miner")
    make_skill(run / ".agents/skills", "pdf", files={"a.md": b"a\n"})
    monkeypatch.chdir(run)
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    settings = Settings.read()
    return Collection(FolderStore(run), settings, served=open_server_gate(settings))


def write(policy: Path, *lines: str) -> None:
    policy.write_text("\n".join(["version = 1", *lines]), encoding="utf-8")
    policy.chmod(0o644)


def list_names(collection: Collection) -> set[str]:
    """Return the skills that models get, which must be the same everywhere."""
    views = [collection.current_view(), CollectionSkills(collection).current_view()]
    published = {artifact.entry.id for artifact in collection.artifacts()}
    names = {frozenset({row.name for row in view}) for view in views}
    [answer] = {*names, frozenset(published)}
    return {*answer}


def test_without_rules_models_get_every_skill(collection: Collection) -> None:
    assert list_names(collection) == {"miner", "pdf"}
    summary = collection.summarize_trust(collection.find("pdf"))
    assert [*map(str, summary.lines)] == [
        "written   on this server",
        "approved  not needed, this server serves it",
        f"changed   nothing was approved before; now {summary.digest[:19]}",
        "use       agents of this server: yes, this server serves it (risk L0)",
    ]


def test_denied_skill_is_held_at_once_and_given_back_later(
    collection: Collection, policy: Path
) -> None:
    revision = collection.current_view().revision
    write(policy, DENY)
    assert list_names(collection) == {"pdf"}
    assert collection.current_view().revision != revision
    summary = collection.summarize_trust(collection.find("miner"))
    assert not summary.decision.is_cleared
    # The path of the file is not shown to clients.
    assert summary.decision.rule == "deny[0] of the machine's policy"
    policy.unlink()
    assert list_names(collection) == {"miner", "pdf"}


def test_policy_that_cannot_be_used_holds_everything(collection: Collection, policy: Path) -> None:
    write(policy, "deny = 3")
    assert list_names(collection) == set()
    overview = collection.served.describe_policies()
    assert "the machine's policy" in overview.problem
    assert str(policy) not in overview.problem


def test_required_signature_is_checked_for_served_skills(
    collection: Collection, policy: Path
) -> None:
    (policy.parent / "acme.pub").write_bytes(KEYS.public)
    signer = ("[[signer]]", 'name = "acme-ci"', 'key = "acme.pub"')
    write(policy, 'require = [{ source = "*", signer = ["acme-ci"] }]', *signer)
    assert list_names(collection) == set()
    skill = Path(".agents/skills/pdf")
    files = sign({"SKILL.md": (skill / "SKILL.md").read_bytes(), "a.md": b"a\n"})
    (skill / "skill.oms.sig").write_bytes(files["skill.oms.sig"])
    assert list_names(collection) == {"pdf"}
    assert "signed by acme-ci" in str(collection.summarize_trust(collection.find("pdf")).lines[0])
    (skill / "a.md").write_bytes(b"evil\n")
    assert list_names(collection) == set()


@pytest.fixture
def server(collection: Collection, policy: Path) -> Iterator[RunningServer]:
    write(policy, DENY)
    services = Services(MemoryPromptService(), collection)
    with run_server(settings=make_settings(), services=services) as running:
        yield running


def test_every_surface_of_a_server_tells_the_same(
    server: RunningServer, collection: Collection
) -> None:
    def get(path: str) -> HttpResponse:
        return server.request("GET", path, headers=HTML)

    rest = get("/api/v1/skills/miner/trust").json["data"]
    assert (rest["used"], rest["action"]) == (False, "block")
    assert rest["reason"] == "deny[0] of the machine's policy"
    assert rest["lines"] == [*map(str, collection.summarize_trust(collection.find("miner")).lines)]
    assert get("/api/v1/skills/unknown/trust").status == 404
    page = get("/skill/miner").body.decode()
    assert "Agents of this server do not get it." in page
    assert "deny[0] of the machine&#39;s policy" in page
    assert "A rule of this server holds the skill." in page
    assert "Agents of this server get it." in get("/skill/pdf").body.decode()
    table = get("/skills").body.decode()
    assert table.count("Held by a rule") == 1
    overview = get("/policy").body.decode()
    assert "Policy of the machine" in overview
    assert overview.index("miner") < overview.index("deny[0]")
    only_held = get("/policy?show=held").body.decode()
    assert ("miner" in only_held, "/skill/pdf" in only_held) == (True, False)
    index = json.loads(get("/.well-known/agent-skills/index.json").body)
    assert [entry["name"] for entry in index["skills"]] == ["pdf"]
    assert get("/.well-known/skills/miner/SKILL.md").status == 404


def test_pages_offer_no_use_of_a_held_skill(server: RunningServer) -> None:
    uses = (b"Add to session", b"Try in Playground", b"skillhall add", b"download>")
    for path, is_held in (("/skill/miner", True), ("/skill/pdf", False)):
        page = server.request("GET", path, headers=HTML).body
        assert [text in page for text in uses] == [not is_held] * 4, path
        file = server.request("GET", f"{path}/files/SKILL.md", headers=HTML).body
        assert (b"download>" in file) is not is_held, path


def test_pages_are_translated(server: RunningServer) -> None:
    chinese = {**HTML, "Accept-Language": "zh"}
    assert (
        "此服务器的智能体不能使用。"
        in server.request("GET", "/skill/miner", headers=chinese).body.decode()
    )
    assert "机器的策略" in server.request("GET", "/policy", headers=chinese).body.decode()


def test_skill_that_the_operator_blocked_is_held(
    collection: Collection, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["untrust", "pdf"]) == 0
    capsys.readouterr()
    assert list_names(collection) == {"miner"}


def test_denied_skill_of_a_repository_is_no_prompt(
    tmp_path: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("miner", "pdf"):
        make_skill(tmp_path / "repo", name)
    monkeypatch.setenv("SKILLHALL_PROMPTS_REPO", str(tmp_path / "repo"))
    monkeypatch.setenv("SKILLHALL_DATA_DIR", str(tmp_path / "data"))
    with closing(open_prompt_service(Settings.read(), poll=False)) as service:
        before = service.snapshot()
        assert {"miner", "pdf"} <= {*before.names}
        write(policy, DENY)
        after = service.snapshot()
        assert ("miner" in after.names, "pdf" in after.names) == (False, True)
        assert b"miner" not in after.list_json
        assert after.digest != before.digest
        with pytest.raises(PromptNotFound):
            after.prompt_json("miner")
        assert after.with_stale(None).names == after.names
        # The pages still show it, marked.
        assert {skill.name for skill in service.skills().skills} == {"miner", "pdf"}
        policy.unlink()
        assert "miner" in service.snapshot().names
