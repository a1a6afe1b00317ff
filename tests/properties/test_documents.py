"""Edits touch one field; written values read back, by our readers and by PyYAML's own."""

import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from skillhall._internal.skill.document import Document, EditRefused
from skillhall._internal.skill.frontmatter import FrontmatterBlock, decode_text, find_frontmatter
from skillhall._internal.skill.yaml.fast_reader import read_simple_yaml
from skillhall._internal.skill.yaml.fields import read_fields
from skillhall._internal.skill.yaml.full_reader import YamlReadError, read_full_yaml
from skillhall._internal.skill.yaml.quoting import format_scalar, quote_scalar
from skillhall._internal.skill.yaml.values import TEXT_FIELDS, Fields
from tests.support.strategies import KEYS, encodable_texts, files, skill_md_like

keys = st.sampled_from(KEYS)


def block_of(data: bytes) -> FrontmatterBlock:
    block = find_frontmatter(data)
    assert isinstance(block, FrontmatterBlock)
    return block


def fields_of(data: bytes) -> Fields:
    block = block_of(data)
    return read_fields(decode_text(data[block.start : block.end])).fields


def common_prefix(first: bytes, second: bytes) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


@given(files)
def test_an_unchanged_document_is_its_bytes(data: bytes) -> None:
    assert Document(data).data == data


@given(files)
def test_removing_a_field_that_is_not_there_changes_no_byte(data: bytes) -> None:
    try:
        assert Document(data).without_field("no-such-field").data == data
    except EditRefused:
        assume(condition=False)


@given(skill_md_like, keys)
def test_setting_a_field_to_the_text_it_has_leaves_the_others(data: bytes, key: str) -> None:
    try:
        value = fields_of(data).get(key)
        assume(isinstance(value, str))
        edited = Document(data).with_field(key, str(value)).data
    except (AssertionError, UnicodeDecodeError, YamlReadError, EditRefused):
        return
    assert fields_of(edited) == fields_of(data)


@given(skill_md_like, keys, encodable_texts)
@example(b"---\na: b\n---\n", "a", "c: d")
@example(b"---\r\na: |\r\n  b\r\nname: c\r\n---\r\nbody", "a", "")
def test_an_edit_changes_one_field_and_no_byte_elsewhere(data: bytes, key: str, text: str) -> None:
    try:
        edited = Document(data).with_field(key, text).data
    except EditRefused:
        return
    before, after = fields_of(data), fields_of(edited)
    assert after == {**before, key: text}
    assert list(after) == list({**before, key: text})
    block, new = block_of(data), block_of(edited)
    assert edited[: new.start] == data[: block.start]
    assert edited[new.end :] == data[block.end :]
    start = common_prefix(data, edited)
    changed = data[start : len(data) - common_prefix(data[start:][::-1], edited[start:][::-1])]
    assert not any(f"\n{other}:".encode() in changed for other in before if other != key)


@given(skill_md_like, keys)
def test_removing_a_field_leaves_the_others(data: bytes, key: str) -> None:
    try:
        edited = Document(data).without_field(key).data
        before = fields_of(data)
    except (EditRefused, AssertionError, UnicodeDecodeError, YamlReadError):
        return
    assert fields_of(edited) == {name: value for name, value in before.items() if name != key}
    assert edited[block_of(edited).end :] == data[block_of(data).end :]


@given(skill_md_like, encodable_texts)
def test_a_new_body_leaves_every_byte_of_the_frontmatter(data: bytes, body: str) -> None:
    try:
        edited = Document(data).with_body(body).data
    except EditRefused:
        return
    assert edited.endswith(body.encode())
    assert edited.startswith(data[: block_of(data).body_start])


@given(encodable_texts, st.sampled_from(sorted(TEXT_FIELDS)))
@example("0123", "name")
@example("a: b", "description")
@example("\x85", "name")
def test_a_quoted_text_reads_back_by_every_reader(text: str, key: str) -> None:
    block = f"{key}: {quote_scalar(text)}\n"
    plain = read_simple_yaml(block)
    assert plain is None or plain.fields == {key: text}
    assert read_full_yaml(block).fields == {key: text}
    assert yaml.safe_load(block) == {key: text}


@given(encodable_texts, st.sampled_from(["name", "own-field", "metadata", "a"]))
@example("true", "a")
@example("1.10", "a")
@example("2024-01-01", "metadata")
def test_a_text_written_plain_or_quoted_reads_back_by_every_reader(text: str, key: str) -> None:
    block = f"{key}: {format_scalar(text)}\n"
    plain = read_simple_yaml(block)
    assert plain is None or (plain.fields, plain.invalid_values) == ({key: text}, ())
    careful = read_full_yaml(block)
    assert (careful.fields, careful.findings) == ({key: text}, [])
    assert yaml.safe_load(block) == {key: text}


@given(st.dictionaries(keys, encodable_texts, min_size=1, max_size=4))
def test_a_document_built_by_edits_holds_what_was_written(fields: dict[str, str]) -> None:
    document = Document(b"---\n---\n")
    try:
        for key, text in fields.items():
            document = document.with_field(key, text)
    except EditRefused as refusal:
        assert "control character" in str(refusal)  # noqa: PT017 - the property allows this one
    else:
        assert fields_of(document.data) == fields
