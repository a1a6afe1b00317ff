import json
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator

from skillhall._internal.agents.config.agent_config import (
    AGENT_TOOL_NAMES,
    AgentBudgets,
    AgentConfig,
    find_config,
    read_config,
    schema_file,
)
from skillhall._internal.agents.instruction_skills import InstructionSource
from skillhall._internal.config_file.nodes import MAX_CONFIG_BYTES
from skillhall._internal.policy.selection import Globs
from skillhall.errors import ConfigInvalid


def written(folder: Path, document: object) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def schema() -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_file().read_text(encoding="utf-8")))


def config_of(folder: Path, *sources: object) -> AgentConfig:
    return read_config(written(folder, {"agents": [{"agentId": "a", "skills": list(sources)}]}))


def problem_of(file: Path) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert caught.value.path == str(file)
    return caught.value.problem


def test_agent_is_read_with_its_sources(tmp_path: Path) -> None:
    entry = {
        "agentId": "coding",
        "displayName": "Coding",
        "description": "Writes code.",
        "model": "some model",
        "skills": [{"root": "~/skills", "available": ["*"], "inline": ["a-*"]}],
    }
    (agent,) = read_config(written(tmp_path, {"agents": [entry], "port": 1})).agents
    assert (agent.id, agent.display_name, agent.description) == ("coding", "Coding", "Writes code.")
    assert agent.skills == (InstructionSource("~/skills", Globs(("*",), ("a-*",))),)


def test_missing_list_differs_from_an_empty_one(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"root": "x"}, {"root": "x", "available": [], "inline": []})
    assert [source.globs for source in config.agents[0].skills] == [Globs(), Globs((), ())]


def test_source_base_can_be_the_config_folder(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"root": "x", "base": "config"}, {"root": "x"})
    assert [source.base for source in config.agents[0].skills] == [str(tmp_path), ""]


def test_source_can_allow_links(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"root": "x", "followLinks": True}, {"root": "x"})
    assert [source.follow_links for source in config.agents[0].skills] == [True, False]


def test_toml_config_equals_json_config(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[[agents]]\nid = "coding"\n[[agents.skills]]\nroot = "x"\ninline = []\n', encoding="utf-8"
    )
    (agent,) = read_config(file).agents
    assert agent.skills == (InstructionSource("x", Globs(None, ()), label="project"),)


def test_config_with_a_bom_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"agents": [{"id": "a"}]}', encoding="utf-8-sig")
    assert read_config(file).find_agent("a").skills == ()


def test_unknown_agent_error_lists_known_agents(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with pytest.raises(ConfigInvalid, match="agent not found: 'b'") as caught:
        config.find_agent("b")
    assert caught.value.hint == "agents in this file: a"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"root": "x", "inline": "a"}, "'agents[0].skills[1].inline' must be a list of strings"),
        (
            {"root": "x", "available": [1]},
            "'agents[0].skills[1].available' must be a list of strings",
        ),
        ({"root": ""}, "'agents[0].skills[1].root' must be the path of a folder"),
        ({"root": "a\0b"}, "'agents[0].skills[1].root' must be the path of a folder"),
        ({"root": "\ud800"}, "'agents[0].skills[1].root' must be the path of a folder"),
        ({"root": 3}, "'agents[0].skills[1].root' must be a string"),
        ({}, "'agents[0].skills[1].root' must be the path of a folder"),
        ("x", "'agents[0].skills[1]' must be an object"),
        ({"root": "x", "base": "home"}, "'agents[0].skills[1].base' must be 'config'"),
        ({"root": "x", "inlne": []}, "unknown key 'agents[0].skills[1].inlne'"),
    ],
)
def test_invalid_source_error_names_its_key(tmp_path: Path, source: object, problem: str) -> None:
    document = {"agents": [{"agentId": "a", "skills": [{"root": "fine"}, source]}]}
    assert problem_of(written(tmp_path, document)) == problem


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "the document must be an object"),
        ({}, "'agents' must be set"),
        ({"agents": {}}, "'agents' must be a list"),
        ({"agents": [1]}, "'agents[0]' must be an object"),
        ({"agents": [{}]}, "'agents[0].agentId' must be a non-empty string"),
        ({"agents": [{"id": 1}]}, "'agents[0].id' must be a string"),
        ({"agents": [{"id": "a", "skills": {}}]}, "'agents[0].skills' must be a list"),
        ({"agents": [{"id": "a"}, {"id": "a"}]}, "agents[1] has the same id 'a' as agents[0]"),
    ],
)
def test_invalid_document_error_names_its_key(
    tmp_path: Path, document: object, problem: str
) -> None:
    assert problem_of(written(tmp_path, document)) == problem


