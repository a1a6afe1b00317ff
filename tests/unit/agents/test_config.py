import json
from pathlib import Path

import pytest

from skillhall.agents.config import AgentConfig, read_config
from skillhall.agents.instructions import InstructionSource
from skillhall.errors import ConfigInvalid
from skillhall.policy.selecting import Globs


def written(folder: Path, document: object) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


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
    assert read_config(file).agent("a").skills == ()


def test_an_unknown_agent_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with pytest.raises(ConfigInvalid, match="there is no agent 'b'") as caught:
        config.agent("b")
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
