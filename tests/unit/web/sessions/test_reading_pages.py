"""Reading view of a session: how many blocks are on a page."""

import pytest

from skillhall._internal.web.sessions.reading_pages import (
    MAX_BLOCKS,
    MAX_CHARACTERS,
    count_fitting,
)
from skillhall._internal.workspace import Block, Zone
from skillhall._internal.workspace.validation import build_content


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ([], 0),
        ([1] * 60, MAX_BLOCKS),
        ([MAX_CHARACTERS + 1, 1], 1),
        ([MAX_CHARACTERS - 1, 1, 1], 2),
    ],
)
def test_page_has_at_least_one_block_and_stays_within_limits(sizes: list[int], count: int) -> None:
    blocks = (
        Block(f"b{size}", "s1", "a", build_content("note", Zone.WORKING, "x" * size), 1, "", "")
        for size in sizes
    )
    assert count_fitting(blocks) == count
