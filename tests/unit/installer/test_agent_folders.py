import re
from pathlib import Path

import pytest

from skillhall._internal.installer.agent_folders import (
    AGENTS,
    VARIABLE_DEFAULTS,
    CodingAgent,
    detect_agents,
    find_agents,
    resolve_user_folder,
)
from skillhall._internal.installer.project import Project
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import UnknownAgent
from tests.support.projects import make_project_settings

HOME = str(Path("/home/ada").absolute())
ELSEWHERE = str(Path("/opt/elsewhere").absolute())
ALL = pytest.mark.parametrize("agent", AGENTS.values(), ids=lambda agent: agent.id)


def make_project(folder: Path) -> Project:
    return Project.from_settings(make_project_settings(folder))


def in_home(*names: str) -> str:
    return str(Path(HOME, *names))


def test_table_contains_the_common_agents() -> None:
    known = {"claude-code", "codex", "gemini-cli", "github-copilot", "cursor", "opencode", "amp"}
    assert known | {"goose", "windsurf", "universal"} <= set(AGENTS)
    assert len(AGENTS) >= 70
    assert len({agent.label for agent in AGENTS.values()}) == len(AGENTS)


@ALL
def test_agent_is_listed_under_its_id(agent: CodingAgent) -> None:
    assert AGENTS[agent.id] is agent
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", agent.id)


@ALL
def test_agent_folders_are_safe_paths_below_a_known_base(agent: CodingAgent) -> None:
    RelativePath.parse(agent.project_folder)
    for folder in (agent.user_folder, *agent.markers):
        base, _, rest = folder.partition("/")
        if base.startswith("$"):
            assert base[1:] in VARIABLE_DEFAULTS
        if rest:
            RelativePath.parse(rest if base[0] in "~$" else folder)


@pytest.mark.parametrize(
    ("name", "project", "user"),
    [
        ("universal", ".agents/skills", (".agents", "skills")),
        ("claude-code", ".claude/skills", (".claude", "skills")),
        ("codex", ".agents/skills", (".codex", "skills")),
        ("cursor", ".agents/skills", (".cursor", "skills")),
        ("gemini-cli", ".agents/skills", (".gemini", "skills")),
        ("github-copilot", ".agents/skills", (".copilot", "skills")),
        ("opencode", ".agents/skills", (".config", "opencode", "skills")),
        ("amp", ".agents/skills", (".config", "agents", "skills")),
        ("goose", ".goose/skills", (".config", "goose", "skills")),
        ("windsurf", ".windsurf/skills", (".codeium", "windsurf", "skills")),
        ("droid", ".factory/skills", (".factory", "skills")),
        ("pi", ".pi/skills", (".pi", "agent", "skills")),
        ("openclaw", "skills", (".openclaw", "skills")),
        ("fx", ".agents/skills", (".agents", "skills")),
        ("grok", ".grok/skills", (".grok", "skills")),
        ("kimchi", ".kimchi/skills", (".config", "kimchi", "harness", "skills")),
        ("minimax-code", ".minimax/skills", (".minimax", "skills")),
        ("posit-assistant", ".posit/assistant/skills", (".posit", "assistant", "skills")),
        ("sarvam-code", ".agents/skills", (".agents", "skills")),
    ],
)
def test_agent_folders_match_the_documentation(
    name: str, project: str, user: tuple[str, ...]
) -> None:
    assert AGENTS[name].project_folder == project
    assert resolve_user_folder(AGENTS[name], HOME, {}) == in_home(*user)


@pytest.mark.parametrize("name", ["eve", "promptscript"])
def test_agent_may_have_no_user_folder(name: str) -> None:
    assert resolve_user_folder(AGENTS[name], HOME, {}) is None


@pytest.mark.parametrize(
    ("variable", "agent", "below"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", ("skills",)),
        ("CODEX_HOME", "codex", ("skills",)),
        ("XDG_CONFIG_HOME", "goose", ("goose", "skills")),
        ("VIBE_HOME", "mistral-vibe", ("skills",)),
        ("HERMES_HOME", "hermes-agent", ("skills",)),
    ],
)
def test_variable_changes_the_user_folder(
    variable: str, agent: str, below: tuple[str, ...]
) -> None:
    folder = resolve_user_folder(AGENTS[agent], HOME, {variable: f" {ELSEWHERE} "})
    assert folder == str(Path(ELSEWHERE, *below))


@pytest.mark.parametrize("value", ["", "  ", "relative", "../up", "~/x"])
def test_variable_without_an_absolute_path_is_ignored(value: str) -> None:
    codex = AGENTS["codex"]
    assert resolve_user_folder(codex, HOME, {"CODEX_HOME": value}) == in_home(".codex", "skills")


def test_unknown_agent_is_rejected_with_close_matches(tmp_path: Path) -> None:
    with pytest.raises(UnknownAgent) as caught:
        find_agents(make_project(tmp_path), ["claude"])
    assert caught.value.code == "not_found"
    assert caught.value.close == ("claude-code",)
    assert "'claude-code'" in caught.value.suggestion


def test_unknown_agent_without_close_matches_has_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UnknownAgent) as caught:
        find_agents(make_project(tmp_path), ["../../x"])
    assert caught.value.close == ()
    assert caught.value.suggestion == ""


def test_no_agent_is_detected_in_empty_folders(tmp_path: Path) -> None:
    assert detect_agents(str(tmp_path), str(tmp_path), {}) == []


def test_agents_are_detected_by_home_and_project_folders(tmp_path: Path) -> None:
    home, project, config = tmp_path / "home", tmp_path / "project", tmp_path / "config"
    for folder in (home / ".cursor", project / ".goose", config / "opencode"):
        folder.mkdir(parents=True)
    agents = detect_agents(str(home), str(project), {"XDG_CONFIG_HOME": str(config)})
    assert [agent.id for agent in agents] == ["cursor", "goose", "opencode"]


def test_universal_folder_does_not_detect_an_agent(tmp_path: Path) -> None:
    (tmp_path / ".agents" / "skills").mkdir(parents=True)
    assert detect_agents(str(tmp_path), str(tmp_path), {}) == []
