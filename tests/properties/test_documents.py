"""Properties of edits and of written YAML values."""

import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from skillhall._internal.skill.frontmatter_locator import (
    FrontmatterBlock,
    decode_text,
    find_frontmatter,
)
from skillhall._internal.skill.lossless_editor import Document, EditRefused
from skillhall._internal.skill.yaml.fast_reader import read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import read_full_yaml
from skillhall._internal.skill.yaml.lenient_reader import read_fields
from skillhall._internal.skill.yaml.quoting import format_scalar, quote_scalar
from skillhall._internal.skill.yaml.values import TEXT_FIELDS, Fields
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError
from tests.support.strategies import KEYS, encodable_texts, files, skill_md_like

keys = st.sampled_from(KEYS)


def find_block(data: bytes) -> FrontmatterBlock:
    block = find_frontmatter(data)
    assert isinstance(block, FrontmatterBlock)
    return block


def parse_fields(data: bytes) -> Fields:
    block = find_block(data)
    return read_fields(decode_text(data[block.start : block.end])).fields


def common_prefix(first: bytes, second: bytes) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


@given(files)
def test_unchanged_document_has_the_same_bytes(data: bytes) -> None:
    assert Document(data).data == data


@given(files)
def test_removing_a_missing_field_changes_nothing(data: bytes) -> None:
    try:
        assert Document(data).without_field("no-such-field").data == data
    except EditRefused:
        assume(condition=False)


@given(skill_md_like, keys)
def test_setting_a_field_to_its_value_changes_no_field(data: bytes, key: str) -> None:
    try:
        value = parse_fields(data).get(key)
        assume(isinstance(value, str))
        edited = Document(data).with_field(key, str(value)).data
    except (AssertionError, UnicodeDecodeError, YamlReadError, EditRefused):
        return
    assert parse_fields(edited) == parse_fields(data)


@given(skill_md_like, keys, encodable_texts)
@example(b"---\na: b\n---\n", "a", "c: d")
@example(b"---\r\na: |\r\n  b\r\nname: c\r\n---\r\nbody", "a", "")
def test_edit_changes_only_the_bytes_of_one_field(data: bytes, key: str, text: str) -> None:
    try:
        edited = Document(data).with_field(key, text).data
    except EditRefused:
        return
    before, after = parse_fields(data), parse_fields(edited)
    assert after == {**before, key: text}
    assert list(after) == list({**before, key: text})
    block, new = find_block(data), find_block(edited)
    assert edited[: new.start] == data[: block.start]
    assert edited[new.end :] == data[block.end :]
    start = common_prefix(data, edited)
    changed = data[start : len(data) - common_prefix(data[start:][::-1], edited[start:][::-1])]
    assert not any(f"\n{other}:".encode() in changed for other in before if other != key)


@given(skill_md_like, keys)
def test_removing_a_field_preserves_the_others(data: bytes, key: str) -> None:
    try:
        edited = Document(data).without_field(key).data
        before = parse_fields(data)
    except (EditRefused, AssertionError, UnicodeDecodeError, YamlReadError):
        return
    assert parse_fields(edited) == {name: value for name, value in before.items() if name != key}
    assert edited[find_block(edited).end :] == data[find_block(data).end :]


@given(skill_md_like, encodable_texts)
def test_new_body_preserves_the_frontmatter(data: bytes, body: str) -> None:
    try:
        edited = Document(data).with_body(body).data
    except EditRefused:
        return
    assert edited.endswith(body.encode())
    assert edited.startswith(data[: find_block(data).body_start])


@given(encodable_texts, st.sampled_from(sorted(TEXT_FIELDS)))
@example("0123", "name")
@example("a: b", "description")
@example("\x85", "name")
def test_quoted_scalar_round_trips_in_every_reader(text: str, key: str) -> None:
    block = f"{key}: {quote_scalar(text)}\n"
    simple = read_simple_yaml(block)
    assert simple is None or simple.fields == {key: text}
    assert read_full_yaml(block).fields == {key: text}
    assert yaml.safe_load(block) == {key: text}


@given(encodable_texts, st.sampled_from(["name", "own-field", "metadata", "a"]))
@example("true", "a")
@example("1.10", "a")
@example("2024-01-01", "metadata")
def test_formatted_scalar_round_trips_in_every_reader(text: str, key: str) -> None:
    block = f"{key}: {format_scalar(text)}\n"
    simple = read_simple_yaml(block)
    assert simple is None or (simple.fields, simple.invalid_values) == ({key: text}, ())
    full = read_full_yaml(block)
    assert (full.fields, full.findings) == ({key: text}, [])
    assert yaml.safe_load(block) == {key: text}


@given(st.dictionaries(keys, encodable_texts, min_size=1, max_size=4))
def test_document_built_by_edits_has_all_fields(fields: dict[str, str]) -> None:
    document = Document(b"---\n---\n")
    try:
        for key, text in fields.items():
            document = document.with_field(key, text)
    except EditRefused as error:
        assert "control character" in str(error)  # noqa: PT017 - the property allows this one
    else:
        assert parse_fields(document.data) == fields
