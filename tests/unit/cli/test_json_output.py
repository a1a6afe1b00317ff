import json

import pytest

from skillhall._internal.cli.json_output import (
    EncodedItems,
    print_json_error,
    print_json_report,
    serialize_finding,
)
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill.finding import Code, Finding


def test_json_report_is_one_object_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    judged = JudgedFinding(Finding(Code.BOM, "m", 1, "h", "p", "s"), Effect.ACCEPT)
    print_json_report("list", {"skills": iter([{"name": "a"}, {"name": "b"}]), "n": 2}, [judged])
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert json.loads(text) == {
        "schemaVersion": 1,
        "command": "list",
        "ok": True,
        "data": {"skills": [{"name": "a"}, {"name": "b"}], "n": 2},
        "findings": [
            {
                "code": "bom",
                "effect": "accept",
                "message": "m",
                "path": "p",
                "line": 1,
                "hint": "h",
                "skill": "s",
            }
        ],
    }


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 2000])
def test_long_lists_are_written_completely(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_json_report("list", {"numbers": iter(range(count))})
    assert json.loads(capsys.readouterr().out)["data"]["numbers"] == list(range(count))


@pytest.mark.parametrize("count", [0, 1, 513])
def test_encoded_items_are_written_unchanged(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    print_json_report("list", {"items": EncodedItems(f'"é{n}"' for n in range(count))})
    answer = json.loads(capsys.readouterr().out)
    assert answer["data"]["items"] == [f"é{n}" for n in range(count)]


def test_serialized_finding_omits_empty_fields() -> None:
    serialized = serialize_finding(JudgedFinding(Finding(Code.BOM, "m"), Effect.WARN))
    assert serialized == {"code": "bom", "effect": "warn", "message": "m"}


def test_json_error_is_not_ok(capsys: pytest.CaptureFixture[str]) -> None:
    print_json_error("show", {"code": "not_found", "message": "m"})
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ok"], answer["command"]) == (False, "show")
    assert answer["error"] == {"code": "not_found", "message": "m"}
    assert "data" not in answer


def test_lone_surrogate_does_not_break_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json_report("list", {"path": "é\udcff"})
    text = capsys.readouterr().out
    assert json.loads(text.encode("utf-8"))["data"]["path"] == "é?"
