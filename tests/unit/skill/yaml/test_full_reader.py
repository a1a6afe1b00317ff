import pytest

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml import node_composer
from skillhall._internal.skill.yaml.full_reader import (
    find_control_character,
    locate_fields,
    read_full_yaml,
)
from skillhall._internal.skill.yaml.values import Fields, YamlValue
from skillhall._internal.skill.yaml.yaml_findings import MAX_DEPTH, MAX_NODES, YamlReadError


def read_error(block: str) -> YamlReadError:
    with pytest.raises(YamlReadError) as caught:
        read_full_yaml(block)
    return caught.value


def read_block(block: str) -> Fields:
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
    assert read_block(block) == fields


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
def test_only_booleans_and_null_are_not_text(text: str, value: YamlValue) -> None:
    assert read_block(f"a: {text}\n") == {"a": value}


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
def test_typed_scalar_in_text_field_is_text_with_finding(block: str, text: str) -> None:
    result = read_full_yaml(block.format(text))
    value = result.fields.get("name", result.fields.get("metadata"))
    assert value in (text, {"name": text})
    assert [finding.code for finding in result.findings] == [Code.NOT_TEXT]
    assert result.findings[0].hint == f"quote it: name: {text!r}"


@pytest.mark.parametrize("text", ["1.10.2", "v1", "1 file", "yesterday", "2024", "'42'"])
def test_text_similar_to_typed_scalar_has_no_finding(text: str) -> None:
    codes = [finding.code for finding in read_full_yaml(f"name: {text}\n").findings]
    assert codes == ([Code.NOT_TEXT] if text == "2024" else [])


@pytest.mark.parametrize("null", ["~", "null", "Null", "NULL", ""])
def test_null_in_text_field_is_none(null: str) -> None:
    result = read_full_yaml(f"name: {null}\n")
    assert result.fields == {"name": None}
    assert result.findings == []


@pytest.mark.parametrize(
    ("block", "value"),
    [("name: [a]\n", ["a"]), ("metadata: [a]\n", ["a"]), ("metadata:\n  a: [1]\n", {"a": ["1"]})],
)
def test_list_in_text_field_is_preserved(block: str, value: YamlValue) -> None:
    assert next(iter(read_block(block).values())) == value


def test_duplicate_key_is_reported_and_last_value_is_used() -> None:
    result = read_full_yaml("a: 1\nb: 2\na: 3\n")
    assert result.fields == {"b": "2", "a": "3"}
    assert result.findings == [
        Finding(
            Code.DUPLICATE_KEY,
            "duplicate key 'a'; the last value is used",
            3,
            "remove one of them",
        )
    ]


def test_duplicate_key_in_nested_map_is_reported() -> None:
    result = read_full_yaml("x:\n  a: 1\n  a: 2\n")
    assert [(finding.code, finding.line) for finding in result.findings] == [
        (Code.DUPLICATE_KEY, 3)
    ]


def test_nested_name_is_not_the_name() -> None:
    fields = read_block("name: outer\nmetadata:\n  name: inner\n")
    assert fields == {"name": "outer", "metadata": {"name": "inner"}}


def test_flow_style_is_reported_once_at_its_first_line() -> None:
    result = read_full_yaml("a: b\nc: [d]\ne: {f: g}\n")
    assert [(finding.code, finding.line) for finding in result.findings] == [(Code.YAML_FLOW, 2)]


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
def test_hostile_yaml_is_rejected_and_not_repairable(block: str, code: Code) -> None:
    error = read_error(block)
    assert error.finding.code is code
    assert not error.is_repairable


@pytest.mark.parametrize("depth", [MAX_DEPTH - 2, MAX_DEPTH - 1])
def test_nesting_is_read_up_to_the_limit(depth: int) -> None:
    block = "a: " + "[" * depth + "]" * depth + "\n"
    assert read_block(block)["a"] is not None
    read_error("a: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "\n")


def test_many_sibling_brackets_are_not_deep() -> None:
    assert read_block("a: [" + "[b], " * 30 + "]\n") == {"a": [["b"]] * 30}
    assert read_block("a: 'x [[[[[[[[[[[[[[[[[[[[[[[[[[['\n") == {"a": "x " + "[" * 27}


def test_values_are_read_up_to_the_limit() -> None:
    most = MAX_NODES - 3  # the root, the key and the list
    assert read_block("a:\n" + "- b\n" * most) == {"a": ["b"] * most}
    assert read_error("a:\n" + "- b\n" * (most + 1)).finding.code is Code.YAML_NODES


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
def test_syntax_error_is_repairable(block: str) -> None:
    error = read_error(block)
    assert error.is_repairable
    assert error.finding.code is Code.YAML_INVALID
    assert error.finding.message.startswith("the frontmatter is not valid YAML: ")


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
def test_odd_line_break_is_rejected_with_its_line(character: str) -> None:
    error = read_error(f"name: good\ndescription: x{character}name: forged\n")
    assert (error.finding.code, error.finding.line) == (Code.ODD_LINE_BREAK, 2)
    assert not error.is_repairable


@pytest.mark.parametrize(
    "character", ["\x00", "\x07", "\x0b", "\x1b", "\x7f", "\x9b", "\ud800", "\ufffe", "\uffff"]
)
def test_control_character_is_rejected_with_its_line(character: str) -> None:
    error = read_error(f"name: good\n\ndescription: x{character}y\n")
    assert (error.finding.code, error.finding.line) == (Code.CONTROL_CHARACTER, 3)
    assert not error.is_repairable


@pytest.mark.parametrize("text", ["a\u00a0b", "a\u200bb", "😀", "a\U000e0001", "x\ty"])
def test_other_characters_are_accepted(text: str) -> None:
    assert read_block(f"a: {text}\n") == {"a": text}


@pytest.mark.parametrize(
    ("value", "expected"),
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
def test_control_character_in_nested_value_is_found(value: YamlValue, expected: str | None) -> None:
    assert find_control_character(value) == expected


def test_fields_are_located_by_character_offset() -> None:
    block = "é: 😀\nname: pdf # x\nlist:\n- a\n"
    spans = {key: block[start:end] for key, (start, _, end) in locate_fields(block).items()}
    assert spans == {"é": "é: 😀", "name": "name: pdf", "list": "list:\n- a"}


def test_empty_block_has_no_fields_to_locate() -> None:
    assert locate_fields("# nothing\n") == {}


def test_locating_fields_of_rejected_yaml_raises() -> None:
    with pytest.raises(YamlReadError):
        locate_fields("a: &a [*a]\n")


@pytest.fixture
def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML without its C library."""
    monkeypatch.setattr(node_composer, "_loader_class", node_composer.PythonLoader)


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
def test_yaml_is_read_without_libyaml(block: str, fields: Fields) -> None:
    assert read_block(block) == fields


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
def test_hostile_yaml_is_rejected_without_libyaml(block: str, code: Code) -> None:
    assert read_error(block).finding.code is code
