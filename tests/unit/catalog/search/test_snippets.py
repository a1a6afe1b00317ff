"""Snippets: length, whitespace, control characters and marks."""

import pytest

from skillhall._internal.catalog.search.query import parse_query
from skillhall._internal.catalog.search.snippets import MAX_LENGTH, SnippetBuilder


def marked(text: str, query: str, *, inside_words: bool = False) -> list[str]:
    snippet, marks = SnippetBuilder(parse_query(query), inside_words=inside_words).build(text)
    return [snippet[start:end] for start, end in marks]


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
        ("XLSX for Excel", "excel", ["XLSX", "Excel"]),
        ("Visualiser", "visualize", ["Visualiser"]),
        ("Prepares a PR; pull", "pull request", ["PR", "pull"]),
        ("nothing", "else", []),
        ("anything", "", []),
    ],
)
def test_matches_are_marked(text: str, query: str, words: list[str]) -> None:
    assert marked(text, query) == (words if query != "." else ["."])


def test_parts_of_words_are_marked_on_request() -> None:
    assert marked("spreadsheets", "sheet", inside_words=True) == ["sheet"]
    assert marked("spreadsheets", "sheet") == []


def test_long_text_is_cut_around_the_first_match() -> None:
    snippet, marks = SnippetBuilder(parse_query("needle")).build(
        "hay " * 500 + "needle" + " hay" * 500
    )
    assert snippet.startswith("…hay")
    assert snippet.endswith("hay…")
    assert len(snippet) <= MAX_LENGTH + 2
    assert [snippet[start:end] for start, end in marks] == ["needle"]


def test_snippet_has_no_control_characters() -> None:
    snippet, marks = SnippetBuilder(parse_query("b")).build("a\x1b[31m\n\n\u202eb\0c\ud800 <b>")
    assert snippet == "a [31m b c <b>"
    assert [snippet[start:end] for start, end in marks] == ["b", "b"]


def test_snippet_preserves_emoji_flags() -> None:
    wales = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
    assert SnippetBuilder(parse_query("pdf")).build(f"PDF {wales} now").text == f"PDF {wales} now"
