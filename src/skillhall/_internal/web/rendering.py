"""From a page's dataclass to the bytes that a browser gets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from skillhall._internal.http.response import Answer
from skillhall._internal.web.assets import address_of
from skillhall._internal.web.page_request import NOTICE, THEMES
from skillhall._internal.web.translations import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.http.response import Headers
    from skillhall._internal.web.page_request import Notice, Visit
    from skillhall._internal.web.translations import Texts

HTML = (b"content-type", b"text/html; charset=utf-8")
POLICY = (
    b"content-security-policy",
    b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
)
_LIVE = (b"vary", b"Accept-Language, Cookie")
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

    texts: Texts
    title: str
    section: str
    here: str  # a page to come back to
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
        return self.texts(key, **values)

    def asset(self, path: str) -> str:
        """Where a file of ours is loaded from; "" if it is not there."""
        return address_of(path)


@dataclass(frozen=True, slots=True)
class Page:
    """What a template gets, and nothing else."""

    frame: Frame


def frame_of(visit: Visit, title: str, section: str) -> Frame:
    """The frame of a page with that title."""
    # What answers a form cannot be asked for again.
    here = visit.path if visit.is_reading else dict(SECTIONS).get(section, "/")
    return Frame(
        visit.texts,
        title,
        section,
        here,
        visit.theme,
        visit.notice,
        visit.is_signed_in,
    )


def page_answer(template: str, page: Page, *, status: int = 200, headers: Headers = ()) -> Answer:
    """The page as an answer; a notice that it shows is not shown again."""
    text = environment().get_template(template).render(page=page)
    if page.frame.notice is not None:
        headers = (*headers, (b"set-cookie", f"{NOTICE}=; Path=/; Max-Age=0".encode()))
    body = text.encode("utf-8", "replace")
    return Answer(status, (HTML, POLICY, _LIVE, *headers), (body,))


def redirect(place: str, headers: Headers = ()) -> Answer:
    """To another page, which is asked for by GET."""
    return Answer(303, ((b"location", place.encode("latin-1")), *headers), (b"",))


@cache
def environment() -> Environment:
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
    made.filters["bytes"] = file_size
    made.filters["number"] = lambda number: f"{number:,}"
    return made


def file_size(size: int) -> str:
    """A number of bytes as people say it."""
    if size < 1000:  # noqa: PLR2004 - the step between units
        return f"{size} B"
    if size < 1_000_000:  # noqa: PLR2004 - the step between units
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"
