"""Markdown of strangers as HTML that cannot do anything."""

import pytest

from skillhall._internal.web.highlight import highlight_code
from skillhall._internal.web.markdown_html import MAX_MARKDOWN_BYTES, MarkdownRenderer

FILES = "/skill/x/files"


def rendered(text: str) -> str:
    return str(MarkdownRenderer().render(text, FILES))


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](//elsewhere.example)",
        "[x](\\\\elsewhere.example)",
        '<https://ok.example/"onclick=alert(1)>',
        '![x" onerror="alert(1)](https://elsewhere.example/p.png)',
        "<iframe src=https://elsewhere.example></iframe>",
        '```x" onclick="alert(1)\ncode\n```',
        "[x](https://[bad)",
    ],
)
def test_nothing_in_a_text_becomes_a_script_a_handler_or_an_odd_address(text: str) -> None:
    html = rendered(text).lower()
    for tag in ("<script", "<img", "<svg", "<iframe"):
        assert tag not in html
    assert 'href="javascript' not in html
    assert 'href="data' not in html
    assert 'href="//' not in html
    assert not any(
        f" {name}=" in html.replace("&quot;", "") and f'"{name}' in html
        for name in ("onclick", "onerror")
    )


def test_relative_links_lead_to_files_of_the_skill_and_never_out_of_it() -> None:
    html = rendered("[a](refs/a%20b.md) [b](../b.md) [c](/etc/passwd) [d](#part)")
    assert f'href="{FILES}/refs/a%20b.md"' in html
    assert html.count('href="#"') == 2
    assert 'href="#part"' in html


def test_an_image_is_a_link_that_loads_nothing() -> None:
    html = rendered("![the logo](logo.png)")
    assert f'<a class="image" href="{FILES}/logo.png"' in html
    assert ">the logo</a>" in html


def test_headings_stand_below_that_of_the_page() -> None:
    assert "<h2>One</h2>" in rendered("# One")


def test_a_table_is_aligned_by_classes() -> None:
    html = rendered("| a |\n|--:|\n| 1 |\n")
    assert 'class="align-right"' in html
    assert "style=" not in html


@pytest.mark.parametrize("text", ["x" * (MAX_MARKDOWN_BYTES + 1), "[" * 6_000])
def test_what_would_take_too_long_is_plain_text(text: str) -> None:
    assert rendered(text).startswith('<pre class="plain">')


def test_characters_that_nobody_sees_are_marked() -> None:
    assert '<span class="invisible-char">U+202E</span>' in rendered("a\u202eb")
    assert '<span class="invisible-char">U+200B</span>' in str(highlight_code("a\u200bb", "x.txt"))


def test_code_gets_classes_and_stays_what_it_is() -> None:
    html = str(highlight_code('def f(): return "<b>"\n', "a.py"))
    assert '<span class="k">def</span>' in html
    assert "<b>" not in html


def test_emoji_flags_are_shown_without_a_mark() -> None:
    wales = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
    assert "invisible-char" not in rendered(f"For {wales} readers")
    assert "invisible-char" not in str(highlight_code(f"For {wales} readers", "x.txt"))
