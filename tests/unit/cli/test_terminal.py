import io

import pytest
from hypothesis import given

from skillhall._internal.cli.terminal import (
    has_color,
    is_interactive,
    is_smart_terminal,
    is_terminal,
    sanitize_line,
    sanitize_text,
)
from tests.support.strategies import any_text

SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("naïve – 日本", "naïve – 日本"),
        ("a\n  b\tc", "a b c"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\x9b31m", "a\\x9b31m"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("half\udcff", "half\\udcff"),
        (SCOTLAND, SCOTLAND),
        (f"{SCOTLAND}\U000e0041", f"{SCOTLAND}\\U000e0041"),
        ("\N{WOMAN}\u200d\N{PERSONAL COMPUTER}", "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}"),
    ],
)
def test_invisible_characters_are_escaped(text: str, shown: str) -> None:
    assert sanitize_line(text) == shown


@given(any_text)
def test_sanitized_text_has_no_control_or_bidi_characters(text: str) -> None:
    for cleaned in (sanitize_line(text), sanitize_text(text).replace("\n", "").replace("\t", "")):
        assert not set(cleaned) & {*map(chr, range(0x20)), "\x7f", "\x9b", "\u202e", "\u2066"}
        cleaned.encode("utf-8")


def test_sanitize_text_keeps_newlines_and_tabs() -> None:
    assert sanitize_text("a\r\n\tb\x07\n") == "a\n\tb\\x07\n"


@pytest.mark.parametrize(
    ("environment", "table", "colours"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_tables_and_colors_depend_on_terminal_and_no_color(
    environment: dict[str, str], table: bool, colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (is_smart_terminal(Terminal()), has_color(Terminal())) == (table, colours)
    assert not is_smart_terminal(io.StringIO())


def test_closed_stream_is_not_a_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert not is_terminal(stream)


@pytest.mark.parametrize(("environment", "attended"), [({}, True), ({"CI": "1"}, False)])
def test_ci_is_not_interactive(
    environment: dict[str, str], attended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stderr", Terminal())
    assert is_interactive() is attended
