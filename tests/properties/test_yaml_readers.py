"""The fast reader, the careful one and the repair see the same document, or the fast one doubts."""

import contextlib

import pytest
from hypothesis import example, given

from skillhall._internal.skill.yaml.fast_reader import SimpleYamlResult, read_simple_yaml
from skillhall._internal.skill.yaml.fields import read_fields
from skillhall._internal.skill.yaml.full_reader import YamlReadError, locate_fields, read_full_yaml
from skillhall._internal.skill.yaml.repair import locate_fields_leniently, repair_yaml
from skillhall._internal.skill.yaml.result import build_repaired_finding
from skillhall._internal.skill.yaml.values import YamlValue
from tests.support.strategies import (
    disturbed_blocks,
    edge_blocks,
    line_blocks,
    tidy_blocks,
    yaml_blocks,
)


def in_order(value: YamlValue) -> object:
    """`value` in a form that is equal only if types and the order of keys are equal too."""
    if isinstance(value, dict):
        return {"map": [(key, in_order(item)) for key, item in value.items()]}
    if isinstance(value, list):
        return [in_order(item) for item in value]
    return type(value), value


def assert_the_careful_reader_agrees(block: str, plain: SimpleYamlResult) -> None:
    careful = read_full_yaml(block)
    assert in_order(careful.fields) == in_order(plain.fields)
    assert careful.findings == list(plain.findings)


def assert_the_repair_agrees(block: str, plain: SimpleYamlResult) -> None:
    with pytest.raises(YamlReadError) as refusal:
        read_full_yaml(block)
    assert refusal.value.is_repairable
    mended = repair_yaml(block, refusal.value)
    assert in_order(mended.fields) == in_order(plain.fields)
    assert mended.findings == [build_repaired_finding(plain.invalid_values), *plain.findings]


def assert_readers_agree(block: str) -> None:
    plain = read_simple_yaml(block)
    if plain is None:
        return
    if plain.invalid_values:
        assert_the_repair_agrees(block, plain)
    else:
        assert_the_careful_reader_agrees(block, plain)


@given(tidy_blocks)
@example("")
@example("a: b\n")
@example("a: b: c\n")
@example("metadata:\n  a: b\n")
@example("metadata: {a: 1, b: true, c: 3d}\nname: 0123\n")
@example('a: "b\nc: [d\n')
@example("a: [b\nc: d: e\n")
def test_readers_agree_on_tidy_blocks(block: str) -> None:
    assert_readers_agree(block)


@given(edge_blocks)
def test_readers_agree_on_blocks_with_one_odd_line(block: str) -> None:
    assert_readers_agree(block)


@given(disturbed_blocks)
def test_readers_agree_on_blocks_with_a_slip_of_the_pen(block: str) -> None:
    assert_readers_agree(block)


@given(line_blocks)
def test_readers_agree_on_blocks_of_unrelated_lines(block: str) -> None:
    assert_readers_agree(block)


@given(yaml_blocks)
def test_reading_fields_gives_fields_or_a_refusal(block: str) -> None:
    with contextlib.suppress(YamlReadError):
        assert all(isinstance(key, str) for key in read_fields(block).fields)


@given(yaml_blocks)
def test_every_field_that_is_read_is_also_located(block: str) -> None:
    try:
        fields = read_full_yaml(block).fields
    except YamlReadError:
        return
    spans = locate_fields(block)
    assert spans.keys() == fields.keys()
    assert all(0 <= start <= key <= end <= len(block) for start, key, end in spans.values())


@given(yaml_blocks)
def test_every_field_that_is_repaired_is_also_located(block: str) -> None:
    try:
        read_full_yaml(block)
    except YamlReadError as refusal:
        try:
            fields = repair_yaml(block, refusal).fields
        except YamlReadError:
            return
        assert locate_fields_leniently(block).keys() == fields.keys()
