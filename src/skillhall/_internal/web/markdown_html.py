"""Renders untrusted Markdown as safe HTML: no raw HTML, images or unsafe URLs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from skillhall._internal.cache import SizedCache
from skillhall._internal.skill.bundle import RelativePath, sha256_hex
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.web.highlight import escape_text, highlight_code, mark_invisible
from skillhall.errors import UnsafePath

MAX_MARKDOWN_BYTES = 100 * 1024  # longer text is shown as plain text
_MAX_BRACKETS = 5_000  # unclosed links take quadratic time
_MAX_NESTING = 30
_CACHE_CHARS = 16 * 1024 * 1024  # characters of HTML
_ALLOWED_SCHEMES = frozenset({"http", "https", "mailto"})
_ALLOWED_TAGS = frozenset(
    {"a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong"}
    | {"table", "tbody", "td", "th", "thead", "tr", "ul"}
    | {f"h{level}" for level in range(1, 7)}
)
# Wide content scrolls by keyboard, too. Text never contains these tags: it is escaped.
_FOCUSABLE = {
    "<pre>": '<pre tabindex="0">',
    "<table>": '<div class="wide" tabindex="0"><table>',
    "</table>": "</table></div>",
}
_ANCHOR_PREFIX = "md-"  # keeps the ids of headings apart from those of the page
_ALIGN_CLASSES = {f"text-align:{side}": f"align-{side}" for side in ("left", "center", "right")}


class MarkdownSection(NamedTuple):
    """A heading with the text up to the next one."""

    level: int
    title: str
    line: int  # from 1
    tokens: int
    anchor: str  # id of the heading on a page with anchors


class MarkdownRenderer:
    """Renders Markdown and caches the HTML."""

    def __init__(self) -> None:
        options = {"html": False, "linkify": False, "maxNesting": _MAX_NESTING}
        parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
        # The language of a code block, such as "py", is passed on as a file extension.
        parser.options["highlight"] = lambda code, name, _: str(highlight_code(code, f"x.{name}"))
        self._parser = parser
        self._cache = SizedCache[Markup](_CACHE_CHARS, len)

    def render(self, text: str, files_url: str, *, with_anchors: bool = False) -> Markup:
        """Render Markdown; relative links lead to files below `files_url`.

        With anchors, headings have ids, which are those of the sections of `outline`.
        """
        key = sha256_hex(f"{files_url}\0{with_anchors}{text}".encode("utf-8", "replace"))
        return self._cache.get_or_create(
            key, lambda: self._render(text, files_url, with_anchors=with_anchors)
        )

    def outline(self, text: str) -> tuple[MarkdownSection, ...]:
        """Return the sections of Markdown; none if it is too large."""
        if len(text) > MAX_MARKDOWN_BYTES or text.count("[") > _MAX_BRACKETS:
            return ()
        tokens, lines = self._parser.parse(text), text.split("\n")
        headings = [*_find_headings(tokens)]
        starts = [start for _, _, start in headings]
        texts = ("\n".join(lines[a:b]) for a, b in pairwise([*starts, len(lines)]))
        anchors = _name_anchors(title for _, title, _ in headings)
        return tuple(
            MarkdownSection(level, title, start + 1, estimate_tokens(section), anchor)
            for (level, title, start), section, anchor in zip(headings, texts, anchors, strict=True)
        )

    def _render(self, text: str, files_url: str, *, with_anchors: bool) -> Markup:
        size = len(text.encode("utf-8", "replace"))
        if size > MAX_MARKDOWN_BYTES or text.count("[") > _MAX_BRACKETS:
            return Markup('<pre class="plain" tabindex="0">{}</pre>').format(escape_text(text))
        tokens = self._parser.parse(text)
        if with_anchors:
            _add_anchors(tokens)
        _nest_headings(tokens)
        _sanitize_tokens(tokens, files_url)
        html = self._parser.renderer.render(tokens, self._parser.options, {})
        # Defense in depth: the parser already emits no raw HTML.
        cleaned = nh3.clean(
            html,
            tags=set(_ALLOWED_TAGS),
            attributes={"a": {"href"}, "*": {"class", "id"}, "ol": {"start"}},
            url_schemes=set(_ALLOWED_SCHEMES),
            link_rel="noopener noreferrer nofollow",
        )
        for tag, replacement in _FOCUSABLE.items():
            cleaned = cleaned.replace(tag, replacement)
        return mark_invisible(Markup(cleaned))  # noqa: S704 - sanitized above


def _find_headings(tokens: Sequence[Token]) -> Iterator[tuple[int, str, int]]:
    """Yield the level, the title and the line of each heading, counted from 0."""
    for token, following in pairwise(tokens):
        if token.type == "heading_open" and token.map:
            yield int(token.tag[1]), following.content, token.map[0]


def _name_anchors(titles: Iterable[str]) -> list[str]:
    """Return the ids of headings, in the form that links in Markdown use."""
    seen: dict[str, int] = {}
    anchors = []
    for title in titles:
        slug = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        number = seen[slug] = seen.get(slug, -1) + 1
        anchors.append(f"{_ANCHOR_PREFIX}{slug}-{number}" if number else f"{_ANCHOR_PREFIX}{slug}")
    return anchors


def _add_anchors(tokens: Sequence[Token]) -> None:
    """Give headings ids, and let links to them lead there."""
    headings = [(a, b.content) for a, b in pairwise(tokens) if a.type == "heading_open"]
    anchors = _name_anchors(title for _, title in headings)
    for (token, _), anchor in zip(headings, anchors, strict=True):
        token.attrs["id"] = anchor
    for token in tokens:
        for child in token.children or ():
            url = str(child.attrs.get("href", ""))
            if child.type == "link_open" and url.startswith("#"):
                child.attrs["href"] = f"#{_ANCHOR_PREFIX}{url[1:]}"


def _nest_headings(tokens: Sequence[Token]) -> None:
    """Give headings consecutive levels from h2 on: the only h1 is the title of the page."""
    levels: list[str] = []
    for token in tokens:
        if token.type == "heading_open":
            while levels and levels[-1] >= token.tag:
                levels.pop()
            levels.append(token.tag)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, len(levels) + 1)}"


def _sanitize_tokens(tokens: Sequence[Token], files_url: str) -> None:
    for token in tokens:
        if token.type in ("th_open", "td_open"):
            aligned = _ALIGN_CLASSES.get(str(token.attrs.pop("style", "")))
            token.attrs.update({"class": aligned} if aligned else {})
        if token.type == "image":
            _replace_image(token, files_url)
        elif token.type == "link_open":
            token.attrs = {"href": _safe_url(str(token.attrs.get("href", "")), files_url)}
        if token.children and token.type != "text":
            _sanitize_tokens(token.children, files_url)


def _replace_image(token: Token, files_url: str) -> None:
    """Replace an image with a link, so that nothing loads without a click."""
    url = _safe_url(str(token.attrs.get("src", "")), files_url)
    label = token.content or url
    token.type, token.children = "html_inline", None
    token.content = str(Markup('<a class="image" href="{}">{}</a>').format(url, escape(label)))


def _safe_url(text: str, files_url: str) -> str:
    """Return a web URL, a fragment or a file of the skill; "#" for anything else."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return "#"
    if "\\" in text:  # browsers read it as a slash
        return "#"
    if parts.scheme:
        return text if parts.scheme in _ALLOWED_SCHEMES else "#"
    if text.startswith("#"):
        return text
    try:
        path = RelativePath.parse(unquote(parts.path)).text
    except UnsafePath:
        return "#"
    return f"{files_url}/{quote(path)}" if not parts.netloc else "#"
