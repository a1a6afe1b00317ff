from collections.abc import Iterator

import pytest
import yaml

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml import full_reader as careful_yaml
from skillhall._internal.skill.yaml.full_reader import (
    MAX_DEPTH,
    MAX_NODES,
    YamlReadError,
    find_control_character,
    locate_fields,
    read_full_yaml,
)
from skillhall._internal.skill.yaml.values import Fields, YamlValue


def refusal_of(block: str) -> YamlReadError:
    with pytest.raises(YamlReadError) as caught:
        read_full_yaml(block)
    return caught.value


def fields_of(block: str) -> Fields:
    return read_full_yaml(block).fields


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("", {}),
        ("# only a comment\n", {}),
        ("a: b # comment\n", {"a": "b"}),
        ("a: >\n  b\n  c\n\n  d\n", {"a": "b c\nd\n"}),
        ("a: |+\n  b\n\nc: d\n", {"a": "b\n\n", "c": "d"}),
        ("a: 'b\n  c'\n", {"a": "b c"}),
        ('a: "b\\tc\\u00e9"\n', {"a": "b\tcé"}),
        ("a: [b, {c: d}]\n", {"a": ["b", {"c": "d"}]}),
        ("a:\n- b: c\n  d: e\n", {"a": [{"b": "c", "d": "e"}]}),
        ("? a\n: b\n", {"a": "b"}),
        ("a: b\n...\n", {"a": "b"}),
        ("<<: {a: b}\n", {"<<": {"a": "b"}}),
        ("=: b\n", {"=": "b"}),
    ],
)
def test_yaml_is_read_as_text_lists_and_maps(block: str, fields: Fields) -> None:
    assert fields_of(block) == fields


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("yes", "yes"),
        ("on", "on"),
        ("y", "y"),
        ("0123", "0123"),
        ("0o17", "0o17"),
        ("1e3", "1e3"),
        ("1.10", "1.10"),
        (".nan", ".nan"),
        ("2024-13-45", "2024-13-45"),
        ("12:30:45", "12:30:45"),
        ("9" * 5000, "9" * 5000),
        ("'true'", "true"),
        ("'null'", "null"),
    ],
)
def test_only_truth_and_null_are_more_than_text(text: str, value: YamlValue) -> None:
    assert fields_of(f"a: {text}\n") == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        "0123",
        "42",
        "-1",
        "+1",
        "1_000",
        "0x1F",
        "0b1",
        "0o17",
        "1.5",
        ".5",
        "1.",
        "1e3",
        "1.5e-3",
        ".inf",
        "-.INF",
        ".nan",
        "yes",
        "No",
        "on",
        "OFF",
        "true",
        "2024-01-01",
        "2024-1-1T10:00:00Z",
        "12:30:45",
        "1:2.5",
    ],
)
@pytest.mark.parametrize("block", ["name: {}\n", "metadata:\n  name: {}\n"])
def test_a_typed_scalar_in_a_text_field_stays_as_written_with_a_finding(
    block: str, text: str
) -> None:
    reading = read_full_yaml(block.format(text))
    value = reading.fields.get("name", reading.fields.get("metadata"))
    assert value in (text, {"name": text})
    assert [found.code for found in reading.findings] == [Code.NOT_TEXT]
    assert reading.findings[0].hint == f"quote it: name: {text!r}"


@pytest.mark.parametrize("text", ["1.10.2", "v1", "1 file", "yesterday", "2024", "'42'"])
def test_text_that_only_resembles_a_typed_scalar_is_text(text: str) -> None:
    codes = [found.code for found in read_full_yaml(f"name: {text}\n").findings]
    assert codes == ([Code.NOT_TEXT] if text == "2024" else [])


@pytest.mark.parametrize("null", ["~", "null", "Null", "NULL", ""])
def test_null_in_a_text_field_is_nothing(null: str) -> None:
    reading = read_full_yaml(f"name: {null}\n")
    assert reading.fields == {"name": None}
    assert reading.findings == []


@pytest.mark.parametrize(
    ("block", "value"),
    [("name: [a]\n", ["a"]), ("metadata: [a]\n", ["a"]), ("metadata:\n  a: [1]\n", {"a": ["1"]})],
)
def test_a_list_in_place_of_text_is_kept(block: str, value: YamlValue) -> None:
    assert next(iter(fields_of(block).values())) == value


