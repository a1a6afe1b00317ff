"""From a page's dataclass to the bytes that a browser gets."""

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
# The parts of the product, in the order of the menu: a key of the texts, and where it begins.
SECTIONS = (
    ("skills", "/skills"),
    ("sessions", "/sessions"),
    ("playground", "/playground"),
    ("sources", "/sources"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page has around it."""

    translations: Translations
    title: str
    section: str
    return_path: str  # a page to come back to
    theme: str
    notice: Notice | None
    is_signed_in: bool

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """The menu."""
        return SECTIONS

    @property
    def languages(self) -> Mapping[str, str]:
        """Every language, as its readers call it."""
        return LANGUAGES

    @property
    def themes(self) -> tuple[str, ...]:
        """Every choice of colours."""
        return THEMES

    def t(self, key: str, **values: object) -> str:
        """A text in the visitor's language."""
        return self.translations(key, **values)

    def asset(self, path: str) -> str:
        """Where a file of ours is loaded from; "" if it is not there."""
        return asset_url(path)


@dataclass(frozen=True, slots=True)
class Page:
    """What a template gets, and nothing else."""

    frame: Frame


def build_frame(request: PageRequest, title: str, section: str) -> Frame:
    """The frame of a page with that title."""
    # What answers a form cannot be asked for again.
    here = request.path if request.is_get else dict(SECTIONS).get(section, "/")
    return Frame(
        request.translations,
        title,
        section,
        here,
        request.theme,
        request.notice,
        request.is_signed_in,
    )


def render_page(
    template: str, page: Page, *, status: int = 200, headers: Headers = ()
) -> ByteResponse:
    """The page as an answer; a notice that it shows is not shown again."""
    text = jinja_environment().get_template(template).render(page=page)
    if page.frame.notice is not None:
        headers = (*headers, (b"set-cookie", f"{NOTICE_COOKIE}=; Path=/; Max-Age=0".encode()))
    body = text.encode("utf-8", "replace")
    return ByteResponse(status, (HTML_HEADER, CSP_HEADER, _VARY_HEADER, *headers), (body,))


def redirect(url: str, headers: Headers = ()) -> ByteResponse:
    """To another page, which is asked for by GET."""
    return ByteResponse(303, ((b"location", url.encode("latin-1")), *headers), (b"",))


@cache
def jinja_environment() -> Environment:
    """The templates; a name that a page does not have is an error."""
    made = Environment(
        loader=PackageLoader("skillhall._internal.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["segment"] = lambda text: quote(text, safe="")
    made.filters["path"] = quote
    made.filters["bytes"] = format_file_size
    made.filters["number"] = lambda number: f"{number:,}"
    return made


def format_file_size(size: int) -> str:
    """A number of bytes as people say it."""
    if size < 1000:  # noqa: PLR2004 - the step between units
        return f"{size} B"
    if size < 1_000_000:  # noqa: PLR2004 - the step between units
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"
