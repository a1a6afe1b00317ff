"""Excerpts: short, on one line, harmless, with offsets of the words that were looked for."""

import pytest

from skillhall._internal.catalog.search.query import parse_query
from skillhall._internal.catalog.search.snippets import MAX_LENGTH, SnippetBuilder


def marked(text: str, query: str, *, inside_words: bool = False) -> list[str]:
    shown, marks = SnippetBuilder(parse_query(query), inside_words=inside_words).build(text)
    return [shown[start:end] for start, end in marks]


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("Merges PDF files.", "pdf merge", ["Merges", "PDF"]),
        ("Résumé und RESUME", "resume", ["Résumé", "RESUME"]),
        ("Re\u0301sume\u0301!", "resume", ["Re\u0301sume\u0301"]),
        ("Straße, strasse", "strasse", ["Straße", "strasse"]),
        ("生成分析报告", "分析", ["分析"]),
        ("start art", "art", ["art"]),
        ("a.b (c)", ".", []),
        ("Party 🎉!", "🎉", ["🎉"]),
        ("nothing", "else", []),
        ("anything", "", []),
    ],
)
def test_the_words_that_were_looked_for_are_marked(text: str, query: str, words: list[str]) -> None:
    assert marked(text, query) == (words if query != "." else ["."])


def test_parts_of_words_are_marked_when_they_were_looked_for() -> None:
    assert marked("spreadsheets", "sheet", inside_words=True) == ["sheet"]
    assert marked("spreadsheets", "sheet") == []


def test_a_long_text_is_cut_round_the_first_word_that_was_found() -> None:
    shown, marks = SnippetBuilder(parse_query("needle")).build(
        "hay " * 500 + "needle" + " hay" * 500
    )
    assert shown.startswith("…hay")
    assert shown.endswith("hay…")
    assert len(shown) <= MAX_LENGTH + 2
    assert [shown[start:end] for start, end in marks] == ["needle"]


def test_what_a_terminal_would_obey_is_not_in_an_excerpt() -> None:
    shown, marks = SnippetBuilder(parse_query("b")).build("a\x1b[31m\n\n\u202eb\0c\ud800 <b>")
    assert shown == "a [31m b c <b>"
    assert [shown[start:end] for start, end in marks] == ["b", "b"]


def test_an_emoji_flag_is_shown_in_an_excerpt() -> None:
    wales = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
    assert SnippetBuilder(parse_query("pdf")).build(f"PDF {wales} now").text == f"PDF {wales} now"
