import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.yaml.fast_reader import SimpleYamlResult, read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import read_full_yaml
from skillhall._internal.skill.yaml.lenient_reader import build_repaired_finding, repair_yaml
from skillhall._internal.skill.yaml.values import Fields
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError


def read_block(block: str) -> Fields:
    result = read_simple_yaml(block)
    assert result is not None
    return result.fields


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("", {}),
        ("name: pdf\n", {"name": "pdf"}),
        ("name: pdf  \n", {"name": "pdf"}),
        ("a:   b\n", {"a": "b"}),
        ("a: b:c d#e\n", {"a": "b:c d#e"}),
        ("a: 'it''s: # x'\n", {"a": "it's: # x"}),
        ('a: "say \\"hi\\" \\\\"\n', {"a": 'say "hi" \\'}),
        ("a: ''\nb: \"\"\n", {"a": "", "b": ""}),
        ("a: true\nb: FALSE\n", {"a": True, "b": False}),
        ("a: 1.10\nb: 2024-01-01\n", {"a": "1.10", "b": "2024-01-01"}),
        ("a:\nb: c\n", {"a": None, "b": "c"}),
        ("a:\n", {"a": None}),
        ("# c\n\na: b\n#d\nc: d\n", {"a": "b", "c": "d"}),
        ("a: 日本語 text\n", {"a": "日本語 text"}),
    ],
)
def test_one_line_values_are_read(block: str, fields: Fields) -> None:
    assert read_simple_yaml(block) == SimpleYamlResult(fields)


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("a:\n- b\n- c\nd: e\n", {"a": ["b", "c"], "d": "e"}),
        ("a:\n  - b\n  - 'c'\n", {"a": ["b", "c"]}),
        ("a:\n  b: c\n  d:\n    e: f\ng: h\n", {"a": {"b": "c", "d": {"e": "f"}}, "g": "h"}),
        ("a:\n  b:\n    - c\n  d: e\n", {"a": {"b": ["c"], "d": "e"}}),
        ("a:\n  b:\nc: d\n", {"a": {"b": None}, "c": "d"}),
        ("metadata:\n  a: b\n", {"metadata": {"a": "b"}}),
    ],
)
def test_indented_lists_and_maps_are_read(block: str, fields: Fields) -> None:
    assert read_block(block) == fields


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ("a: |\n  b\n  c\n", "b\nc\n"),
        ("a: >\n  b\n  c\n", "b c\n"),
        ("a: |-\n  b: c\n  # d\n", "b: c\n# d"),
        ("a: >-\n  b\n  c\nd: e\n", "b c"),
    ],
)
def test_block_scalars_are_read(block: str, text: str) -> None:
    assert read_block(block)["a"] == text


@pytest.mark.parametrize(
    ("block", "value"),
    [
        ("a: []\n", []),
        ("a: [b, c d]\n", ["b", "c d"]),
        ("a: ['b', \"c\", 1, true]\n", ["b", "c", "1", True]),
        ("a: {}\n", {}),
        ("a: {b: c, d: 'e'} # f\n", {"b": "c", "d": "e"}),
    ],
)
def test_flat_flow_values_are_read_and_reported_once(block: str, value: object) -> None:
    result = read_simple_yaml(f"x: v\n{block}y_: [z]\n")
    assert result is not None
    assert result.fields["a"] == value
    assert [finding.line for finding in result.findings] == [2]


def test_value_with_unquoted_colon_is_read_and_reported() -> None:
    result = read_simple_yaml("a: b\nc: Use when: asked\nd: e: f: g\n")
    assert result is not None
    assert result.fields == {"a": "b", "c": "Use when: asked", "d": "e: f: g"}
    assert [(invalid.key, invalid.line) for invalid in result.invalid_values] == [
        ("c", 2),
        ("d", 3),
    ]


