"""Arguments: what a prompt declares, and how values get into its body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.prompts.arguments import check_arguments, parse_arguments, render_arguments
from skillhall._internal.prompts.prompt_model import PromptArgument
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.yaml.values import YamlValue
from skillhall.errors import InvalidArguments, MissingArguments


def declared(text: str) -> tuple[tuple[PromptArgument, ...], list[Code]]:
    source = f"---\nname: a\ndescription: b\narguments: {text}\n---\nbody\n"
    found, findings = parse_arguments(parse_skill(source.encode()).frontmatter.fields)
    return found, [finding.code for finding in findings]


def test_arguments_are_a_list_of_maps() -> None:
    text = "\n  - name: file\n    description: Which one\n    required: true\n  - name: tone\n"
    assert declared(text) == (
        (PromptArgument("file", "Which one", required=True), PromptArgument("tone")),
        [],
    )


def test_a_name_alone_declares_an_argument() -> None:
    assert declared("[file, tone]")[0] == (PromptArgument("file"), PromptArgument("tone"))


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
def test_other_shapes_are_ignored_and_reported(text: str) -> None:
    assert declared(text) == ((), [Code.ARGUMENTS_FORM])


def test_an_empty_field_declares_nothing_and_is_no_finding() -> None:
    assert declared("") == ((), [])


def test_of_two_arguments_with_one_name_the_first_counts() -> None:
    found, codes = declared("[{name: a, description: first}, {name: a, description: second}]")
    assert found == (PromptArgument("a", "first"),)
    assert codes == [Code.ARGUMENTS_FORM]


words = st.sampled_from(["", " ", "name", "description", "required", "{{", "a"])
values = st.recursive(
    st.none() | st.booleans() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_no_shape_of_arguments_raises(value: YamlValue) -> None:
    found, findings = parse_arguments({"arguments": value})
    assert all(argument.name for argument in found)
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
def test_each_placeholder_becomes_its_value_literally_and_once(body: str, text: str) -> None:
    given = {"a": "1", "b": "{{a}}", "c": "$& \\1 \\g<0>"}
    assert render_arguments(body, given) == text


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_a_body_without_braces_stays_as_it_is(body: str, given: dict[str, str]) -> None:
    plain = body.replace("{", "")
    assert render_arguments(plain, given) == plain


def test_missing_and_empty_arguments_are_named_in_the_order_of_their_declaration() -> None:
    needed = [
        PromptArgument("b", required=True),
        PromptArgument("a", required=True),
        PromptArgument("c"),
    ]
    with pytest.raises(MissingArguments, match=r"^Missing required arguments: b, a$"):
        check_arguments(needed, {"a": "", "c": "x"})


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "5"), (0, "0"), (-1.5, "-1.5"), (True, "true"), (False, "false"), (10**20, f"{10**20}")],
)
def test_numbers_and_booleans_are_substituted_as_their_json_text(value: object, text: str) -> None:
    assert check_arguments([PromptArgument("a", required=True)], {"a": value}) == {"a": text}


def test_null_counts_as_not_given() -> None:
    assert check_arguments([PromptArgument("a")], {"a": None, "b": "x"}) == {"b": "x"}
    with pytest.raises(MissingArguments, match=r"^Missing required arguments: a$"):
        check_arguments([PromptArgument("a", required=True)], {"a": None})


@pytest.mark.parametrize("value", [[], ["x"], {}, {"x": 1}, float("inf"), float("nan")])
def test_a_value_that_is_no_text_number_or_boolean_is_refused(value: object) -> None:
    with pytest.raises(InvalidArguments, match=r"must be text, numbers or booleans: a$"):
        check_arguments([PromptArgument("a", required=True)], {"a": value, "b": "x"})
