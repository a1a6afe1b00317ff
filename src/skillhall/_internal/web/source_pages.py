"""The page of sources and settings, and the page that takes a token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from skillhall._internal.http.credentials import SESSION
from skillhall._internal.http.errors import status_of
from skillhall._internal.http.http_error import Refused
from skillhall._internal.prompts.prompt_model import Asked
from skillhall._internal.skill.bundle import sha256_of
from skillhall._internal.web.page_request import LANGUAGE, THEME, THEMES, Notice
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall._internal.web.site import Problem, problem_of
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall._internal.web.translations import LANGUAGES
from skillhall.errors import FollowingOff, SkillhallError, without_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.http.response import Answer
    from skillhall._internal.policy.skipped_items import Skipped
    from skillhall._internal.prompts.prompt_model import Followed, SourceStatus
    from skillhall._internal.settings import PromptSettings
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Site

_YEAR = 365 * 24 * 3600  # seconds that a choice is kept
_PLACE = ("repo", "path", "branch")  # the fields of a repository
_LONGEST_QUERY = 1500  # characters
_ROWS = 500  # skipped entries of one source that the page lists
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


class Age(NamedTuple):
    """How long ago something was, in the largest unit that fits."""

    unit: str
    number: int


class SourceRow(NamedTuple):
    """One source, and how it stands."""

    status: SourceStatus
    name: str
    folder: str
    branch: str
    age: Age | None

    @property
    def followed(self) -> Followed | None:
        """What can be removed."""
        return self.status.followed

    @property
    def anchor(self) -> str:
        """Where the page of skipped entries has those of this source."""
        return _anchor(self.status)


class SkippedSection(NamedTuple):
    """What one source holds but does not serve."""

    anchor: str
    name: str  # "" for the skills of the run directory
    commit: str
    rows: tuple[Skipped, ...]  # the first of them
    total: int


@dataclass(frozen=True, slots=True)
class SkippedPage(Page):
    """What is not served, by source, and why."""

    sections: tuple[SkippedSection, ...]


@dataclass(frozen=True, slots=True)
class SourcesPage(Page):
    """Where skills come from, and what a visitor can choose."""

    rows: tuple[SourceRow, ...]
    has_repository: bool  # in the settings
    counts: tuple[tuple[str, int], ...]  # skills by source
    skipped: int  # skills that are not served, whatever their source
    can_scan: bool
    folder: str  # that is scanned
    asked: Asked  # what was typed into the form of another repository
    is_shared: bool  # with other servers, which would not know what is added here
    unlisted: Problem | None  # why the list of repositories cannot be used
    failed: str  # what did not work: follow, or something else
    problem: Problem | None

    @property
    def follows(self) -> bool:
        """Whether a repository is followed."""
        return any(row.followed for row in self.rows)


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

    def show_skipped(self, visit: Visit) -> Answer:
        """What every source holds but does not serve."""
        own = self._site.collection.show().skipped
        sections = [SkippedSection("own", "", "", own[:_ROWS], len(own))]
        for one in self._site.counter.status():
            place = _anchor(one), one.source, one.commit
            sections.append(SkippedSection(*place, one.skipped[:_ROWS], len(one.skipped)))
        page = SkippedPage(
            frame_of(visit, visit.texts("skipped.title"), "sources"),
            tuple(section for section in sections if section.total),
        )
        return page_answer("skipped.html", page)

    def refresh(self, visit: Visit) -> Answer:
        """Look for news now."""
        try:
            snapshot = self._site.counter.refresh()
        except SkillhallError as error:
            return self._page(visit, error)
        self._site.counter.refresh_followed()
        followed = [one for one in self._site.counter.status() if one.followed is not None]
        for stale in (snapshot.stale, *(one.stale for one in followed)):
            if stale is not None:
                return self._page(visit, Refused("upstream_error", stale.reason))
        names = [snapshot.source, *(one.source for one in followed)]
        return self._site.done("/sources", Notice("refreshed", ", ".join(names)))

    def follow(self, visit: Visit) -> Answer:
        """Read one more repository, whose skills are shown from then on."""
        try:
            added = self._site.counter.follow(_asked(visit))
        except SkillhallError as error:
            return self._page(visit, error, "follow")
        return self._site.done("/sources", Notice("added", added.source))

    def unfollow(self, visit: Visit) -> Answer:
        """Show the skills of a repository no longer."""
        try:
            removed = self._site.counter.unfollow(visit.form.text("key"))
        except SkillhallError as error:
            return self._page(visit, error)
        name = without_credentials(removed.repo)
        again = _again(removed) if name == removed.repo else ""
        return self._site.done("/sources", Notice("unfollowed", name, again))

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
            credential = self._site.keys.fits(given, visit.exchange.scope)
        except Refused as refusal:
            return self._sign_in_page(visit, back, refusal)
        if credential is None:
            wrong = Refused("unauthenticated", visit.texts("sign_in.wrong"))
            return self._sign_in_page(visit, back, wrong)
        return redirect(back, ((b"set-cookie", self._site.keys.session_cookie(credential)),))

    def sign_out(self, visit: Visit) -> Answer:  # noqa: ARG002 - a call's signature
        """Without the cookie from here on."""
        return redirect("/sign-in", ((b"set-cookie", self._site.keys.cookie(SESSION, "", 0)),))

    def _page(self, visit: Visit, error: SkillhallError | None = None, failed: str = "") -> Answer:
        shown, prompts = self._site.collection.show(), self._site.settings.prompts
        status, why_not = self._site.counter.status(), self._site.counter.why_not_followed
        is_shared = isinstance(why_not, FollowingOff)
        page = SourcesPage(
            frame_of(visit, visit.texts("sources.title"), "sources"),
            rows=_rows(status, prompts),
            has_repository=bool(prompts.repo),
            counts=tuple(
                (one, len(shown.of_source(one))) for one in ("user", "system", "repository")
            ),
            skipped=len(shown.skipped),
            can_scan=self._site.settings.server.folder_scan,
            folder=DEFAULT_FOLDER,
            asked=_shown(_asked(visit)),
            is_shared=is_shared,
            unlisted=None if is_shared or why_not is None else problem_of(visit, why_not),
            failed=failed,
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


def _rows(status: Sequence[SourceStatus], prompts: PromptSettings) -> tuple[SourceRow, ...]:
    """How every source stands; the first is the one in the settings, if there is one."""
    rows = [*map(_row, status)]
    if prompts.repo:
        rows[:1] = [row._replace(folder=prompts.path, branch=prompts.branch) for row in rows[:1]]
    return tuple(rows)


def _row(status: SourceStatus) -> SourceRow:
    age = _age(status.checked)
    if status.followed is None:
        return SourceRow(status, status.source, "", "", age)
    repo, folder, branch = status.followed
    return SourceRow(status, without_credentials(repo), folder, branch, age)


def _anchor(status: SourceStatus) -> str:
    """An id that stays the same while other sources come and go."""
    return f"of-{sha256_of(f'{status.role} {status.source}'.encode())[:12]}"


def _asked(visit: Visit) -> Asked:
    """The repository in a form, or in the query of what takes a removal back."""
    repo, path, branch = (visit.form.text(one) or visit.query.get(one, "") for one in _PLACE)
    return Asked(repo, path, branch)


def _shown(asked: Asked) -> Asked:
    """The same as a page may repeat it."""
    return asked._replace(repo=without_credentials(asked.repo))


def _again(removed: Followed) -> str:
    """The query that adds it again, if a cookie can hold it."""
    query = f"?{urlencode(removed._asdict())}"
    return query if len(query) <= _LONGEST_QUERY else ""


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
