"""Properties of YAML readers: the fast reader agrees with the others or returns `None`."""

import contextlib

import pytest
from hypothesis import example, given

from skillhall._internal.skill.yaml.fast_reader import SimpleYamlResult, read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import locate_fields, read_full_yaml
from skillhall._internal.skill.yaml.lenient_reader import (
    build_repaired_finding,
    locate_fields_leniently,
    read_fields,
    repair_yaml,
)
from skillhall._internal.skill.yaml.values import YamlValue
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError
from tests.support.strategies import (
    disturbed_blocks,
    edge_blocks,
    line_blocks,
    tidy_blocks,
    yaml_blocks,
)


def with_types_and_order(value: YamlValue) -> object:
    """Convert `value` so that types and the order of keys matter for equality."""
    if isinstance(value, dict):
        return {"map": [(key, with_types_and_order(item)) for key, item in value.items()]}
    if isinstance(value, list):
        return [with_types_and_order(item) for item in value]
    return type(value), value


def assert_full_reader_agrees(block: str, simple: SimpleYamlResult) -> None:
    full = read_full_yaml(block)
    assert with_types_and_order(full.fields) == with_types_and_order(simple.fields)
    assert full.findings == list(simple.findings)


def assert_repair_agrees(block: str, simple: SimpleYamlResult) -> None:
    with pytest.raises(YamlReadError) as error:
        read_full_yaml(block)
    assert error.value.is_repairable
    repaired = repair_yaml(block, error.value)
    assert with_types_and_order(repaired.fields) == with_types_and_order(simple.fields)
    expected = build_repaired_finding(simple.invalid_values, simple.cause)
    assert repaired.findings == [expected, *simple.findings]


def assert_readers_agree(block: str) -> None:
    simple = read_simple_yaml(block)
    if simple is None:
        return
    if simple.invalid_values:
        assert_repair_agrees(block, simple)
    else:
        assert_full_reader_agrees(block, simple)


@given(tidy_blocks)
@example("")
@example("a: b\n")
@example("a: b: c\n")
@example("metadata:\n  a: b\n")
@example("metadata: {a: 1, b: true, c: 3d}\nname: 0123\n")
@example('a: "b\nc: [d\n')
@example("a: [b\nc: d: e\n")
@example("a:\n- b\nc: | d\ne: true\n")
@example("a:: \n - b\n")
def test_readers_agree_on_tidy_blocks(block: str) -> None:
    assert_readers_agree(block)


@given(edge_blocks)
def test_readers_agree_on_blocks_with_one_odd_line(block: str) -> None:
    assert_readers_agree(block)


@given(disturbed_blocks)
def test_readers_agree_on_blocks_with_a_typo(block: str) -> None:
    assert_readers_agree(block)


@given(line_blocks)
def test_readers_agree_on_blocks_of_unrelated_lines(block: str) -> None:
    assert_readers_agree(block)


@given(yaml_blocks)
def test_read_fields_returns_fields_or_raises_read_error(block: str) -> None:
    with contextlib.suppress(YamlReadError):
        assert all(isinstance(key, str) for key in read_fields(block).fields)


@given(yaml_blocks)
def test_every_read_field_is_located(block: str) -> None:
    try:
        fields = read_full_yaml(block).fields
    except YamlReadError:
        return
    spans = locate_fields(block)
    assert spans.keys() == fields.keys()
    assert all(0 <= start <= key <= end <= len(block) for start, key, end in spans.values())


@given(yaml_blocks)
def test_every_repaired_field_is_located(block: str) -> None:
    try:
        read_full_yaml(block)
    except YamlReadError as error:
        try:
            fields = repair_yaml(block, error).fields
        except YamlReadError:
            return
        assert locate_fields_leniently(block).keys() == fields.keys()
