"""Untrusted Markdown is rendered as safe HTML."""

import pytest

from skillhall._internal.web.highlight import highlight_code
from skillhall._internal.web.markdown_html import MAX_MARKDOWN_BYTES, MarkdownRenderer

FILES_URL = "/skill/x/files"


def render(text: str) -> str:
    return str(MarkdownRenderer().render(text, FILES_URL))


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
def test_hostile_markdown_yields_no_scripts_or_unsafe_urls(text: str) -> None:
    html = render(text).lower()
    for tag in ("<script", "<img", "<svg", "<iframe"):
        assert tag not in html
    assert 'href="javascript' not in html
    assert 'href="data' not in html
    assert 'href="//' not in html
    assert not any(
        f" {name}=" in html.replace("&quot;", "") and f'"{name}' in html
        for name in ("onclick", "onerror")
    )


def test_relative_links_stay_inside_the_skill() -> None:
    html = render("[a](refs/a%20b.md) [b](../b.md) [c](/etc/passwd) [d](#part)")
    assert f'href="{FILES_URL}/refs/a%20b.md"' in html
    assert html.count('href="#"') == 2
    assert 'href="#part"' in html


def test_image_becomes_a_link() -> None:
    html = render("![the logo](logo.png)")
    assert f'<a class="image" href="{FILES_URL}/logo.png"' in html
    assert ">the logo</a>" in html


def test_headings_are_lowered_one_level() -> None:
    assert "<h2>One</h2>" in render("# One")


def test_table_alignment_uses_classes() -> None:
    html = render("| a |\n|--:|\n| 1 |\n")
    assert 'class="align-right"' in html
    assert "style=" not in html


@pytest.mark.parametrize("text", ["x" * (MAX_MARKDOWN_BYTES + 1), "[" * 6_000])
def test_expensive_markdown_is_shown_as_plain_text(text: str) -> None:
    assert render(text).startswith('<pre class="plain" tabindex="0">')


def test_invisible_characters_are_marked() -> None:
    assert '<span class="invisible-char">U+202E</span>' in render("a\u202eb")
    assert '<span class="invisible-char">U+200B</span>' in str(highlight_code("a\u200bb", "x.txt"))


def test_code_is_highlighted_and_escaped() -> None:
    html = str(highlight_code('def f(): return "<b>"\n', "a.py"))
    assert '<span class="k">def</span>' in html
    assert "<b>" not in html


def test_emoji_flags_are_not_marked() -> None:
    wales = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
    assert "invisible-char" not in render(f"For {wales} readers")
    assert "invisible-char" not in str(highlight_code(f"For {wales} readers", "x.txt"))


def test_wide_content_can_be_scrolled_by_keyboard() -> None:
    html = render("| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n<pre><table>\n```\n")
    assert '<div class="wide" tabindex="0"><table>' in html
    assert html.count('<pre tabindex="0">') == 1
    assert html.count("<table") == html.count("</table></div>") == 1


def test_links_to_headings_lead_to_their_ids() -> None:
    text = "[down](#a-b)\n\n# A b\n\n## A *b*\n\n## 数据\n"
    renderer = MarkdownRenderer()
    html = str(renderer.render(text, FILES_URL, with_anchors=True))
    anchors = [section.anchor for section in renderer.outline(text)]
    assert anchors == ["md-a-b", "md-a-b-1", "md-数据"]
    assert all(f'id="{anchor}"' in html for anchor in anchors)
    assert 'href="#md-a-b"' in html
    assert " id=" not in render(text)


def test_headings_skip_no_level() -> None:
    html = render("# a\n\n### b\n\n### c\n\n## d\n")
    assert [html[html.index(f">{name}<") - 2 :][:2] for name in "abcd"] == ["h2", "h3", "h3", "h3"]