def test_a_duplicate_key_is_found_and_the_last_value_wins() -> None:
    reading = read_full_yaml("a: 1\nb: 2\na: 3\n")
    assert reading.fields == {"b": "2", "a": "3"}
    assert reading.findings == [
        Finding(
            Code.DUPLICATE_KEY,
            "'a' stands more than once; the last value wins",
            3,
            "remove one of them",
        )
    ]


def test_a_duplicate_key_is_found_in_nested_maps_too() -> None:
    reading = read_full_yaml("x:\n  a: 1\n  a: 2\n")
    assert [(found.code, found.line) for found in reading.findings] == [(Code.DUPLICATE_KEY, 3)]


def test_a_nested_name_never_becomes_the_name() -> None:
    fields = fields_of("name: outer\nmetadata:\n  name: inner\n")
    assert fields == {"name": "outer", "metadata": {"name": "inner"}}


def test_flow_style_is_found_once_at_its_first_line() -> None:
    reading = read_full_yaml("a: b\nc: [d]\ne: {f: g}\n")
    assert [(found.code, found.line) for found in reading.findings] == [(Code.YAML_FLOW, 2)]


ALIAS_BOMB = "a0: &a0 x\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (ALIAS_BOMB, Code.YAML_ALIAS),
        ("a: &a [*a]\n", Code.YAML_ALIAS),
        ("&a x: *a\n", Code.YAML_ALIAS),
        ("a: &a b\nc: *a\n", Code.YAML_ALIAS),
        ("a: !!python/object/apply:os.system [x]\n", Code.YAML_TAG),
        ("a: !!binary aGk=\n", Code.YAML_TAG),
        ("a: !!int 3\n", Code.YAML_TAG),
        ("!own a: b\n", Code.YAML_TAG),
        ("!own\na: b\n", Code.YAML_TAG),
        ("a: " + "[" * 20_000 + "\n", Code.YAML_DEPTH),
        ("a: " + "{b: " * 20_000 + "\n", Code.YAML_DEPTH),
        ("a:\n " + "- " * 20_000 + "x\n", Code.YAML_DEPTH),
        ("? " * 20_000 + "x\n", Code.YAML_DEPTH),
        ("".join(" " * n + "a:\n" for n in range(300)), Code.YAML_DEPTH),
        ("a:\n" + "".join(" " * n + "-\n" for n in range(300)), Code.YAML_DEPTH),
        ("a:\n" + "- b\n" * 20_000, Code.YAML_NODES),
        ("".join(f"a{n}: b\n" for n in range(5_000)), Code.YAML_NODES),
        ("- a\n", Code.YAML_NOT_A_MAP),
        ("only text\n", Code.YAML_NOT_A_MAP),
        ("[a, b]\n", Code.YAML_NOT_A_MAP),
        ("? [a]\n: b\n", Code.YAML_INVALID),
        ("a:\n  ? {b: c}\n  : d\n", Code.YAML_INVALID),
    ],
)
def test_hostile_yaml_is_refused_for_good_within_a_second(block: str, code: Code) -> None:
    refusal = refusal_of(block)
    assert refusal.finding.code is code
    assert not refusal.is_repairable


