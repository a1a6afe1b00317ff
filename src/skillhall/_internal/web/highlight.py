"""Code in colours, by classes alone; what is too large or in no known language stays plain."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape
from pygments import highlight as paint  # type: ignore[import-untyped] # it has no types
from pygments.formatters.html import HtmlFormatter  # type: ignore[import-untyped] # same
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped] # same

from skillhall._internal.skill.invisible import replace_invisible

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_HIGHLIGHTED_CHARS = 100 * 1024  # characters that are looked at
_MAX_LINE_LENGTH = 2_000  # some languages are read in time that grows faster than a line
# The languages of files that skills carry, by ending or by name.
_LEXER_NAMES: Mapping[str, str] = {
    **{ending: ending for ending in ("bash", "c", "cpp", "css", "diff", "go", "html", "ini")},
    **{
        ending: ending for ending in ("java", "json", "php", "sql", "toml", "xml", "yaml", "python")
    },
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
    """The text in spans with classes, as files of that name are read."""
    language = _LEXER_NAMES.get(name.rpartition("/")[2].rpartition(".")[2].lower())
    if language is None or len(text) > MAX_HIGHLIGHTED_CHARS or _has_long_line(text):
        return escape_text(text)
    painted = paint(text, _get_lexer(language), HtmlFormatter(nowrap=True))
    return mark_invisible(Markup(painted))  # noqa: S704 - the formatter escapes what it paints


def escape_text(text: str) -> Markup:
    """Plain text, with a mark for each character that nobody would see."""
    return mark_invisible(escape(text))


def mark_invisible(html: Markup) -> Markup:
    """The same HTML, with a mark for each character that nobody would see."""

    def mark(character: str) -> str:
        return f'<span class="unseen">U+{ord(character):04X}</span>'

    return Markup(replace_invisible(str(html), mark))  # noqa: S704 - the marks hold digits alone


def _has_long_line(text: str) -> bool:
    return any(len(line) > _MAX_LINE_LENGTH for line in text.split("\n"))


@cache
def _get_lexer(language: str) -> object:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