def test_missing_file_is_named_in_the_error(tmp_path: Path) -> None:
    assert problem_of(tmp_path / "none.json") == "cannot be read: no such file or directory"


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("c.json", b"{", "not valid JSON: "),
        ("c.json", b"[" * 100_000, "not valid JSON: "),
        ("c.json", b"\xff", "cannot be read: "),
        ("c.toml", b"a = ", "not valid TOML: "),
    ],
)
def test_unparsable_file_is_named_in_the_error(
    tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    assert problem_of(file).startswith(problem)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"model": 1}, "'agents[0].model' must be a string"),
        ({"instructions": []}, "'agents[0].instructions' must be a string"),
        ({"name": {}}, "'agents[0].name' must be a string"),
        ({"tools": "load_skill"}, "'agents[0].tools' must be a list of strings"),
        ({"tools": ["shell"]}, "'agents[0].tools[0]' must be the name of a tool"),
        ({"readExtensions": ".md"}, "'agents[0].readExtensions' must be a list of strings"),
        (
            {"readExtensions": [".md", "tar.gz"]},
            "'agents[0].readExtensions[1]' must be a file extension such as '.md'",
        ),
        ({"budgets": 5}, "'agents[0].budgets' must be an object"),
        ({"budgets": {"catalog": 0}}, "'agents[0].budgets.catalog' must be a positive integer"),
        (
            {"budgets": {"tokens": True}},
            "'agents[0].budgets.tokens' must be a positive integer",
        ),
        ({"budgets": {"catlog": 1}}, "unknown key 'agents[0].budgets.catlog'"),
    ],
)
def test_invalid_agent_key_is_rejected_by_parser_and_schema(
    tmp_path: Path, entry: dict[str, object], problem: str
) -> None:
    document = {"agents": [{"id": "a", **entry}]}
    assert problem_of(written(tmp_path, document)) == problem
    assert not schema().is_valid(document)


def test_complete_agent_is_accepted_by_parser_and_schema(tmp_path: Path) -> None:
    entry = {
        "id": "coding",
        "name": "Coding",
        "model": "ollama:qwen3",
        "instructions": "Be brief.",
        "tools": ["ReadFile", "load_skill"],
        "budgets": {"catalog": 2000, "requests": 9},
        "readExtensions": [".md", "SQL"],
        "skills": [
            {"root": "x", "available": ["*"], "inline": [], "base": "config", "followLinks": True}
        ],
        "theme": "dark",
    }
    (agent,) = read_config(written(tmp_path, {"agents": [entry]})).agents
    assert (agent.display_name, agent.model) == ("Coding", "ollama:qwen3")
    assert agent.instructions == "Be brief."
    assert agent.tools == ("load_skill", "ReadFile")
    assert agent.budgets == AgentBudgets(2000, 9, None)
    assert agent.read_extensions == (".md", ".sql")
    assert schema().is_valid({"agents": [entry]})


def test_agent_has_all_tools_by_default(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, {"agents": [{"id": "a"}, {"id": "b", "tools": []}]}))
    assert [agent.tools for agent in config.agents] == [AGENT_TOOL_NAMES, ()]


def test_json_error_names_the_line_of_the_key(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(
        '{"port": [1, {}],\n "agents": [\n  {"id": "a"},\n  {"id": "b\\"]",\n'
        '   "skills": [{"root": "x"},\n    {"root": "y",\n     "inline": 3}]}]}',
        encoding="utf-8",
    )
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert str(caught.value) == (
        f"{file}:7: 'agents[1].skills[1].inline' must be a list of strings"
    )


def test_toml_error_names_the_line_of_the_statement(tmp_path: Path) -> None:
    file = tmp_path / "skillhall.toml"
    file.write_text(
        '[[agents]]\nid = "a"\n\n[[agents]]\nid = "b"\n'
        'instructions = """\none\ntwo"""\n# a comment\ntools = [\n  "ReadFile",\n  "sh",\n]\n',
        encoding="utf-8",
    )
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert str(caught.value) == f"{file}:10: 'agents[1].tools[1]' must be the name of a tool"


def test_missing_key_error_names_the_parents_line(tmp_path: Path) -> None:
    file = tmp_path / "skillhall.toml"
    file.write_text('[[agents]]\nid = "a"\n[[agents.skills]]\ninline = []\n', encoding="utf-8")
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert caught.value.line == 3


def test_large_config_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    assert problem_of(file) == f"larger than {MAX_CONFIG_BYTES} bytes"


def test_find_config_prefers_toml(tmp_path: Path) -> None:
    assert find_config(tmp_path) is None
    (tmp_path / "skillhall.json").write_text("{}", encoding="utf-8")
    assert find_config(tmp_path) == str(tmp_path / "skillhall.json")
    (tmp_path / "skillhall.toml").write_text("", encoding="utf-8")
    assert find_config(tmp_path) == str(tmp_path / "skillhall.toml")


def test_own_config_rejects_unknown_keys(tmp_path: Path) -> None:
    file = tmp_path / "skillhall.toml"
    file.write_text('[[agents]]\nid = "a"\nbudget = 3\n', encoding="utf-8")
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert str(caught.value) == f"{file}:3: unknown key 'agents[0].budget'"
    assert caught.value.hint.endswith("skills, tools, budgets, readExtensions")
