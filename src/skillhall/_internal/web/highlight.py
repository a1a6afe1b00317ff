"""Syntax highlighting with CSS classes; unknown or large files stay plain."""

from functools import cache

from markupsafe import Markup, escape
from pygments import highlight  # type: ignore[import-untyped] # it has no types
from pygments.formatters.html import HtmlFormatter  # type: ignore[import-untyped] # same
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped] # same

from skillhall._internal.skill.invisible_characters import replace_invisible

MAX_HIGHLIGHTED_CHARS = 100 * 1024
_MAX_LINE_LENGTH = 2_000  # some lexers take more than linear time for a line
# Pygments lexers, and the file extensions or names that select them.
_EXTENSIONS = {
    "bash": "bash sh shell zsh",
    "c": "c h",
    "cpp": "cpp",
    "csharp": "cs",
    "css": "css",
    "diff": "diff",
    "docker": "dockerfile",
    "go": "go",
    "html": "html htm",
    "ini": "ini",
    "java": "java",
    "javascript": "javascript js jsx mjs",
    "json": "json",
    "make": "makefile",
    "markdown": "markdown md",
    "php": "php",
    "powershell": "ps1",
    "python": "python py",
    "ruby": "rb",
    "rust": "rust rs",
    "sql": "sql",
    "toml": "toml",
    "typescript": "typescript ts tsx",
    "xml": "xml svg",
    "yaml": "yaml yml",
}
_LEXERS = {name: lexer for lexer, names in _EXTENSIONS.items() for name in names.split()}


def highlight_code(text: str, name: str) -> Markup:
    """Return the code as HTML; the extension or name of the file selects the language."""
    language = _LEXERS.get(name.rpartition("/")[2].rpartition(".")[2].lower())
    has_long_line = any(len(line) > _MAX_LINE_LENGTH for line in text.split("\n"))
    if language is None or len(text) > MAX_HIGHLIGHTED_CHARS or has_long_line:
        return escape_text(text)
    html = highlight(text, _get_lexer(language), HtmlFormatter(nowrap=True))
    return mark_invisible(Markup(html))  # noqa: S704 - escaped by the formatter


def escape_text(text: str) -> Markup:
    """Escape plain text and mark invisible characters."""
    return mark_invisible(escape(text))


def mark_invisible(html: Markup) -> Markup:
    """Mark every invisible character in HTML with its code point."""

    def mark(character: str) -> str:
        return f'<span class="invisible-char">U+{ord(character):04X}</span>'

    return Markup(replace_invisible(str(html), mark))  # noqa: S704 - marks contain only digits


@cache
def _get_lexer(language: str) -> object:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
