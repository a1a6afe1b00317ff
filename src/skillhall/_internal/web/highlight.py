"""Syntax highlighting with CSS classes; unknown or large files stay plain."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape
from pygments import highlight  # type: ignore[import-untyped] # it has no types
from pygments.formatters.html import HtmlFormatter  # type: ignore[import-untyped] # same
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped] # same

from skillhall._internal.skill.invisible import replace_invisible

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_HIGHLIGHTED_CHARS = 100 * 1024
_MAX_LINE_LENGTH = 2_000  # some lexers take more than linear time for a line
# Pygments lexer by file extension or name.
_LEXER_NAMES: Mapping[str, str] = {
    **{name: name for name in ("bash", "c", "cpp", "css", "diff", "go", "html", "ini", "java")},
    **{name: name for name in ("json", "php", "python", "sql", "toml", "xml", "yaml")},
    "cs": "csharp",
    "h": "c",
    "htm": "html",
    "js": "javascript",
    "javascript": "javascript",
    "jsx": "javascript",
    "mjs": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "typescript": "typescript",
    "markdown": "markdown",
    "md": "markdown",
    "ps1": "powershell",
    "py": "python",
    "rb": "ruby",
    "rs": "rust",
    "rust": "rust",
    "sh": "bash",
    "shell": "bash",
    "svg": "xml",
    "yml": "yaml",
    "zsh": "bash",
    "dockerfile": "docker",
    "makefile": "make",
}


def highlight_code(text: str, name: str) -> Markup:
    """Return the code with spans; the file name selects the language."""
    language = _LEXER_NAMES.get(name.rpartition("/")[2].rpartition(".")[2].lower())
    if language is None or len(text) > MAX_HIGHLIGHTED_CHARS or _has_long_line(text):
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


def _has_long_line(text: str) -> bool:
    return any(len(line) > _MAX_LINE_LENGTH for line in text.split("\n"))


@cache
def _get_lexer(language: str) -> object:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
