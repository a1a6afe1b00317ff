"""Properties of line numbers in a config."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.config_file.line_numbers import KeyPath, find_json_line

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:  # noqa: ANN401 - any JSON value
    """Yield the path of every value in document order."""
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else items:
        yield from paths(inner, (*path, key))


@given(VALUES)
def test_values_have_unique_ascending_lines(value: object) -> None:
    text = json.dumps(value, indent=1)
    lines = [find_json_line(text, path) for path in paths(value)]
    assert lines == sorted(lines)
    assert len(set(lines)) == len(lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)


@given(VALUES)
def test_missing_key_has_the_line_of_its_parent(value: object) -> None:
    text = json.dumps(value, indent=1)
    for path in paths(value):
        assert find_json_line(text, (*path, "\0missing")) == find_json_line(text, path)
