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
from skillhall._internal.agents.config.nodes import MAX_CONFIG_BYTES
from skillhall._internal.agents.instruction_skills import InstructionSource
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


def test_an_agent_is_read_with_its_sources(tmp_path: Path) -> None:
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


def test_a_list_left_out_is_not_an_empty_one(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"root": "x"}, {"root": "x", "available": [], "inline": []})
    assert [source.globs for source in config.agents[0].skills] == [Globs(), Globs((), ())]


def test_a_source_can_start_at_the_config(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"root": "x", "base": "config"}, {"root": "x"})
    assert [source.base for source in config.agents[0].skills] == [str(tmp_path), ""]


def test_a_source_can_allow_links(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"root": "x", "followLinks": True}, {"root": "x"})
    assert [source.follow_links for source in config.agents[0].skills] == [True, False]


def test_toml_has_the_same_shape(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[[agents]]\nid = "coding"\n[[agents.skills]]\nroot = "x"\ninline = []\n', encoding="utf-8"
    )
    (agent,) = read_config(file).agents
    assert agent.skills == (InstructionSource("x", Globs(None, ())),)


def test_a_config_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"agents": [{"id": "a"}]}', encoding="utf-8-sig")
    assert read_config(file).find_agent("a").skills == ()


def test_an_unknown_agent_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with pytest.raises(ConfigInvalid, match="there is no agent 'b'") as caught:
        config.find_agent("b")
    assert caught.value.hint == "its agents: a"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"root": "x", "inline": "a"}, "agents[0].skills[1].inline must be a list of text"),
        ({"root": "x", "available": [1]}, "agents[0].skills[1].available must be a list of text"),
        ({"root": ""}, "agents[0].skills[1].root must be the path of a folder"),
        ({"root": "a\0b"}, "agents[0].skills[1].root must be the path of a folder"),
        ({"root": "\ud800"}, "agents[0].skills[1].root must be the path of a folder"),
        ({"root": 3}, "agents[0].skills[1].root must be text"),
        ({}, "agents[0].skills[1].root must be the path of a folder"),
        ("x", "agents[0].skills[1] must be an object"),
        ({"root": "x", "base": "home"}, "agents[0].skills[1].base must be 'config'"),
        ({"root": "x", "inlne": []}, "agents[0].skills[1].inlne must not be there"),
    ],
)
def test_a_wrong_source_is_named_by_its_key(tmp_path: Path, source: object, problem: str) -> None:
    document = {"agents": [{"agentId": "a", "skills": [{"root": "fine"}, source]}]}
    assert problem_of(written(tmp_path, document)) == problem


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "the document must be an object"),
        ({}, "agents must be given"),
        ({"agents": {}}, "agents must be a list"),
        ({"agents": [1]}, "agents[0] must be an object"),
        ({"agents": [{}]}, "agents[0].agentId must be a text that is not empty"),
        ({"agents": [{"id": 1}]}, "agents[0].id must be text"),
        ({"agents": [{"id": "a", "skills": {}}]}, "agents[0].skills must be a list"),
        ({"agents": [{"id": "a"}, {"id": "a"}]}, "agents[1] has the id 'a' of agents[0]"),
    ],
)
def test_a_wrong_document_is_named_by_its_key(
    tmp_path: Path, document: object, problem: str
) -> None:
    assert problem_of(written(tmp_path, document)) == problem


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert problem_of(tmp_path / "none.json") == "it cannot be read: no such file or directory"


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("c.json", b"{", "it is not JSON: "),
        ("c.json", b"[" * 100_000, "it is not JSON: "),
        ("c.json", b"\xff", "it cannot be read: "),
        ("c.toml", b"a = ", "it is not TOML: "),
    ],
)
def test_a_file_that_is_no_document_is_named(
    tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    assert problem_of(file).startswith(problem)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"model": 1}, "agents[0].model must be text"),
        ({"instructions": []}, "agents[0].instructions must be text"),
        ({"name": {}}, "agents[0].name must be text"),
        ({"tools": "load_skill"}, "agents[0].tools must be a list of text"),
        ({"tools": ["shell"]}, "agents[0].tools[0] must name one of our tools"),
        ({"readExtensions": ".md"}, "agents[0].readExtensions must be a list of text"),
        (
            {"readExtensions": [".md", "tar.gz"]},
            "agents[0].readExtensions[1] must be a file extension such as .md",
        ),
        ({"budgets": 5}, "agents[0].budgets must be an object"),
        ({"budgets": {"catalog": 0}}, "agents[0].budgets.catalog must be a whole number from 1 on"),
        (
            {"budgets": {"tokens": True}},
            "agents[0].budgets.tokens must be a whole number from 1 on",
        ),
        ({"budgets": {"catlog": 1}}, "agents[0].budgets.catlog must not be there"),
    ],
)
def test_a_wrong_key_of_an_agent_is_refused_and_the_schema_refuses_it_too(
    tmp_path: Path, entry: dict[str, object], problem: str
) -> None:
    document = {"agents": [{"id": "a", **entry}]}
    assert problem_of(written(tmp_path, document)) == problem
    assert not schema().is_valid(document)


