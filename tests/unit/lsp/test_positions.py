from lsprotocol.types import Position, PositionEncodingKind, Range, TextEdit

from skillhall._internal.lsp.positions import TextLines

UTF16 = PositionEncodingKind.Utf16


def test_lines_end_as_the_parser_counts_them() -> None:
    lines = TextLines("a\r\nb\rc\nd\u2028e", UTF16)
    assert [lines.line(number) for number in range(5)] == ["a", "b", "c", "d\u2028e", ""]


def test_columns_count_in_the_unit_of_the_client() -> None:
    text = "ü📄x"
    columns = {
        kind: TextLines(text, kind).position(0, 2).character for kind in PositionEncodingKind
    }
    assert columns == {
        PositionEncodingKind.Utf8: 6,
        PositionEncodingKind.Utf16: 3,
        PositionEncodingKind.Utf32: 2,
    }
    for kind, units in columns.items():
        assert TextLines(text, kind).column(Position(0, units)) == 2


def test_column_past_the_end_is_the_end() -> None:
    assert TextLines("ab\n", UTF16).column(Position(0, 9)) == 2
    assert TextLines("ab\n", UTF16).column(Position(7, 9)) == 0


def test_edit_covers_only_what_differs() -> None:
    lines = TextLines("one\ntwo\nthree\n", UTF16)
    assert lines.build_edit("one\n2\nthree\n") == TextEdit(
        Range(Position(1, 0), Position(1, 3)), "2"
    )
    assert lines.build_edit("one\ntwo\nthree\n").new_text == ""


def test_edit_does_not_split_a_line_break() -> None:
    edit = TextLines("a\r\nb\r\n", UTF16).build_edit("a\nb\r\n")
    assert edit == TextEdit(Range(Position(0, 1), Position(1, 0)), "\n")
