from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.strict_json import InvalidJson, JsonObject, parse_request_json


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a":"[[[{{{"}', {"a": "[[[{{{"}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\\u00e4\\ud83d\\ude00"', "ä😀"),
        (b"[" * 32 + b"]" * 32, None),
    ],
)
def test_valid_json_is_parsed(body: bytes, value: object) -> None:
    parsed = parse_request_json(body)
    assert value is None or parsed == value


@pytest.mark.parametrize("body", [b"[" * 33 + b"]" * 33, b'{"a":' * 33 + b"1" + b"}" * 33])
def test_deeply_nested_json_is_rejected(body: bytes) -> None:
    with pytest.raises(InvalidJson, match="32 levels"):
        parse_request_json(body)


@given(st.binary(max_size=200) | st.text('[]{}",:\\0au').map(str.encode))
def test_any_bytes_are_parsed_or_rejected(body: bytes) -> None:
    with suppress(InvalidJson):
        parse_request_json(body)


def test_errors_about_fields_name_their_location() -> None:
    document = JsonObject.parse(b'{"skills": {"pdf": {"files": [{"size": -1}]}}}')
    [(key, skill)] = document.require_map("skills")
    [file] = skill.require_objects("files")
    assert key == "pdf"
    with pytest.raises(InvalidJson, match=r"skills\['pdf'\]\.files\[0\]\.size is not a non-neg"):
        file.require("size", int)
    with pytest.raises(InvalidJson, match="'version' is missing"):
        document.require("version", int)
