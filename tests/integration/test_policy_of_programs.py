"""Policies, blocks and revocations in programs: the library and agents of a config file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from skillhall import AgentSkills, Skills, discover_skills
from skillhall._internal import settings
from skillhall.compat import InstructionSkills, InstructionSource, ReadTools, tools_for
from skillhall.errors import SkillNotApproved
from tests.support.project_cli import Cli, make_cli
from tests.support.skills import make_skill

DENY = 'version = 1\ndeny = [{ name = "pdf" }]\n'
HOLD = 'version = 1\ntrust = { project = "hold" }\n'
CONFIG = '[[agents]]\nid = "coding"\n[[agents.skills]]\nroot = "named"\n'
EVERY_FOLDER = ("named", ".skills", ".agents/skills", "~/.agents/skills", "~/.skillhall/skills")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return the command line of a project with the skill `pdf` in its own and named folders."""
    cli = make_cli(tmp_path, monkeypatch, capsys)
    monkeypatch.setattr(settings, "MACHINE_POLICY", str(tmp_path / "etc/policy.toml"))
    for folder in EVERY_FOLDER:
        make_skill(Path(folder).expanduser(), "pdf")
    Path("skillhall.toml").write_text(CONFIG, encoding="utf-8")
    return cli


def write_policy(text: str) -> None:
    """Write the policy of the user."""
    path = Path.home() / ".config/skillhall/policy.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def read_tools() -> list[str]:
    tools = tools_for(".")
    results = [
        tools["ReadSkill"].call({"name": "pdf"}),
        tools["ListSkillFiles"].call({"name": "pdf"}),
    ]
    return [one.text for one in results if not one.is_error] + [*(tools.keys() & {"Skill"})]


PROGRAMS: dict[str, Callable[[], object]] = {
    "Skills.load of a folder": lambda: [*Skills.load("named")],
    "Skills.load of the default folders": lambda: [*Skills.load()],
    "Skills.load under a founding profile": lambda: [*Skills.load("named", profile="local-skills")],
    "Skills.open": lambda: [*Skills.open("named")],
    "AgentSkills.of a folder": lambda: AgentSkills.of("named").prompt(),
    "AgentSkills.of the default folders": lambda: AgentSkills.of().prompt(),
    "AgentSkills.from_config": lambda: AgentSkills.from_config("coding").prompt(),
    "InstructionSkills": lambda: InstructionSkills([InstructionSource("named")]).current(),
    "discover_skills": lambda: [skill.name for skill in discover_skills("named")],
    "tools of the toolbox": lambda: "pdf" if read_tools() else "",
}


def find_programs(text: str) -> list[str]:
    """Return the programs that get a text."""
    return [program for program, run in PROGRAMS.items() if text in str(run())]


def deny(cli: Cli) -> None:
    write_policy(DENY)


def block(cli: Cli) -> None:
    assert cli("untrust", "pdf", "-g").code == 0


def revoke(cli: Cli) -> None:
    digest = cli("trust", "show", "pdf", "--json").data["digest"]
    times = {"issued": "2026-01-01T00:00:00Z", "expires": "2999-01-01T00:00:00Z"}
    entry = {"digest": digest, "skill": "pdf", "reason": "bad", "at": times["issued"]}
    revoked = {"number": 1, **times, "revoked": [entry]}
    Path("revoked.json").write_text(json.dumps(revoked), encoding="utf-8")
    assert cli("advisories", "revoked.json").code == 0


def test_programs_without_rules_get_every_skill(cli: Cli) -> None:
    assert find_programs("pdf") == [*PROGRAMS]


@pytest.mark.parametrize("restrict", [deny, block, revoke])
def test_programs_do_not_get_a_skill_that_a_rule_blocks(
    cli: Cli, restrict: Callable[[Cli], None]
) -> None:
    restrict(cli)
    assert find_programs("pdf") == []


def test_policy_holds_the_projects_skills_of_a_config(cli: Cli) -> None:
    write_policy(HOLD)
    assert "pdf" not in AgentSkills.from_config("coding").prompt()
    held = cli("prompt", "--agent", "coding")
    assert (held.code, "1 skill is not approved: pdf" in held.err) == (0, True)
    assert cli("prompt", "--agent", "coding", "--require-trusted").code == 3
    assert "pdf" in cli("prompt", "--agent", "coding", "--trust-project").out
    assert "pdf" in AgentSkills.of("named").prompt()


