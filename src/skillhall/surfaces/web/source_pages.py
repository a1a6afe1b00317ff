"""The page of sources and settings, and the page that takes a token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from skillhall.errors import SkillhallError, without_credentials
from skillhall.surfaces.http.refusal import Refused
from skillhall.surfaces.keys import SESSION
from skillhall.surfaces.rest.errors import status_of
from skillhall.surfaces.web.import_pages import DEFAULT_FOLDER
from skillhall.surfaces.web.rendering import Page, frame_of, page_answer, redirect
from skillhall.surfaces.web.site import Problem, problem_of
from skillhall.surfaces.web.texts import LANGUAGES
from skillhall.surfaces.web.visit import LANGUAGE, THEME, THEMES, Notice

if TYPE_CHECKING:
    from skillhall.prompts.model import SourceStatus
    from skillhall.surfaces.http.answer import Answer
    from skillhall.surfaces.web.site import Site
    from skillhall.surfaces.web.visit import Visit

_YEAR = 365 * 24 * 3600  # seconds that a choice is kept
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


class Age(NamedTuple):
    """How long ago something was, in the largest unit that fits."""

    unit: str
    number: int


class SourceRow(NamedTuple):
    """One source, and how it stands."""

    status: SourceStatus
    is_configured: bool
    age: Age | None


@dataclass(frozen=True, slots=True)
class SourcesPage(Page):
    """Where skills come from, and what a visitor can choose."""

    rows: tuple[SourceRow, ...]
    repository: str  # as configured; "" without one
    branch: str
    folder: str  # of the repository
    counts: tuple[tuple[str, int], ...]  # skills by source
    can_scan: bool
    scanned_folder: str
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class SignInPage(Page):
    """The form that takes a token."""

    back: str
    problem: Problem | None


class SourcePages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def show_sources(self, visit: Visit) -> Answer:
        """How every source stands."""
        return self._page(visit)

    def refresh(self, visit: Visit) -> Answer:
        """Look for news now."""
        try:
            snapshot = self._site.counter.refresh()
        except SkillhallError as error:
            return self._page(visit, error)
        if snapshot.stale is not None:
            return self._page(visit, Refused("upstream_error", snapshot.stale.reason))
        return self._site.done("/sources", Notice("refreshed", snapshot.source))

    def choose(self, visit: Visit) -> Answer:
        """Keep a choice of language or colours."""
        cookies = []
        for name, known in ((LANGUAGE, LANGUAGES), (THEME, THEMES)):
            given = visit.form.text(name.removeprefix("skillhall_"))
            if given in known:
                cookies.append((b"set-cookie", self._site.keys.cookie(name, given, _YEAR)))
        return redirect(safe_place(visit.form.text("next")), tuple(cookies))

    def show_sign_in(self, visit: Visit) -> Answer:
        """The form that takes a token; who needs none is sent on."""
        back = safe_place(visit.query.get("next", ""))
        if not self._site.keys.are_needed:
            return redirect(back)
        return self._sign_in_page(visit, back)

    def sign_in(self, visit: Visit) -> Answer:
        """A cookie for the right token."""
        back = safe_place(visit.form.text("next"))
        if not self._site.keys.are_needed:
            return redirect(back)
        given = visit.form.text("token").strip().encode("utf-8", "replace")
        try:
            is_right = self._site.keys.fits(given, visit.exchange.scope)
        except Refused as refusal:
            return self._sign_in_page(visit, back, refusal)
        if not is_right:
            wrong = Refused("unauthenticated", visit.texts("sign_in.wrong"))
            return self._sign_in_page(visit, back, wrong)
        return redirect(back, ((b"set-cookie", self._site.keys.session_cookie()),))

    def sign_out(self, visit: Visit) -> Answer:  # noqa: ARG002 - a call's signature
        """Without the cookie from here on."""
        return redirect("/sign-in", ((b"set-cookie", self._site.keys.cookie(SESSION, "", 0)),))

    def _page(self, visit: Visit, error: SkillhallError | None = None) -> Answer:
        shown, prompts = self._site.collection.show(), self._site.settings.prompts
        status = self._site.counter.status()
        rows = tuple(
            SourceRow(one, number == 0 and bool(prompts.repo), _age(one.checked))
            for number, one in enumerate(status)
        )
        page = SourcesPage(
            frame_of(visit, visit.texts("sources.title"), "sources"),
            rows=rows,
            repository=without_credentials(prompts.repo),
            branch=prompts.branch,
            folder=prompts.path,
            counts=tuple(
                (one, len(shown.of_source(one))) for one in ("user", "system", "repository")
            ),
            can_scan=self._site.settings.server.folder_scan,
            scanned_folder=DEFAULT_FOLDER,
            problem=None if error is None else problem_of(visit, error),
        )
        return page_answer("sources.html", page, status=status_of(error).http if error else 200)

    def _sign_in_page(self, visit: Visit, back: str, error: Refused | None = None) -> Answer:
        frame = frame_of(visit, visit.texts("sign_in.title"), "")
        problem = None if error is None else problem_of(visit, error)
        status, headers = (status_of(error).http, error.headers) if error else (200, ())
        return page_answer(
            "sign_in.html", SignInPage(frame, back, problem), status=status, headers=headers
        )


def safe_place(text: str) -> str:
    """A page of ours to go to, whatever was asked for."""
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii()
    return text if is_ours and text.isprintable() and len(text) < 2000 else "/"  # noqa: PLR2004


def _age(moment: str) -> Age | None:
    if not moment:
        return None
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, size in _UNITS:
        if seconds >= size:
            return Age(unit, seconds // size)
    return Age("seconds", max(0, seconds))
