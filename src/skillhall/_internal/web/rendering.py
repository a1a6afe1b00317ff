"""Renders Jinja templates and errors as Starlette responses."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse

from skillhall._internal.hints import find_hint
from skillhall._internal.http.errors import error_status
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import REQUEST_ID_KEY
from skillhall._internal.web.assets import asset_url
from skillhall._internal.web.page_request import NOTICE_COOKIE, SECTIONS, THEMES, PageRequest
from skillhall._internal.web.translations import LANGUAGES
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES

if TYPE_CHECKING:
    from skillhall.errors import SkillhallError

CSP = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
CSP_HEADER = {"content-security-policy": CSP}
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
    """Render a page; the template gets the values, `title` and `problem` as `page`.

    The title defaults to the text `<template>.title`. An error becomes `page.problem` and the
    status, unless another is given.
    """
    if title is None:
        title = request.translations(f"{template.removesuffix('.html')}.title")
    problem = describe_error(request, error) if error else None
    text = (
        jinja_environment()
        .get_template(template)
        .render(
            page=SimpleNamespace(title=title, problem=problem, **values),
            request=request,
            t=request.translations,
        )
    )
    if status is None:
        status = error_status(error).http_status if error else 200
    # Skills may contain unpaired surrogates, which UTF-8 cannot encode.
    response = HTMLResponse(text.encode("utf-8", "replace"), status, _PAGE_HEADERS)
    if request.notice is not None:  # shown once
        response.headers.append("set-cookie", f"{NOTICE_COOKIE}=; Path=/; Max-Age=0")
    if isinstance(error, HttpError):
        response.raw_headers.extend(error.headers)
    return response


def render_error(request: PageRequest, error: SkillhallError) -> HTMLResponse:
    """Render the page for a request that failed."""
    heading = describe_error(request, error).heading
    request_id = request.scope[REQUEST_ID_KEY]
    return render(request, "error.html", heading, error=error, request_id=request_id)


def describe_error(request: PageRequest, error: SkillhallError) -> PageError:
    """Return heading and hint in the visitor's language, as far as there are texts for them."""
    translations = request.translations
    code = error.code if f"error.{error.code}" in translations.messages else "other"
    key = "_".join(filter(None, (error.kind, error.variant)))
    if not error.hint and f"hint.{key}" in translations.messages:
        hint = translations(f"hint.{key}", **error.facts)
    else:
        hint = find_hint(error, {})
    return PageError(translations(f"error.{code}"), str(error), hint)


def form_status(error: SkillhallError | None) -> int:
    """Return the HTTP status of a form that is shown again with its error."""
    return max(422, error_status(error).http_status) if error else 200


def redirect(url: str) -> RedirectResponse:
    """Redirect with status 303, so that the browser follows with GET."""
    return RedirectResponse(url, 303)


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
        "segment": lambda text: quote(text, safe=""),
        "path": quote,
        "bytes": format_file_size,
        "number": lambda number: f"{number:,}",
    }
    environment.globals |= {
        "asset": asset_url,
        "block_types": BLOCK_TYPES,
        "zones": Zone,
        "languages": LANGUAGES,
        "sections": SECTIONS,
        "themes": THEMES,
    }
    return environment


def format_file_size(size: int) -> str:
    """Format a number of bytes with a unit."""
    if size < 1000:  # noqa: PLR2004 - the step between units
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"  # noqa: PLR2004
