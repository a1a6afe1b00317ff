"""Tests of eval files: the documented format, and variants of public skills."""

from __future__ import annotations

import json

import pytest

from skillhall._internal.skill.evals.eval_assertion import EvalAssertion
from skillhall._internal.skill.evals.eval_file import (
    MAX_ENTRIES,
    MAX_EVAL_FILE_BYTES,
    MAX_FINDINGS,
    TriggerQuery,
    parse_eval_file,
    parse_trigger_file,
)

DOCUMENTED = """{
  "skill_name": "csv",
  "evals": [
    {
      "id": 1,
      "prompt": "Sum the column.",
      "expected_output": "A sum.",
      "files": ["evals/files/a.csv"],
      "assertions": ["The sum is 6"]
    }
  ]
}
"""
CASE = '"id": 1, "prompt": "p"'
QUERY = '{"query": "a", "should_trigger": true}'


def codes_and_lines(text: str | bytes) -> list[tuple[str, int | None]]:
    data = text if isinstance(text, bytes) else text.encode()
    return [(f.code.value, f.line) for f in parse_eval_file(data, "csv").findings]


def case(fields: str) -> str:
    return '{"evals": [\n{' + fields + "}\n]}"


def test_documented_file_is_read_without_findings() -> None:
    parsed = parse_eval_file(DOCUMENTED.encode(), "csv")

    assert parsed.findings == ()
    (one,) = parsed.cases
    assert (one.id, one.prompt, one.expected_output) == ("1", "Sum the column.", "A sum.")
    assert [(file.path, file.line) for file in one.files] == [("evals/files/a.csv", 8)]
    assert one.assertions == (EvalAssertion("The sum is 6"),)


def test_expectations_of_newer_guides_are_assertions() -> None:
    parsed = parse_eval_file(case(CASE + ', "expectations": ["x"]').encode(), "csv")

    assert parsed.findings == ()
    assert parsed.cases[0].assertions == (EvalAssertion("x"),)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("[\n{" + CASE + "}]", "eval-variant", 1),
        ('{\n"cases": [{' + CASE + "}]}", "eval-variant", 2),
        ('{\n"tests": [{' + CASE + "}]}", "eval-variant", 2),
        (case('"prompt": "p"'), "eval-variant", 2),
        (case('"id": 1,\n"prompt": "TODO: a task"'), "eval-todo", 3),
        (case('"id": 1, "query": "p"'), "eval-variant", 2),
        (case('"id": 1,\n"input": "p"'), "eval-variant", 3),
        (case(CASE + ',\n"expected": "e"'), "eval-variant", 3),
        (case(CASE + ',\n"assertions": [{"text": "a"}]'), "eval-variant", 3),
        (case(CASE + ',\n"assertions": [{"type": "llm", "check": "a"}]'), "eval-variant", 3),
        (case(CASE + ',\n"assertions": [\n{"name": "a"}]'), "eval-variant", 4),
        (case(CASE + ',\n"tags": []'), "eval-unknown-key", 3),
        ('{"evals": [{' + CASE + '}],\n"version": 1}', "eval-unknown-key", 2),
        ('{\n"skill_name": "other", "evals": [{' + CASE + "}]}", "eval-skill-name", 2),
        ('{\n"skill_name": null, "evals": [{' + CASE + "}]}", "eval-skill-name", 2),
        (case(CASE + ',\n"query": "q"'), "eval-variant", 3),
        (case(CASE + ', "expected_output": "e",\n"expected": "f"'), "eval-variant", 3),
        (case(CASE + ', "assertions": ["a"],\n"expectations": ["b"]'), "eval-variant", 3),
        ('{"evals": [{' + CASE + '}],\n"cases": []}', "eval-variant", 2),
        ("", "eval-json", 1),
        ("\n{", "eval-json", 2),
        ("// comment\n{}", "eval-json", 1),
        ('{"evals": [\n{' + CASE + "},\n]}", "eval-json", 3),
        ('{"evals": [\n{' + CASE + ",}]}", "eval-json", 2),
        ("{'evals': []}", "eval-json", 1),
        ('{"evals": NaN}', "eval-json", 1),
        ("[" * 100_000, "eval-json", 1),
        ('{"evals": ' + "1" * 5000 + "}", "eval-json", 1),
        (b'\xef\xbb\xbf{"evals": [{"id": 1, "prompt": "p"}]}', "eval-json", 1),
        (b'{\n"evals": "\xff"}', "eval-json", 2),
        (DOCUMENTED.encode("utf-16"), "eval-json", 1),
        (case(CASE + ',\n"prompt": "q"'), "eval-json", 3),
        ('{"evals": [],\n"evals": [{' + CASE + "}]}", "eval-json", 2),
        (b" " * (MAX_EVAL_FILE_BYTES + 1), "eval-unreadable", 1),
        ("null", "eval-form", 1),
        ("1", "eval-form", 1),
        ('"evals"', "eval-form", 1),
        ("{}", "eval-form", 1),
        ('{\n"evals": {}}', "eval-form", 2),
        ('{\n"evals": []}', "eval-form", 2),
        ('{"evals": [\n"text"]}', "eval-form", 2),
        ('{"evals": [\nnull]}', "eval-form", 2),
        (case('"id": 1'), "eval-form", 2),
        (case('"id": 1, "prompt": " "'), "eval-form", 2),
        (case('"id": 1, "prompt": ["p"]'), "eval-form", 2),
        (case('"id": 1, "prompt": "\\ud800"'), "eval-form", 2),
        (case('"id": true, "prompt": "p"'), "eval-form", 2),
        (case('"id": 1.5, "prompt": "p"'), "eval-form", 2),
        (case('"id": "", "prompt": "p"'), "eval-form", 2),
        (case(CASE + ',\n"expected_output": {}'), "eval-form", 3),
        (case(CASE + ',\n"files": "a.csv"'), "eval-form", 3),
        (case(CASE + ',\n"files": [\n1]'), "eval-form", 4),
        (case(CASE + ',\n"assertions": "a"'), "eval-form", 3),
        (case(CASE + ',\n"assertions": [\n""]'), "eval-form", 4),
        (case(CASE + ',\n"assertions": [{"type": "llm"}]'), "eval-form", 3),
        ('{"evals": [{' + CASE + "},\n{" + CASE + "}]}", "eval-id", 2),
        ('{"evals": [{' + CASE + '},\n{"id": "1", "prompt": "q"}]}', "eval-id", 2),
    ],
)
def test_deviation_is_reported_with_its_line(text: str | bytes, code: str, line: int) -> None:
    assert (code, line) in codes_and_lines(text)


