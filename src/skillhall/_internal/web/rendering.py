"""Renders Jinja templates and errors as Starlette responses."""

import re
import shlex
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from skillhall._internal.hints import DOCS_URL, find_hint
from skillhall._internal.http.errors import error_headers, error_status
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import REQUEST_ID_KEY
from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.web.assets import asset_url
from skillhall._internal.web.page_request import NOTICE_COOKIE, SITE_KEY, THEMES, PageRequest
from skillhall._internal.web.site import Site
from skillhall._internal.web.translations import DEFAULT_LANGUAGE, LANGUAGES, Translations
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._version import VERSION
from skillhall.errors import SkillhallError

CSP = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
CSP_HEADER = {"content-security-policy": CSP}
_DAY = 86_400  # seconds
_AGE_UNITS = (
    ("years", 365 * _DAY),
    ("months", 30 * _DAY),
    ("days", _DAY),
    ("hours", 3600),
    ("minutes", 60),
)
_UNROUTED_MESSAGES = {"not_found": "no_page", "method_not_allowed": "no_method"}
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_PAGE_HEADERS = {**CSP_HEADER, "vary": "Accept-Language, Cookie"}


class PageError(NamedTuple):
    """Error shown on a page: translated heading, message and hint."""

    heading: str
    message: str
    hint: str


def render(
    request: PageRequest,
    template: str,
    title: str | None = None,
    *,
    error: SkillhallError | None = None,
    status: int | None = None,
    **values: object,
) -> HTMLResponse:
    """Render a template as a page.

    The template gets `values`, `title`, `problem` and `failed_form` as attributes of `page`. The
    title defaults to the translation of `<template>.title`, the error to `request.error`. The error
    becomes `page.problem` and, unless `status` is given, determines the status.
    """
    error = error or request.error
    if title is None:
        title = request.translations(f"{template.removesuffix('.html')}.title")
    page = SimpleNamespace(
        title=title,
        problem=describe_error(request, error) if error else None,
        failed_form=request.failed_form,
        **values,
    )
    html = jinja_environment().get_template(template)
    text = html.render(page=page, request=request, t=request.translations)
    if status is None:
        status = error_status(error).http_status if error else 200
    # Skills may contain unpaired surrogates, which UTF-8 cannot encode.
    response = HTMLResponse(text.encode("utf-8", "replace"), status, _PAGE_HEADERS)
    if request.notice is not None:  # shown once
        response.headers.append("set-cookie", f"{NOTICE_COOKIE}=; Path=/; Max-Age=0")
    if error is not None:
        response.raw_headers.extend(error_headers(error))
    return response


def render_error(request: PageRequest, error: SkillhallError) -> HTMLResponse:
    """Render the page for a request that failed."""
    heading = describe_error(request, error).heading
    request_id, status = request.scope[REQUEST_ID_KEY], error_status(error).http_status
    return render(
        request, "error.html", heading, error=error, request_id=request_id, http_status=status
    )


def render_problem(request: PageRequest, error: SkillhallError) -> HTMLResponse:
    """Render only the error box, for scripts that insert it into the page."""
    html = render_macro("parts.html", "problem_box", describe_error(request, error))
    response = HTMLResponse(html, error_status(error).http_status, _PAGE_HEADERS)
    response.raw_headers.extend(error_headers(error))
    return response


def render_macro(template: str, macro: str, *values: object) -> str:
    """Render a macro of a template."""
    return str(getattr(jinja_environment().get_template(template).module, macro)(*values))


def render_unrouted_page(site: Site, request: Request, error: HttpError) -> HTMLResponse:
    """Render the error page for an unknown route or an unexpected exception."""
    page_request = PageRequest({**request.scope, SITE_KEY: site}, request.receive)
    message = page_request.translations(f"error.{_UNROUTED_MESSAGES.get(error.code, 'broken')}")
    return render_error(page_request, HttpError(error.code, message, headers=error.headers))


def describe_error(request: PageRequest, error: SkillhallError) -> PageError:
    """Describe an error in the visitor's language, as far as it is translated."""
    translations = request.translations
    known = (name for name in (error.kind, error.code) if f"error.{name}" in translations.messages)
    code = next(known, "other")
    key = "_".join(filter(None, (error.kind, error.variant)))
    if not error.hint and f"hint.{key}" in translations.messages:
        hint = translations(f"hint.{key}", **error.facts)
    else:
        hint = translations.message(find_hint(error, {}))
    message = translations.message(str(error))
    if error.starts_with_fact and translations.language == DEFAULT_LANGUAGE:
        message = str(error)
    return PageError(translations(f"error.{code}"), _end_sentence(message), _end_sentence(hint))


def form_status(error: SkillhallError | None) -> int:
    """Return the HTTP status of a form: at least 422 if it has an error, else 200."""
    return max(422, error_status(error).http_status) if error else 200


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
    environment.filters |= {
        "shell": shlex.quote,
        "segment": lambda text: quote(text, safe=""),
        "path": quote,
        "bytes": format_file_size,
        "number": lambda number: f"{number:,}",
        "message": lambda text, translations: translations.message(text),
        "minute": format_minute,
        "age": format_age,
    }
    environment.globals |= {
        "asset": asset_url,
        "block_types": BLOCK_TYPES,
        "docs_url": DOCS_URL,
        "code_descriptions": CODE_DESCRIPTIONS,
        "zones": Zone,
        "languages": LANGUAGES,
        "themes": THEMES,
        "version": VERSION,
    }
    return environment


def _end_sentence(text: str) -> str:
    if not re.search(r"[\w'\")\]\uff09]$", text):
        return text
    return f"{text}{'。' if _CHINESE.search(text) else '.'}"


def format_minute(time: str) -> str:
    """Format a stored UTC time to the minute."""
    return f"{time[:16].replace('T', ' ')} UTC"


def format_age(time: str, translations: Translations) -> str:
    """Say how long ago a stored UTC time was, or how long it is until then."""
    moment = datetime.fromisoformat(time)
    seconds = (datetime.now(UTC) - moment.replace(tzinfo=moment.tzinfo or UTC)).total_seconds()
    unit, size = next((row for row in _AGE_UNITS if abs(seconds) >= row[1]), ("now", 0))
    values = {"count": int(abs(seconds) // size)} if size else {}
    if seconds < 0:
        return translations(f"until.{unit}", **values)
    return translations(f"age.{unit}", **values)


def format_file_size(size: int) -> str:
    """Format a number of bytes with a unit."""
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:  # noqa: PLR2004 - the step between units
            break
        amount, unit = amount / 1000, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
