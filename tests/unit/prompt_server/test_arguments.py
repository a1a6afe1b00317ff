"""Arguments of prompts: declaration, validation and rendering."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.prompt_server.arguments import (
    check_arguments,
    parse_arguments,
    render_arguments,
)
from skillhall._internal.prompt_server.prompt_model import PromptArgument
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.yaml.values import YamlValue
from skillhall.errors import InvalidArguments, MissingArguments


def declare(text: str) -> tuple[tuple[PromptArgument, ...], list[Code]]:
    source = f"---\nname: a\ndescription: b\narguments: {text}\n---\nbody\n"
    arguments, findings = parse_arguments(parse_skill(source.encode()).frontmatter.fields)
    return arguments, [finding.code for finding in findings]


def test_arguments_are_parsed_from_a_list_of_maps() -> None:
    text = "\n  - name: file\n    description: Which one\n    required: true\n  - name: tone\n"
    assert declare(text) == (
        (PromptArgument("file", "Which one", required=True), PromptArgument("tone")),
        [],
    )


def test_argument_can_be_declared_by_name_only() -> None:
    assert declare("[file, tone]")[0] == (PromptArgument("file"), PromptArgument("tone"))


@pytest.mark.parametrize(
    "text",
    [
        "file",
        "{a: b}",
        "true",
        "[{description: x}]",
        "[[a]]",
        "[{name: [a]}]",
        "[{name: ''}]",
        "[~]",
    ],
)
def test_invalid_declaration_is_ignored_and_reported(text: str) -> None:
    assert declare(text) == ((), [Code.ARGUMENTS_FORM])


def test_empty_declaration_is_not_reported() -> None:
    assert declare("") == ((), [])


def test_first_of_two_equal_argument_names_is_used() -> None:
    arguments, codes = declare("[{name: a, description: first}, {name: a, description: second}]")
    assert arguments == (PromptArgument("a", "first"),)
    assert codes == [Code.ARGUMENTS_FORM]


words = st.sampled_from(["", " ", "name", "description", "required", "{{", "a"])
values = st.recursive(
    st.none() | st.booleans() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_parsing_arguments_never_raises(value: YamlValue) -> None:
    arguments, findings = parse_arguments({"arguments": value})
    assert all(argument.name for argument in arguments)
    assert all(finding.code is Code.ARGUMENTS_FORM for finding in findings)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("{{a}} and {{a}}", "1 and 1"),
        ("{{a}}{{b}}", "1{{a}}"),
        ("{{c}}", "$& \\1 \\g<0>"),
        ("{{missing}} {{ a }} {a} {{}} {{a", "{{missing}} {{ a }} {a} {{}} {{a"),
        ("{{{a}}}", "{1}"),
        ("{{d.*}}", "{{d.*}}"),
    ],
)
def test_placeholders_are_replaced_literally_and_once(body: str, text: str) -> None:
    values = {"a": "1", "b": "{{a}}", "c": "$& \\1 \\g<0>"}
    assert render_arguments(body, values) == text


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_body_without_braces_is_unchanged(body: str, values: dict[str, str]) -> None:
    plain = body.replace("{", "")
    assert render_arguments(plain, values) == plain


def test_missing_arguments_are_listed_in_declaration_order() -> None:
    arguments = [
        PromptArgument("b", required=True),
        PromptArgument("a", required=True),
        PromptArgument("c"),
    ]
    with pytest.raises(MissingArguments, match=r"^Missing required arguments: b, a$"):
        check_arguments(arguments, {"a": "", "c": "x"})


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "5"), (0, "0"), (-1.5, "-1.5"), (True, "true"), (False, "false"), (10**20, f"{10**20}")],
)
def test_numbers_and_booleans_are_rendered_as_json(value: object, text: str) -> None:
    assert check_arguments([PromptArgument("a", required=True)], {"a": value}) == {"a": text}


def test_null_counts_as_missing() -> None:
    assert check_arguments([PromptArgument("a")], {"a": None, "b": "x"}) == {"b": "x"}
    with pytest.raises(MissingArguments, match=r"^Missing required arguments: a$"):
        check_arguments([PromptArgument("a", required=True)], {"a": None})


@pytest.mark.parametrize("value", [[], ["x"], {}, {"x": 1}, float("inf"), float("nan")])
def test_value_that_is_not_a_scalar_is_rejected(value: object) -> None:
    with pytest.raises(InvalidArguments, match=r"must be text, numbers or booleans: a$"):
        check_arguments([PromptArgument("a", required=True)], {"a": value, "b": "x"})