def test_invalid_json_names_the_column() -> None:
    (finding,) = parse_eval_file(b'{"evals" []}', "csv").findings

    assert finding.message == "not valid JSON: expecting ':' delimiter (column 10)"


def test_members_of_a_duplicate_key_are_not_duplicates() -> None:
    text = '{"evals": [{' + CASE + '}],\n"evals": [{' + CASE + "}]}"

    assert codes_and_lines(text) == [("eval-json", 2)]


def test_file_with_too_many_cases_is_read_up_to_the_limit() -> None:
    cases = [{"id": number, "prompt": "p"} for number in range(MAX_ENTRIES + 1)]
    parsed = parse_eval_file(json.dumps({"evals": cases}).encode(), "csv")

    assert len(parsed.cases) == MAX_ENTRIES
    assert [finding.code.value for finding in parsed.findings] == ["eval-form"]


@pytest.mark.parametrize(("entry", "last"), [(1, "eval-form"), ({"prompt": "p"}, "eval-variant")])
def test_long_list_of_findings_ends_with_their_number(entry: object, last: str) -> None:
    found = parse_eval_file(json.dumps({"evals": [entry] * 300}).encode(), "csv").findings

    assert len(found) == MAX_FINDINGS + 1
    assert found[-1].message == "200 more findings are not shown"
    assert found[-1].code.value == last


def test_key_that_is_ignored_and_an_empty_id_are_named() -> None:
    text = case('"id": "", "prompt": "p", "input": "q"')

    assert [finding.message for finding in parse_eval_file(text.encode(), "csv").findings] == [
        "'id' is empty",
        "'input' is ignored, because there is 'prompt'",
    ]


def test_query_with_two_answers_is_in_the_result_once() -> None:
    data = f"[{QUERY}, {QUERY.replace('true', 'false')}]".encode()
    parsed = parse_trigger_file(data, "csv")

    assert parsed.queries == (TriggerQuery("a", should_trigger=True),)
    assert parsed.findings[0].message == "the query on line 1 has another 'should_trigger'"


def test_trigger_list_is_read_without_findings() -> None:
    data = b'[{"query": "a", "should_trigger": true}, {"query": "b", "should_trigger": false}]'
    parsed = parse_trigger_file(data, "csv")

    assert parsed.findings == ()
    assert [(one.query, one.should_trigger) for one in parsed.queries] == [
        ("a", True),
        ("b", False),
    ]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('{\n"evals": [{"query": "a", "should_trigger": true}]}', "eval-variant", 2),
        ('{\n"queries": [{"query": "a", "should_trigger": true}]}', "eval-variant", 2),
        ('[\n{"prompt": "a", "should_trigger": true}]', "eval-variant", 2),
        ('[\n{"query": "a", "should_trigger": true, "why": ""}]', "eval-unknown-key", 2),
        ('[\n{"query": "a"}]', "eval-form", 2),
        ('[\n{"query": "a",\n"should_trigger": "yes"}]', "eval-form", 3),
        ('[\n{"should_trigger": true}]', "eval-form", 2),
        (f"[{QUERY},\n{QUERY}]", "eval-variant", 2),
        (f"[{QUERY},\n{QUERY.replace('true', 'false')}]", "eval-form", 2),
        ('{"should_trigger": ["a"]}', "eval-form", 1),
        ("[]", "eval-form", 1),
        ("[\n1]", "eval-form", 2),
        ("[\n}", "eval-json", 2),
    ],
)
def test_deviation_of_a_trigger_file_has_its_line(text: str, code: str, line: int) -> None:
    findings = parse_trigger_file(text.encode(), "csv").findings

    assert (code, line) in [(finding.code.value, finding.line) for finding in findings]