def test_a_whole_agent_is_read_and_the_schema_takes_it(tmp_path: Path) -> None:
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


def test_an_agent_gets_every_tool_unless_its_config_names_some(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, {"agents": [{"id": "a"}, {"id": "b", "tools": []}]}))
    assert [agent.tools for agent in config.agents] == [AGENT_TOOL_NAMES, ()]


def test_an_error_names_the_line_of_its_key_in_json(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(
        '{"port": [1, {}],\n "agents": [\n  {"id": "a"},\n  {"id": "b\\"]",\n'
        '   "skills": [{"root": "x"},\n    {"root": "y",\n     "inline": 3}]}]}',
        encoding="utf-8",
    )
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert str(caught.value) == (f"{file}:7: agents[1].skills[1].inline must be a list of text")


def test_an_error_names_the_line_of_its_statement_in_toml(tmp_path: Path) -> None:
    file = tmp_path / "skillhall.toml"
    file.write_text(
        '[[agents]]\nid = "a"\n\n[[agents]]\nid = "b"\n'
        'instructions = """\none\ntwo"""\n# a comment\ntools = [\n  "ReadFile",\n  "sh",\n]\n',
        encoding="utf-8",
    )
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert str(caught.value) == f"{file}:10: agents[1].tools[1] must name one of our tools"


def test_what_is_missing_is_looked_for_at_the_line_above_it(tmp_path: Path) -> None:
    file = tmp_path / "skillhall.toml"
    file.write_text('[[agents]]\nid = "a"\n[[agents.skills]]\ninline = []\n', encoding="utf-8")
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert caught.value.line == 3


def test_a_config_that_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    assert problem_of(file) == f"it is larger than {MAX_CONFIG_BYTES} bytes"


def test_a_folder_has_the_config_of_its_toml_file_first(tmp_path: Path) -> None:
    assert find_config(tmp_path) is None
    (tmp_path / "skillhall.json").write_text("{}", encoding="utf-8")
    assert find_config(tmp_path) == str(tmp_path / "skillhall.json")
    (tmp_path / "skillhall.toml").write_text("", encoding="utf-8")
    assert find_config(tmp_path) == str(tmp_path / "skillhall.toml")


def test_a_file_of_our_own_has_no_keys_of_others(tmp_path: Path) -> None:
    file = tmp_path / "skillhall.toml"
    file.write_text('[[agents]]\nid = "a"\nbudget = 3\n', encoding="utf-8")
    with pytest.raises(ConfigInvalid) as caught:
        read_config(file)
    assert str(caught.value) == f"{file}:3: agents[0].budget must not be there"
    assert caught.value.hint.endswith("skills, tools, budgets, readExtensions")