@pytest.mark.parametrize("depth", [MAX_DEPTH - 2, MAX_DEPTH - 1])
def test_nesting_is_read_up_to_its_bound(depth: int) -> None:
    block = "a: " + "[" * depth + "]" * depth + "\n"
    assert fields_of(block)["a"] is not None
    refusal_of("a: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "\n")


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert fields_of("a: [" + "[b], " * 30 + "]\n") == {"a": [["b"]] * 30}
    assert fields_of("a: 'x [[[[[[[[[[[[[[[[[[[[[[[[[[['\n") == {"a": "x " + "[" * 27}


def test_values_are_read_up_to_their_bound() -> None:
    most = MAX_NODES - 3  # the root, the key and the list
    assert fields_of("a:\n" + "- b\n" * most) == {"a": ["b"] * most}
    assert refusal_of("a:\n" + "- b\n" * (most + 1)).finding.code is Code.YAML_NODES


@pytest.mark.parametrize(
    "block",
    [
        "a: b: c\n",
        "a: 'b\n",
        "a: [b\n",
        "a: @b\n",
        "a: b\n\tc: d\n",
        "a: *b\n",
        "a: b\n---\nc: d\n",
        "%FOO\n--- a\n--- b\n",
        'a: "\\ud800"\n',
        'a: "\\xZZ"\n',
        "k" * 2000 + ": b\n",
        "a: " + "[" * 30 + "'\n",
    ],
)
def test_broken_syntax_is_refused_but_may_be_repaired(block: str) -> None:
    refusal = refusal_of(block)
    assert refusal.is_repairable
    assert refusal.finding.code is Code.YAML_INVALID
    assert refusal.finding.message.startswith("the frontmatter is not valid YAML: ")


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
def test_an_odd_line_break_is_refused_where_it_stands(character: str) -> None:
    refusal = refusal_of(f"name: good\ndescription: x{character}name: forged\n")
    assert (refusal.finding.code, refusal.finding.line) == (Code.ODD_LINE_BREAK, 2)
    assert not refusal.is_repairable


@pytest.mark.parametrize(
    "character", ["\x00", "\x07", "\x0b", "\x1b", "\x7f", "\x9b", "\ud800", "\ufffe", "\uffff"]
)
def test_a_control_character_is_refused_where_it_stands(character: str) -> None:
    refusal = refusal_of(f"name: good\n\ndescription: x{character}y\n")
    assert (refusal.finding.code, refusal.finding.line) == (Code.CONTROL_CHARACTER, 3)
    assert not refusal.is_repairable


@pytest.mark.parametrize("text", ["a\u00a0b", "a\u200bb", "😀", "a\U000e0001", "x\ty"])
def test_other_characters_are_text(text: str) -> None:
    assert fields_of(f"a: {text}\n") == {"a": text}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a\x1bb", "\x1b"),
        (["a", {"b": "\x07"}], "\x07"),
        ({"\x00": "a"}, "\x00"),
        ("plain\n\ttext", None),
        (["a"], None),
        (True, None),
        (None, None),
    ],
)
def test_a_control_character_is_found_anywhere_in_a_value(
    value: YamlValue, found: str | None
) -> None:
    assert find_control_character(value) == found


def test_fields_are_located_by_character() -> None:
    block = "é: 😀\nname: pdf # x\nlist:\n- a\n"
    spans = {key: block[start:end] for key, (start, _, end) in locate_fields(block).items()}
    assert spans == {"é": "é: 😀", "name": "name: pdf", "list": "list:\n- a"}


def test_nothing_is_located_in_an_empty_block() -> None:
    assert locate_fields("# nothing\n") == {}


def test_fields_are_not_located_where_they_are_refused() -> None:
    with pytest.raises(YamlReadError):
        locate_fields("a: &a [*a]\n")


@pytest.fixture
def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PyYAML as it is where its C library was not built."""
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    careful_yaml._build_loader_class.cache_clear()  # noqa: SLF001 - a process never changes its mind
    yield
    careful_yaml._build_loader_class.cache_clear()  # noqa: SLF001


@pytest.mark.usefixtures("without_libyaml")
@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("a: b # c\n", {"a": "b"}),
        ("a: >\n  b\n  c\n", {"a": "b c\n"}),
        ("name: 0123\nb: [c, true, ~]\n", {"name": "0123", "b": ["c", True, None]}),
        ("", {}),
    ],
)
def test_yaml_is_read_without_the_c_library_too(block: str, fields: Fields) -> None:
    assert fields_of(block) == fields


@pytest.mark.usefixtures("without_libyaml")
@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("a: &a [*a]\n", Code.YAML_ALIAS),
        ("a: !t b\n", Code.YAML_TAG),
        ("a: " + "[" * 20_000 + "\n", Code.YAML_DEPTH),
        ("a:\n " + "- " * 20_000 + "x\n", Code.YAML_DEPTH),
        ("a: b: c\n", Code.YAML_INVALID),
        ('a: "\\U00110000"\n', Code.YAML_INVALID),
    ],
)
def test_hostile_yaml_is_refused_without_the_c_library_too(block: str, code: Code) -> None:
    assert refusal_of(block).finding.code is code
