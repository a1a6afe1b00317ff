"""`skillhall schema`: the schemas accept what Skillhall accepts."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta

from skillhall._internal.authoring.skill_schema import describe_fields
from skillhall._internal.cli.runner import run
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.yaml.values import HIDDEN_FIELD, KNOWN_FIELDS
from tests.support.skills import make_skill, make_skill_md


def read_schema(capture: pytest.CaptureFixture[str], name: str) -> Draft202012Validator:
    assert run(["schema", name]) == 0
    schema = json.loads(capture.readouterr().out)
    meta.validate(schema)
    return Draft202012Validator(schema)


def test_all_schemas_are_listed_and_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "--json"]) == 0
    names = [one["name"] for one in json.loads(capsys.readouterr().out)["data"]["schemas"]]
    assert names[:5] == ["skill", "config", "lock", "evals", "triggers"]
    for name in names:
        read_schema(capsys, name)


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({}, True),
        ({"name": "größe-2"}, True),
        ({"name": "Pdf"}, False),
        ({"name": "a--b"}, False),
        ({"name": "-a"}, False),
        ({"name": "a" * 65}, False),
        ({"description": " "}, False),
        ({"description": "d" * 1025}, False),
        ({"metadata": "{version: '1'}"}, True),
        ({"metadata": "text"}, False),
        ({"allowed_tools": "Read Bash(git:*)"}, True),
        ({"allowed_tools": "[Read, Edit]"}, False),
        ({"compatibility": "''"}, False),
        ({"disable_model_invocation": "true"}, True),
        ({"own": "value"}, True),
    ],
)
def test_skill_schema_accepts_what_the_checks_accept(
    capsys: pytest.CaptureFixture[str], fields: dict[str, Any], *, is_valid: bool
) -> None:
    data = make_skill_md(**fields)
    parsed = parse_skill(data, fields.get("name", "pdf-tools"))
    problems = {finding.code.value for finding in parsed.findings} - {"unknown-field", "yaml-flow"}
    assert (problems == set()) == is_valid
    validator = read_schema(capsys, "skill")
    assert validator.is_valid(parsed.frontmatter.fields) == is_valid


def test_skill_schema_describes_every_known_field() -> None:
    assert describe_fields().keys() == KNOWN_FIELDS | {HIDDEN_FIELD}


def test_lock_schema_accepts_a_written_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    make_skill(tmp_path / "source")
    assert run(["add", "--yes", "source/pdf-tools", "-a", "claude-code", "-a", "cursor"]) == 0
    capsys.readouterr()
    lock = json.loads((tmp_path / "skillhall-lock.json").read_text())
    validator = read_schema(capsys, "lock")
    assert [*validator.iter_errors(lock)] == []
    next(iter(lock["skills"].values()))["digest"] = "md5:0"
    assert not validator.is_valid(lock)


def test_config_schema_accepts_a_file_for_check_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    validator = read_schema(capsys, "config")
    assert validator.is_valid({"check": {"paths": ["skills"], "skip": ["verify"]}})
    assert not validator.is_valid({"check": {"path": "skills"}})
    assert not validator.is_valid({})
