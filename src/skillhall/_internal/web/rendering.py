"""Renders page dataclasses with Jinja templates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from skillhall._internal.http.response import ByteResponse
from skillhall._internal.web.assets import asset_url
from skillhall._internal.web.page_request import NOTICE_COOKIE, THEMES
from skillhall._internal.web.translations import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.response import Headers
    from skillhall._internal.web.page_request import Notice, PageRequest
    from skillhall._internal.web.translations import Translations

HTML_HEADER = (b"content-type", b"text/html; charset=utf-8")
CSP_HEADER = (
    b"content-security-policy",
    b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
)
_VARY_HEADER = (b"vary", b"Accept-Language, Cookie")
# Main menu: text key below `menu`, and URL.
SECTIONS = (
    ("skills", "/skills"),
    ("sessions", "/sessions"),
    ("playground", "/playground"),
    ("sources", "/sources"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """Header, menu and footer around every page."""

    translations: Translations
    title: str
    section: str
    return_path: str  # the page to show after a change of theme or language
    theme: str
    notice: Notice | None
    is_signed_in: bool

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Main menu entries: text key and URL."""
        return SECTIONS

    @property
    def languages(self) -> Mapping[str, str]:
        """Languages by code, each in its own language."""
        return LANGUAGES

    @property
    def themes(self) -> tuple[str, ...]:
        """Color themes."""
        return THEMES

    def t(self, key: str, **values: object) -> str:
        """Return a text in the visitor's language."""
        return self.translations(key, **values)

    def asset(self, path: str) -> str:
        """Return the URL of a static file; "" if it is not installed."""
        return asset_url(path)


@dataclass(frozen=True, slots=True)
class Page:
    """Base of the values that templates receive as `page`."""

    frame: Frame


def build_frame(request: PageRequest, title: str, section: str) -> Frame:
    """Return the frame of a page."""
    # The response to a POST has no URL of its own to return to.
    return_path = request.path if request.is_get else dict(SECTIONS).get(section, "/")
    return Frame(
        request.translations,
        title,
        section,
        return_path,
        request.theme,
        request.notice,
        request.is_signed_in,
    )


def render_page(
    template: str, page: Page, *, status: int = 200, headers: Headers = ()
) -> ByteResponse:
    """Render a page; its notice is deleted so that it is shown once."""
    text = jinja_environment().get_template(template).render(page=page)
    if page.frame.notice is not None:
        headers = (*headers, (b"set-cookie", f"{NOTICE_COOKIE}=; Path=/; Max-Age=0".encode()))
    body = text.encode("utf-8", "replace")
    return ByteResponse(status, (HTML_HEADER, CSP_HEADER, _VARY_HEADER, *headers), (body,))


def redirect(url: str, headers: Headers = ()) -> ByteResponse:
    """Redirect with status 303, so that the browser follows with GET."""
    return ByteResponse(303, ((b"location", url.encode("latin-1")), *headers), (b"",))


@cache
def jinja_environment() -> Environment:
    """Return the template environment; undefined names are errors."""
    environment = Environment(
        loader=PackageLoader("skillhall._internal.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["segment"] = lambda text: quote(text, safe="")
    environment.filters["path"] = quote
    environment.filters["bytes"] = format_file_size
    environment.filters["number"] = lambda number: f"{number:,}"
    return environment


def format_file_size(size: int) -> str:
    """Format a number of bytes with a unit."""
    if size < 1000:  # noqa: PLR2004 - the step between units
        return f"{size} B"
    if size < 1_000_000:  # noqa: PLR2004 - the step between units
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"