def test_held_skill_is_a_finding_and_its_error_names_the_rule(cli: Cli) -> None:
    write_policy(DENY)
    skills = Skills.load("named")
    [finding] = skills.findings
    assert (finding.code, finding.skill) == ("held", "pdf")
    with pytest.raises(SkillNotApproved, match=r"deny\[0\]"):
        skills["pdf"]
    assert [one.code for one in discover_skills("named").findings] == ["held"]
    assert [one.code for one in AgentSkills.from_config("coding").findings] == ["held"]


# What each surface gets while a policy cannot be read, by whether the user named the folder.
FOUND: dict[str, Callable[[Cli], object]] = {
    "Skills.load": lambda _: [*Skills.load()],
    "AgentSkills.of": lambda _: AgentSkills.of().prompt(),
    "AgentSkills.from_config": lambda _: AgentSkills.from_config("coding").prompt(),
    "skillhall prompt": lambda cli: cli("prompt").out,
    "skillhall read": lambda cli: cli("read", "pdf").out,
    "skillhall mcp": lambda cli: cli("mcp", "--check").out,
    "skillhall mcp FOLDER of an agent": lambda cli: cli("mcp", ".agents/skills", "--check").out,
}
NAMED: dict[str, Callable[[Cli], object]] = {
    "Skills.load": lambda _: [*Skills.load("named")],
    "AgentSkills.of": lambda _: AgentSkills.of("named").prompt(),
    "skillhall prompt": lambda cli: cli("prompt", "named").out,
    "skillhall read": lambda cli: cli("read", "pdf", "-r", "named").out,
    "skillhall mcp": lambda cli: cli("mcp", "named", "--check").out,
}


@pytest.mark.parametrize("level", ["user", "project"])
def test_while_a_policy_cannot_be_read_only_named_folders_are_used(cli: Cli, level: str) -> None:
    if level == "user":
        write_policy("not TOML")
    else:
        Path("skillhall-policy.toml").write_text("not TOML", encoding="utf-8")
    assert [name for name, run in FOUND.items() if "pdf" in str(run(cli))] == []
    assert [name for name, run in NAMED.items() if "pdf" in str(run(cli))] == [*NAMED]
    for findings in (
        Skills.load("named").findings,
        AgentSkills.of("named").findings,
        discover_skills("named").findings,
    ):
        [finding] = [one for one in findings if one.code == "rules-unreadable"]
        assert "not valid TOML" in str(finding)


def test_files_of_a_held_skill_are_not_read_as_plain_files(cli: Cli) -> None:
    write_policy(DENY)
    for folder in (".agents/skills", ".skills"):
        path = f"{folder}/pdf/SKILL.md"
        assert tools_for(".")["ReadFile"].call({"path": path}).is_error
    assert "pdf" not in ReadTools(".").read_skill("other")


def test_long_running_program_notices_a_new_policy(cli: Cli) -> None:
    skills = AgentSkills.from_config("coding")
    assert "pdf" in skills.prompt()
    write_policy(DENY)
    assert "pdf" not in skills.prompt()


def test_changed_skill_of_a_founding_profile_is_read_as_founded(cli: Cli) -> None:
    cli("trust", "pdf", "--yes")
    skill = Skills.load(profile="skills-module")["pdf"]
    Path(".skills/pdf/SKILL.md").write_text("---\nname: pdf\ndescription: D.\n---\nNew.\n")
    assert "New." in skill.body


def test_held_skill_gives_way_to_one_in_the_home_folder(cli: Cli) -> None:
    shutil.rmtree(".skills")
    Path(".agents/skills/pdf/bad.md").write_text("bad", encoding="utf-8")
    digest = cli("trust", "show", "pdf", "--json").data["digest"]
    write_policy(f'version = 1\ndeny = [{{ digest = "{digest}" }}]\n')
    assert Skills.load()["pdf"].path == Path.home() / ".agents/skills/pdf/SKILL.md"
