import pytest

from skillhall._internal.skill.frontmatter_locator import (
    FrontmatterBlock,
    MissingFrontmatter,
    count_line_breaks,
    decode_text,
    find_frontmatter,
    is_frontmatter_complete,
)


def block_text(data: bytes) -> bytes:
    block = find_frontmatter(data)
    assert isinstance(block, FrontmatterBlock)
    return data[block.start : block.end]


def body_text(data: bytes) -> bytes:
    block = find_frontmatter(data)
    assert isinstance(block, FrontmatterBlock)
    return data[block.body_start :]


@pytest.mark.parametrize(
    "data",
    [
        b"---\na: b\n---\nbody\n",
        b"---  \na: b\n---\nbody\n",
        b"---\na: b\n--- \t\nbody\n",
        b"\xef\xbb\xbf---\na: b\n---\nbody\n",
        b"\n \t\n---\na: b\n---\nbody\n",
        b"\xef\xbb\xbf\n---\na: b\n---\nbody\n",
    ],
)
def test_block_between_fences_is_found(data: bytes) -> None:
    assert block_text(data) == b"a: b\n"
    assert body_text(data) == b"body\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_fence_may_end_in_any_line_break(end: bytes) -> None:
    data = end.join([b"---", b"a: b", b"---", b"body"])
    assert block_text(data) == b"a: b" + end
    assert body_text(data) == b"body"


@pytest.mark.parametrize(
    "line", [b"----", b"--", b"--- x", b" ---", b"a: ---", b"a---", b"---x", b"\t---"]
)
def test_similar_line_does_not_close_the_block(line: bytes) -> None:
    data = b"---\na: b\n" + line + b"\nc: d\n---\nbody"
    assert block_text(data) == b"a: b\n" + line + b"\nc: d\n"


def test_later_fences_belong_to_the_body() -> None:
    assert body_text(b"---\na: b\n---\nx\n---\ny\n") == b"x\n---\ny\n"


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"  "])
def test_file_may_end_after_the_closing_fence(end: bytes) -> None:
    assert body_text(b"---\na: b\n---" + end) == b""


def test_empty_block_is_found() -> None:
    assert block_text(b"---\n---\n") == b""


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"# Title\n", b"--\n", b"----\n", b"x\n---\na: b\n---\n", b" ---\n---\n"]
)
def test_file_without_opening_fence_has_no_block(data: bytes) -> None:
    assert find_frontmatter(data) is MissingFrontmatter.NO_FENCE


@pytest.mark.parametrize("data", [b"---", b"---\n", b"---\na: b\n", b"---\na: b\n----\n"])
def test_file_without_closing_fence_has_no_block(data: bytes) -> None:
    assert find_frontmatter(data) is MissingFrontmatter.UNCLOSED


@pytest.mark.parametrize("fence", [b"---", b"--- ", b"---\r"])
def test_fence_at_the_end_of_partial_data_is_ignored(fence: bytes) -> None:
    data = b"---\na: b\n" + fence
    assert find_frontmatter(data, is_complete=False) is MissingFrontmatter.UNCLOSED
    assert isinstance(find_frontmatter(data), FrontmatterBlock)


def test_fence_with_newline_in_partial_data_is_found() -> None:
    block = find_frontmatter(b"---\na: b\n---\n", is_complete=False)
    assert isinstance(block, FrontmatterBlock)
    assert (block.start, block.end, block.body_start) == (4, 9, 13)


@pytest.mark.parametrize(
    ("lead", "line"), [(b"", 2), (b"\n", 3), (b"\r\n\r\n", 4), (b"\xef\xbb\xbf\r\r", 4)]
)
def test_first_line_counts_leading_blank_lines(lead: bytes, line: int) -> None:
    block = find_frontmatter(lead + b"---\na: b\n---\n")
    assert isinstance(block, FrontmatterBlock)
    assert block.first_line == line


@pytest.mark.parametrize(
    ("data", "lines"), [(b"a\nb\n", 2), (b"a\r\nb\r\n", 2), (b"a\rb\r\n\n", 3), (b"", 0)]
)
def test_every_line_break_is_counted_once(data: bytes, lines: int) -> None:
    assert count_line_breaks(data, 0, len(data)) == lines


def test_decoded_text_has_only_line_feeds() -> None:
    assert decode_text("é\r\nb\rc\n".encode()) == "é\nb\nc\n"
    assert decode_text(b"plain\n") == "plain\n"


@pytest.mark.parametrize(
    "data",
    [
        b"---\n" + b"-" * 200_000,
        b"---\n" + b"---x\n" * 50_000,
        b"\r\n" * 500_000,
        b" " * 1_000_000 + b"---",
        b"---" + b" " * 1_000_000 + b"x",
    ],
)
def test_hostile_file_is_searched_in_linear_time(data: bytes) -> None:
    assert isinstance(find_frontmatter(data), MissingFrontmatter)


@pytest.mark.parametrize(
    ("data", "complete"),
    [
        (b"---\na: b\n---\n", True),
        (b"---\na: b\n---\nbody", True),
        (b"---\r\na: b\r\n---\r\nbody", True),
        (b"# Title\n", True),
        (b"---\na: b\n---", False),
        (b"---\na: b\n", False),
        (b"---\na: b\n----\n", False),
    ],
)
def test_partial_data_is_complete_if_more_would_not_help(data: bytes, complete: bool) -> None:
    assert is_frontmatter_complete(data) is complete
