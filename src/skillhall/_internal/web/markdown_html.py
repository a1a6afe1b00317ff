"""A skill's Markdown as HTML that cannot do anything: no raw HTML, no images, no odd addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from skillhall._internal.cache import Kept
from skillhall._internal.skill.bundle import RelativePath, sha256_of
from skillhall._internal.web.highlight import highlight, mark_unseen, shown
from skillhall.errors import UnsafePath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

MAX_MARKDOWN = 100 * 1024  # bytes; more of it is shown as plain text
_MAX_BRACKETS = 5_000  # as many are read in seconds, where links never end
_NESTING = 30
_KEPT = 16 * 1024 * 1024  # characters of HTML
_SCHEMES = frozenset({"http", "https", "mailto"})
_TAGS = frozenset(
    {"a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong"}
    | {"table", "tbody", "td", "th", "thead", "tr", "ul"}
    | {f"h{level}" for level in range(1, 7)}
)
_ALIGNED = {f"text-align:{side}": f"to-{side}" for side in ("left", "center", "right")}


def _new_reader() -> MarkdownIt:
    options = {"html": False, "linkify": False, "maxNesting": _NESTING}
    reader = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    reader.options["highlight"] = lambda code, language, _: str(highlight(code, f"x.{language}"))
    return reader


class MarkdownPages:
    """Makes HTML of Markdown; the same text is not read twice."""

    def __init__(self) -> None:
        self._reader = _new_reader()
        self._kept = Kept[Markup](_KEPT, len)

    def render(self, text: str, files: str) -> Markup:
        """The text as HTML; relative links lead below the address `files`."""
        key = sha256_of(f"{files}\0{text}".encode("utf-8", "replace"))
        return self._kept.value(key, lambda: self._rendered(text, files))

    def _rendered(self, text: str, files: str) -> Markup:
        if len(text.encode("utf-8", "replace")) > MAX_MARKDOWN or text.count("[") > _MAX_BRACKETS:
            return Markup('<pre class="plain">{}</pre>').format(shown(text))
        tokens = self._reader.parse(text)
        _tame(tokens, files)
        html = self._reader.renderer.render(tokens, self._reader.options, {})
        # The reader was told to be safe; this is for what it may have overlooked.
        cleaned = nh3.clean(
            html,
            tags=set(_TAGS),
            attributes={"a": {"href"}, "*": {"class"}, "ol": {"start"}},
            url_schemes=set(_SCHEMES),
            link_rel="noopener noreferrer nofollow",
        )
        return mark_unseen(Markup(cleaned))  # noqa: S704 - straight from the cleaner


def _tame(tokens: Sequence[Token], files: str) -> None:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # The page has its own first heading.
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
        if token.type in ("th_open", "td_open"):
            aligned = _ALIGNED.get(str(token.attrs.pop("style", "")))
            token.attrs.update({"class": aligned} if aligned else {})
        if token.type == "image":
            _tame_image(token, files)
        elif token.type == "link_open":
            token.attrs = {"href": _address(str(token.attrs.get("href", "")), files)}
        if token.children and token.type != "text":
            _tame(token.children, files)


def _tame_image(token: Token, files: str) -> None:
    """A link in place of an image: nothing is loaded that nobody clicked at."""
    address = _address(str(token.attrs.get("src", "")), files)
    label = token.content or address
    token.type, token.children = "html_inline", None
    token.content = str(Markup('<a class="image" href="{}">{}</a>').format(address, escape(label)))


def _address(text: str, files: str) -> str:
    """Where a link may lead: to a web address, a place on the page, or a file of the skill."""
    parts = urlsplit(text) if _is_plain(text) else None
    if parts is None:
        return "#"
    if parts.scheme:
        return text if parts.scheme in _SCHEMES else "#"
    if text.startswith("#"):
        return text
    try:
        path = RelativePath.parse(unquote(parts.path)).text
    except UnsafePath:
        return "#"
    return f"{files}/{quote(path)}" if not parts.netloc else "#"


def _is_plain(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return "\\" not in text
