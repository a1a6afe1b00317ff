"""Assertions with a check: what is read, and what is reported."""

import json

import pytest

from skillhall._internal.skill.evals.eval_assertion import CheckKind, EvalAssertion, EvalCheck
from skillhall._internal.skill.evals.eval_file import EvalFile, parse_eval_file


def parse(*assertions: object) -> EvalFile:
    case = {"id": 1, "prompt": "p", "assertions": assertions}
    return parse_eval_file(json.dumps({"evals": [case]}).encode(), "csv")


def messages(parsed: EvalFile) -> list[tuple[str, str]]:
    """The findings, without the one about the object itself."""
    return [
        (finding.code.value, finding.message)
        for finding in parsed.findings
        if finding.message != "an assertion is an object instead of text"
    ]


@pytest.mark.parametrize(
    ("fields", "check", "text"),
    [
        (
            {"type": "contains", "value": "July"},
            EvalCheck(kind=CheckKind.CONTAINS, value="July"),
            "the reply contains 'July'",
        ),
        (
            {"type": "not-regex", "value": "err(or)?", "path": "log.txt"},
            EvalCheck(kind=CheckKind.NOT_REGEX, value="err(or)?", path="log.txt"),
            "log.txt does not match 'err(or)?'",
        ),
        (
            {"type": "json-schema", "value": {"type": "object"}},
            EvalCheck(kind=CheckKind.JSON_SCHEMA, schema={"type": "object"}),
            "the reply matches the JSON Schema",
        ),
        (
            {"type": "file-exists", "path": "charts/*.png"},
            EvalCheck(kind=CheckKind.FILE_EXISTS, path="charts/*.png"),
            "there is an output file charts/*.png",
        ),
        (
            {"type": "row-count", "path": "a.csv", "value": 3},
            EvalCheck(kind=CheckKind.ROW_COUNT, path="a.csv", min_rows=3, max_rows=3),
            "a.csv has 3 rows",
        ),
        (
            {"type": "row-count", "path": "a.csv", "min": 3},
            EvalCheck(kind=CheckKind.ROW_COUNT, path="a.csv", min_rows=3),
            "a.csv has at least 3 rows",
        ),
        (
            {"type": "row-count", "path": "a.csv", "min": 1, "max": 3},
            EvalCheck(kind=CheckKind.ROW_COUNT, path="a.csv", min_rows=1, max_rows=3),
            "a.csv has 1 to 3 rows",
        ),
        (
            {"type": "script", "value": "evals/checks/sum.py"},
            EvalCheck(kind=CheckKind.SCRIPT, value="evals/checks/sum.py"),
            "evals/checks/sum.py succeeds",
        ),
    ],
)
def test_check_needs_no_text(fields: dict[str, object], check: EvalCheck, text: str) -> None:
    parsed = parse(fields)

    assert parsed.cases[0].assertions == (EvalAssertion(text, check),)
    assert messages(parsed) == []


def test_text_of_a_check_is_used() -> None:
    (assertion,) = (
        parse({"text": "names July", "type": "equals", "value": "July"}).cases[0].assertions
    )

    assert assertion.text == "names July"


@pytest.mark.parametrize("kind", ["llm", "llm-rubric", "Judge"])
def test_types_of_other_tools_are_left_to_the_judge(kind: str) -> None:
    parsed = parse({"text": "is polite", "type": kind})

    assert parsed.cases[0].assertions == (EvalAssertion("is polite"),)
    assert messages(parsed) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "sentiment"}, "unknown type 'sentiment'"),
        ({"type": 3}, "unknown type '3'"),
        ({"type": "contains"}, "contains needs text as its 'value'"),
        ({"type": "contains", "value": 3}, "contains needs text as its 'value'"),
        ({"type": "regex", "value": "("}, "not a regular expression: missing ), unterminated"),
        ({"type": "regex", "value": "x" * 1001}, "the pattern is longer than 1000 characters"),
        ({"type": "json-schema", "value": []}, "'value' must be a JSON Schema"),
        ({"type": "file-exists"}, "file-exists needs the 'path' of an output file"),
        ({"type": "file-exists", "path": "../x"}, "the path '../x' cannot be used"),
        ({"type": "equals", "value": "x", "path": 1}, "'path' must be text"),
        ({"type": "row-count", "path": "a"}, "row-count needs a number as its 'value'"),
        ({"type": "row-count", "path": "a", "min": "3"}, "'min' must be a number of rows"),
        ({"type": "row-count", "path": "a", "max": True}, "'max' must be a number of rows"),
        ({"type": "script", "value": "/bin/sh"}, "the script '/bin/sh' cannot be used"),
    ],
)
def test_unusable_check_is_a_problem_unless_there_is_a_text(
    fields: dict[str, object], message: str
) -> None:
    (problem, *_) = messages(without := parse(fields))
    (warning, *_) = messages(with_text := parse({**fields, "text": "t"}))

    assert (problem[0], warning[0]) == ("eval-form", "eval-variant")
    assert problem[1].startswith(message)
    assert warning[1].endswith("; a model judges the text")
    assert without.cases[0].assertions == ()
    assert with_text.cases[0].assertions == (EvalAssertion("t"),)


def test_key_of_another_type_is_unknown() -> None:
    parsed = parse({"type": "file-exists", "path": "a", "min": 3})

    assert messages(parsed) == [("eval-unknown-key", "unknown key 'min'")]