AMBIGUOUS = [
    "a: b",  # no final newline
    "- a\n",
    "a\n",
    " a: b\n",
    "a:b\n",
    "a b: c\n",
    "é: b\n",
    "a: b\na: c\n",
    "y: b\n",
    "null: b\n",
    "a: ~\n",
    "a: null\n",
    "a: yes\n",
    "name: null\n",
    "name: -1\n",
    "a: -1\n",
    "a: .5\n",
    "a: b #c\n",
    "a: b:\n",
    "a: b: c #d\n",
    "a: b: c:\n",
    "a: 'b\nc: d'\n",
    "a: 'b' c\n",
    'a: "b\\n"\n',
    'a: "b"c\n',
    "a: b\n  c\n",
    "a:\n  b\n",
    "a:\n  b: c\n d: e\n",
    "a:\n  b: c\n\n  d: e\n",
    "a:\n  b: c: d\n",
    "a:\n  # c\n  b: c\n",
    "a:\n" + " " * 17 + "b: c\n",
    "a:\n- b\n  c\n",
    "a:\n- b\n-\n",
    "a:\n-\n",
    "a:\n- b: c\n",
    "a: |+\n  b\n",
    "a: |\n",
    "a: |\nb: c\n",
    "a: |\n  b\n\n  c\n",
    "a: |\n  b\n    c\n",
    "a: |\n  b\n c\n",
    "a: |\n  b \n",
    "a: |\n  b\n  \n",
    "a: [b\nc: d]\n",
    "a: [[b]]\n",
    "a: [b] c\n",
    "a: [b: c]\n",
    "a: ['']\n",
    "a: [b,]\n",
    "a: [b" + ", b" * 100 + "]\n",
    "a: {b}\n",
    "a: {b: c, b: d}\n",
    "a: {y: c}\n",
    "a: {'b': c}\n",
    "a: &b c\n",
    "a: *b\n",
    "a: !b c\n",
    "a: @b\n",
    "a: b\tc\n",
    "a: b\u0085c\n",
    "a: b\u2028c\n",
    "a: b\x07\n",
    "a: b\u00a0c\n",
    "a: b\n---\n",
    "a: b\n...\n",
    "a: b\n\t\n",
    "a: b\n \n",
]


@pytest.mark.parametrize("block", AMBIGUOUS)
def test_ambiguous_yaml_is_left_to_the_full_reader(block: str) -> None:
    assert read_simple_yaml(block) is None


def test_typed_scalars_in_text_fields_are_text_with_finding() -> None:
    result = read_simple_yaml("name: 0123\nmetadata:\n  a: true\n  b: 3d\nother: 1\n")
    assert result is not None
    assert result.fields == {"name": "0123", "metadata": {"a": "true", "b": "3d"}, "other": "1"}
    assert [(finding.code, finding.line) for finding in result.findings] == [
        (Code.NOT_TEXT, 1),
        (Code.NOT_TEXT, 3),
    ]


@pytest.mark.parametrize("value", ['"b', "'b", "[b", "{b: c"])
def test_unclosed_quote_or_bracket_is_read_and_reported(value: str) -> None:
    result = read_simple_yaml(f"x: v\na: {value}\ny_: z\n")
    assert result is not None
    assert result.fields["a"] == value
    assert [(invalid.key, invalid.line) for invalid in result.invalid_values] == [("a", 2)]


@pytest.mark.parametrize(
    "value", ["`b` c", "`b: c` #d", "`", '"b" c d', '"b" c:d', '"b" don\'t', '"b" C# d']
)
@pytest.mark.parametrize("rest", ["", "e: f\n", 'metadata:\n  g: "h"\n'])
def test_text_after_a_quote_and_leading_backtick_are_reported_as_by_the_repair(
    value: str, rest: str
) -> None:
    block = f"name: x\na: {value}\n{rest}"
    simple = read_simple_yaml(block)
    with pytest.raises(YamlReadError) as error:
        read_full_yaml(block)
    repaired = repair_yaml(block, error.value)
    assert simple is not None
    assert simple.fields == repaired.fields
    assert repaired.findings == [build_repaired_finding(simple.invalid_values, simple.cause)]
