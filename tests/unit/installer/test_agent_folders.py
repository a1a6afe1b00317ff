import re
from pathlib import Path

import pytest

from skillhall._internal.installer.agent_folders import (
    AGENTS,
    LEGACY_UNIVERSAL_FOLDER,
    VARIABLE_DEFAULTS,
    CodingAgent,
    detect_agents,
    find_agent,
    get_project_folder,
    resolve_read_folders,
    resolve_user_folder,
    uses_universal_folder,
)
from skillhall._internal.skill.bundle import RelativePath
from skillhall.errors import UnknownAgent

HOME = str(Path("/home/ada").absolute())
ELSEWHERE = str(Path("/opt/elsewhere").absolute())
ALL = pytest.mark.parametrize("agent", AGENTS.values(), ids=lambda agent: agent.id)


def in_home(*names: str) -> str:
    return str(Path(HOME, *names))


def ids(agents: list[CodingAgent]) -> list[str]:
    return [agent.id for agent in agents]


def test_the_table_has_the_agents_that_people_use() -> None:
    known = {"claude-code", "codex", "gemini-cli", "github-copilot", "cursor", "opencode", "amp"}
    assert known | {"goose", "windsurf", "universal"} <= set(AGENTS)
    assert len(AGENTS) >= 70
    assert len({agent.label for agent in AGENTS.values()}) == len(AGENTS)


@ALL
def test_an_agent_is_listed_under_its_own_plain_id(agent: CodingAgent) -> None:
    assert AGENTS[agent.id] is agent
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", agent.id)


@ALL
def test_every_place_of_an_agent_is_a_plain_path_below_a_known_start(agent: CodingAgent) -> None:
    RelativePath.parse(agent.project_folder)
    for place in (agent.user_folder, *agent.markers, *agent.extra_read_folders):
        start, _, rest = place.partition("/")
        if start.startswith("$"):
            assert start[1:] in VARIABLE_DEFAULTS
        if rest:
            RelativePath.parse(rest if start[0] in "~$" else place)


@ALL
def test_nobody_writes_into_the_former_folder(agent: CodingAgent) -> None:
    assert LEGACY_UNIVERSAL_FOLDER not in (
        agent.project_folder,
        agent.user_folder.removeprefix("~/"),
    )


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
    ],
)
def test_an_agent_finds_skills_where_its_makers_say(
    name: str, project: str, user: tuple[str, ...]
) -> None:
    agent = find_agent(name)
    assert get_project_folder(agent) == project
    assert resolve_user_folder(agent, HOME, {}) == in_home(*user)
    assert uses_universal_folder(agent) == (project == ".agents/skills")


@pytest.mark.parametrize("name", ["eve", "promptscript"])
def test_an_agent_may_have_no_place_for_its_users_skills(name: str) -> None:
    assert resolve_user_folder(find_agent(name), HOME, {}) is None


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
def test_a_variable_moves_the_users_folder(
    variable: str, agent: str, below: tuple[str, ...]
) -> None:
    found = resolve_user_folder(find_agent(agent), HOME, {variable: f" {ELSEWHERE} "})
    assert found == str(Path(ELSEWHERE, *below))


@pytest.mark.parametrize("value", ["", "  ", "relative", "../up", "~/x"])
def test_a_variable_that_holds_no_whole_path_is_as_good_as_unset(value: str) -> None:
    codex = find_agent("codex")
    assert resolve_user_folder(codex, HOME, {"CODEX_HOME": value}) == in_home(".codex", "skills")


def test_an_unknown_agent_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownAgent) as caught:
        find_agent("claude")
    assert caught.value.code == "not_found"
    assert caught.value.close == ("claude-code",)
    assert "'claude-code'" in caught.value.suggestion


def test_an_agent_that_resembles_none_is_refused_with_advice() -> None:
    with pytest.raises(UnknownAgent) as caught:
        find_agent("../../x")
    assert caught.value.close == ()
    assert caught.value.suggestion == ""


def test_nobody_is_detected_in_empty_folders(tmp_path: Path) -> None:
    assert detect_agents(str(tmp_path), str(tmp_path), {}) == []


def test_an_agent_is_detected_by_its_folder_at_home_or_in_the_project(tmp_path: Path) -> None:
    home, project, config = tmp_path / "home", tmp_path / "project", tmp_path / "config"
    for folder in (home / ".cursor", project / ".goose", config / "opencode"):
        folder.mkdir(parents=True)
    found = detect_agents(str(home), str(project), {"XDG_CONFIG_HOME": str(config)})
    assert ids(found) == ["cursor", "goose", "opencode"]


def test_the_shared_folder_says_nothing_about_who_reads_it(tmp_path: Path) -> None:
    (tmp_path / ".agents" / "skills").mkdir(parents=True)
    assert detect_agents(str(tmp_path), str(tmp_path), {}) == []


def test_the_former_folder_is_read() -> None:
    found = resolve_read_folders(find_agent("universal"), HOME, ELSEWHERE, {})
    assert found == [
        str(Path(ELSEWHERE, ".agents", "skills")),
        in_home(".agents", "skills"),
        str(Path(ELSEWHERE, ".agent", "skills")),
    ]
