import pytest

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER, Frontmatter, KeyCase
from skillhall._internal.skill.yaml.values import YamlValue


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("Read Write", ("Read", "Write")),
        ("Bash(git add *) Read", ("Bash(git add *)", "Read")),
        ("Read, Write,Grep", ("Read", "Write", "Grep")),
        ("Bash(a, b),Read", ("Bash(a, b)", "Read")),
        ("  Read\n\tWrite ", ("Read", "Write")),
        (["Read", "Bash(git add *)"], ("Read", "Bash(git add *)")),
        (["Read, Write", ["Grep"]], ("Read", "Write", "Grep")),
        ("mcp__server__tool", ("mcp__server__tool",)),
        ("Bash(open", ("Bash(open",)),
        ("Bash) Read", ("Bash)", "Read")),
        ("", ()),
        (None, ()),
        (True, ()),
        ({"a": "b"}, ()),
    ],
)
def test_allowed_tools_are_split_outside_parentheses(
    tools: YamlValue, expected: tuple[str, ...]
) -> None:
    assert Frontmatter.from_fields({"allowed-tools": tools}).allowed_tools == expected


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        (True, True),
        ("true", True),
        (" True ", True),
        (False, False),
        ("false", False),
        ("yes", False),
        (None, False),
        (["true"], False),
    ],
)
def test_skill_is_hidden_only_if_the_field_is_true(value: YamlValue, hidden: bool) -> None:
    assert Frontmatter.from_fields({"disable-model-invocation": value}).hidden is hidden


def test_name_is_stripped_and_description_right_stripped() -> None:
    front = Frontmatter.from_fields({"name": " a ", "description": " b \n"})
    assert (front.name, front.description) == ("a", " b")


@pytest.mark.parametrize("value", [None, True, ["a"], {"a": "b"}])
def test_value_that_is_not_text_is_empty(value: YamlValue) -> None:
    front = Frontmatter.from_fields({"name": value, "description": value, "license": value})
    assert (front.name, front.description, front.license) == ("", "", None)


def test_optional_text_fields_are_right_stripped() -> None:
    front = Frontmatter.from_fields({"license": "MIT\n", "compatibility": "git "})
    assert (front.license, front.compatibility) == ("MIT", "git")


def test_metadata_contains_only_text_entries() -> None:
    front = Frontmatter.from_fields({"metadata": {"a": "b", "c": ["d"], "e": None}})
    assert front.metadata == {"a": "b"}
    assert Frontmatter.from_fields({"metadata": "a"}).metadata == {}
    assert EMPTY_FRONTMATTER.metadata == {}


def test_miscased_keys_count_only_with_any_key_case() -> None:
    fields: dict[str, YamlValue] = {"Name": "a", "DESCRIPTION": "b", "Own": "c"}
    assert Frontmatter.from_fields(fields).name == ""
    front = Frontmatter.from_fields(fields, KeyCase.ANY)
    assert (front.name, front.description) == ("a", "b")
    assert front.fields == {**fields, "name": "a", "description": "b"}


def test_exact_key_wins_over_miscased_key() -> None:
    front = Frontmatter.from_fields({"NAME": "a", "name": "b"}, KeyCase.ANY)
    assert front.name == "b"


def test_located_finding_preserves_all_fields() -> None:
    finding = Finding(Code.BOM, "message", 3, "hint").with_location("/a/SKILL.md", "a")
    assert finding == Finding(Code.BOM, "message", 3, "hint", "/a/SKILL.md", "a")
