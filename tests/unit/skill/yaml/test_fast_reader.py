import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.yaml.fast_reader import SimpleYamlResult, read_simple_yaml
from skillhall._internal.skill.yaml.values import Fields


def fields_of(block: str) -> Fields:
    reading = read_simple_yaml(block)
    assert reading is not None
    return reading.fields


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
def test_lists_and_maps_are_read_by_their_indentation(block: str, fields: Fields) -> None:
    assert fields_of(block) == fields


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
    assert fields_of(block)["a"] == text


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
def test_flat_flow_values_are_read_and_their_line_is_kept(block: str, value: object) -> None:
    reading = read_simple_yaml(f"x: v\n{block}y_: [z]\n")
    assert reading is not None
    assert reading.fields["a"] == value
    assert [found.line for found in reading.findings] == [2]


def test_a_value_with_an_unquoted_colon_is_read_and_reported() -> None:
    reading = read_simple_yaml("a: b\nc: Use when: asked\nd: e: f: g\n")
    assert reading is not None
    assert reading.fields == {"a": "b", "c": "Use when: asked", "d": "e: f: g"}
    assert [(fault.key, fault.line) for fault in reading.invalid_values] == [("c", 2), ("d", 3)]


DOUBTFUL = [
    "a: b",  # the last line is not whole
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


@pytest.mark.parametrize("block", DOUBTFUL)
def test_whatever_is_doubtful_is_left_to_the_careful_reader(block: str) -> None:
    assert read_simple_yaml(block) is None


def test_numbers_and_truths_where_text_is_expected_are_text_with_a_finding() -> None:
    reading = read_simple_yaml("name: 0123\nmetadata:\n  a: true\n  b: 3d\nother: 1\n")
    assert reading is not None
    assert reading.fields == {"name": "0123", "metadata": {"a": "true", "b": "3d"}, "other": "1"}
    assert [(found.code, found.line) for found in reading.findings] == [
        (Code.NOT_TEXT, 1),
        (Code.NOT_TEXT, 3),
    ]


@pytest.mark.parametrize("value", ['"b', "'b", "[b", "{b: c"])
def test_what_is_opened_and_never_closed_is_read_and_reported(value: str) -> None:
    reading = read_simple_yaml(f"x: v\na: {value}\ny_: z\n")
    assert reading is not None
    assert reading.fields["a"] == value
    assert [(fault.key, fault.line) for fault in reading.invalid_values] == [("a", 2)]
