import pytest

from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.yaml.full_reader import read_full_yaml
from skillhall._internal.skill.yaml.lenient_reader import locate_fields_leniently, repair_yaml
from skillhall._internal.skill.yaml.values import YamlValue
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError, YamlResult


def repair(block: str) -> YamlResult:
    with pytest.raises(YamlReadError) as caught:
        read_full_yaml(block)
    return repair_yaml(block, caught.value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("d: Use when: asked", "Use when: asked"),
        ("d: 'it's broken", "'it's broken"),
        ('d: "quoted" and more', '"quoted" and more'),
        ("d: [a, b", "[a, b"),
        ("d: {a: b", "{a: b"),
        ("d: @mention", "@mention"),
        ("d: `code`", "`code`"),
        ("d: %x", "%x"),
        ("d: *bold* text", "*bold* text"),
        ("d: a: b\n  and more: text", "a: b and more: text"),
        ("d: |\ntext that is\nnot indented", "text that is not indented"),
        ("d: >-\nfolded text\n\nin two parts", "folded text in two parts"),
        ("d : a: b", "a: b"),
    ],
)
def test_broken_field_is_read_as_text_and_others_as_yaml(line: str, value: YamlValue) -> None:
    result = repair(f"name: pdf\n{line}\ntags: ['x', y]\n")
    assert result.fields == {"name": "pdf", "d": value, "tags": ["x", "y"]}
    assert result.findings[0].code is Code.YAML_REPAIRED
    assert result.findings[0].line == 2


def test_hint_for_unquoted_colon_shows_quoted_value() -> None:
    assert repair("name: a\nd: Use when: x\n").findings == [
        Finding(
            Code.YAML_REPAIRED,
            "'d' contains ': ' outside quotes, which is not valid YAML; it was read as plain text",
            2,
            'quote the value: d: "Use when: x"',
        )
    ]


def test_message_names_every_broken_field() -> None:
    finding = repair("a: b: c\nd: 'e\nf: g\n").findings[0]
    assert finding.message == "'a', 'd' are not valid YAML; they were read as plain text"
    assert finding.line == 1


def test_long_value_is_shortened_only_in_the_hint() -> None:
    value = "Use when: " + "x" * 200
    result = repair(f"d: {value}\n")
    assert result.fields["d"] == value
    assert len(result.findings[0].hint) < 100


def test_block_of_valid_fields_reports_the_original_error() -> None:
    result = repair("a: b\n...\nc: d\n")
    assert result.fields == {"a": "b", "c": "d"}
    assert result.findings[0].code is Code.YAML_REPAIRED
    assert "not valid YAML" in result.findings[0].message


def test_findings_of_valid_fields_have_their_line() -> None:
    result = repair("d: a: b\n\n# c\nname: 0123\n")
    assert [(finding.code, finding.line) for finding in result.findings] == [
        (Code.YAML_REPAIRED, 1),
        (Code.NOT_TEXT, 4),
    ]


def test_duplicate_key_is_reported_and_last_value_is_used() -> None:
    result = repair("a: b: c\na: d\n")
    assert result.fields == {"a": "d"}
    assert (Code.DUPLICATE_KEY, 2) in [(finding.code, finding.line) for finding in result.findings]


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("d: a: b\ne: !t x\n", Code.YAML_TAG),
        ("d: a: b\ne: &a [*a]\n", Code.YAML_ALIAS),
        ("d: a: b\ne: " + "[" * 30 + "]" * 30 + "\n", Code.YAML_DEPTH),
    ],
)
def test_unrepairable_field_is_rejected(block: str, code: Code) -> None:
    with pytest.raises(YamlReadError) as caught:
        repair(block)
    assert caught.value.finding.code is code


@pytest.mark.parametrize("block", ["[a\nb: c\n", "- a: 'b\n", "  a: 'b\n", "'a\n"])
def test_block_without_top_level_fields_is_rejected(block: str) -> None:
    with pytest.raises(YamlReadError) as caught:
        repair(block)
    assert caught.value.finding.code is Code.YAML_INVALID


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_entries_are_located_with_any_line_break(end: str) -> None:
    block = end.join(["a: b: c", "d: |", "e", "# f", "g:", ""])
    spans = {
        key: block[start:stop] for key, (start, _, stop) in locate_fields_leniently(block).items()
    }
    assert list(spans) == ["a", "d", "g"]
    assert spans["a"] == f"a: b: c{end}"
    assert spans["d"] == f"d: |{end}e{end}"
