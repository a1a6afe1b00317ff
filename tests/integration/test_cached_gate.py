"""The cache of approved skills: agents get them without the trust gate while nothing changes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal import settings as settings_module
from skillhall._internal.catalog import loader
from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.head_cache import HeadCache, now_ns
from skillhall._internal.catalog.skill_content import activate
from skillhall._internal.catalog.trust import file_hashes
from skillhall._internal.catalog.trust.cached_gate import CachedGate
from skillhall._internal.catalog.trust.gate import Clearance
from skillhall._internal.catalog.trust.trust_gate import TrustGate
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.settings import Settings
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.wiring.catalog import resolve_roots
from skillhall._internal.wiring.project_review import open_review
from skillhall.errors import SkillNotApproved
from tests.support.project_cli import Cli, make_cli
from tests.support.skills import make_skill, make_skill_md

SKILLS = ".agents/skills"
DESCRIPTION = "Reads PDF files."


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in a project with two approved skills, whose files count as old."""
    monkeypatch.setattr(settings_module, "MACHINE_POLICY", str(tmp_path / "etc/policy.toml"))
    for module in (loader, file_hashes):
        monkeypatch.setattr(module, "now_ns", lambda: now_ns() + 2 * CLOCK_GRANULARITY)
    cli = make_cli(tmp_path, monkeypatch, capsys)
    make_skill(Path(SKILLS), "pdf", files={"a.md": b"a", "scripts/run.py": b"1"})
    make_skill(Path(SKILLS), "csv")
    make_skill(Path.home() / SKILLS, "notes")
    cli("trust", "--yes")
    return cli


def scan(*roots: Root) -> Catalog:
    settings = Settings.read()
    found = roots or resolve_roots(None, LENIENT, settings)
    return loader.load_roots(found, LENIENT, HeadCache(settings.cache_directory))


class Gate:
    """A gate that counts how often it needs the trust gate."""

    def __init__(self) -> None:
        self.opened = 0
        settings = Settings.read()

        def open_trust_gate() -> TrustGate:
            self.opened += 1
            return open_review(settings, "test").gate

        self.gate = CachedGate(settings, LENIENT.trust_policy, open_trust_gate)

    def clear(self, catalog: Catalog | None = None) -> Clearance:
        self.gate.find_linked_folders()
        return self.gate.clear(scan() if catalog is None else catalog.skills)


@pytest.fixture
def gate(cli: Cli) -> Gate:
    """A gate with a cache that knows all skills."""
    del cli
    assert len(Gate().clear().cleared) == 3
    return Gate()


def names(clearance: Clearance) -> list[str]:
    return sorted(skill.name for skill in clearance.cleared)


def test_approved_skills_need_no_trust_gate(gate: Gate) -> None:
    clearance = gate.clear()
    assert names(clearance) == ["csv", "notes", "pdf"]
    assert gate.opened == 0
    own, *_ = (skill for skill in clearance.cleared if skill.name == "notes")
    assert own.approved is None


def test_listing_and_prompt_share_the_cache(cli: Cli, gate: Gate) -> None:
    cli("list", "--json")
    assert names(gate.clear()) == ["csv", "notes", "pdf"]
    assert gate.opened == 0


def test_reads_of_a_cached_skill_are_compared_with_the_approved_files(gate: Gate) -> None:
    skill = next(one for one in gate.clear().cleared if one.name == "pdf")
    assert "# Steps" in activate(skill)
    Path(SKILLS, "pdf/a.md").write_bytes(b"b")
    with pytest.raises(SkillNotApproved):
        activate(skill)


@pytest.mark.parametrize("change", ["byte", "hidden file", "execute bit", "removed file", "link"])
def test_changed_skill_is_held(gate: Gate, change: str) -> None:
    file = Path(SKILLS, "pdf/scripts/run.py")
    if change == "byte":
        file.write_bytes(b"2")
    elif change == "hidden file":
        Path(SKILLS, "pdf/scripts/.rc").write_bytes(b"")
    elif change == "execute bit":
        file.chmod(0o755)
    else:
        file.unlink()
        if change == "link":
            file.symlink_to(Path("../../../../elsewhere"))
    clearance = gate.clear()
    assert names(clearance) == ["csv", "notes"]
    assert [held.decision.state.value for held in clearance.held] == ["changed"]


def test_blocked_skill_is_held_at_once(cli: Cli, gate: Gate) -> None:
    cli("untrust", "pdf")
    assert names(gate.clear()) == ["csv", "notes"]


def test_new_policy_counts_at_once(gate: Gate) -> None:
    policy = Path("skillhall-policy.toml")
    policy.write_text('version = 1\ndeny = [{ risk = "L0" }]\n', encoding="utf-8")
    assert names(gate.clear()) == []
    policy.unlink()
    assert names(gate.clear()) == ["csv", "notes", "pdf"]


def test_revoked_skill_is_held_at_once(cli: Cli, gate: Gate) -> None:
    digests = {one["name"]: one["digest"] for one in cli("trust", "list", "--json").data["skills"]}
    entry = {"digest": digests["csv"], "skill": "csv", "reason": "evil"}
    entry |= {"at": "2026-01-01T00:00:00Z", "instead": ""}
    document = {"number": 1, "issued": entry["at"], "expires": "9999-01-01T00:00:00Z"}
    file = Path("revoked.json")
    file.write_text(json.dumps({**document, "revoked": [entry]}), encoding="utf-8")
    assert cli("advisories", str(file)).code == 0
    assert names(gate.clear()) == ["notes", "pdf"]


def test_folder_that_was_named_before_still_needs_an_approval(cli: Cli) -> None:
    make_skill(Path(SKILLS), "new")
    named = Root.resolve(SKILLS, str(Path.cwd()))
    assert "new" in names(Gate().clear(scan(named)))
    assert "new" not in names(Gate().clear())
    del cli


def test_project_that_is_trusted_for_one_run_is_not_approved(cli: Cli) -> None:
    make_skill(Path(SKILLS), "new")
    assert "new" in cli("prompt", "--trust-project").out
    assert "new" in cli("prompt", "--trust-project").out
    assert "new" not in cli("prompt").out


def iter_scans_of_another_version() -> Iterator[Catalog]:
    """Yield scans of a version with another description, which is restored afterwards."""
    file = Path(SKILLS, "pdf/SKILL.md")
    good = file.read_bytes()
    file.write_bytes(make_skill_md("pdf", "Sends PDF files."))
    yield scan()
    file.write_bytes(good)
    yield scan()


def test_description_of_another_version_is_held(gate: Gate) -> None:
    evil, good = iter_scans_of_another_version()
    clearance = gate.clear(evil)
    assert names(clearance) == ["csv", "notes"]
    assert [held.decision.rule for held in clearance.held] == ["it changed while it was read"]
    assert names(gate.clear(good)) == ["csv", "notes", "pdf"]


def test_description_of_a_young_file_is_compared(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "now_ns", now_ns)
    evil, good = iter_scans_of_another_version()
    assert names(gate.clear(evil)) == ["csv", "notes"]
    assert names(gate.clear(good)) == ["csv", "notes", "pdf"]
