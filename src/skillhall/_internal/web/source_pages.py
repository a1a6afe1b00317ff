"""The page of sources and settings, and the page that takes a token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from skillhall._internal.http.credentials import SESSION_COOKIE
from skillhall._internal.http.errors import error_status
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.prompts.prompt_model import SourceSelector
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.web.page_request import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.site import PageError, build_page_error
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall._internal.web.translations import LANGUAGES
from skillhall.errors import FollowingOff, SkillhallError, without_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.prompts.prompt_model import FollowedRepository, SourceStatus
    from skillhall._internal.settings import PromptSettings
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site

_PREFERENCE_LIFETIME = 365 * 24 * 3600  # seconds that a choice is kept
_REPOSITORY_FIELDS = ("repo", "path", "branch")  # the fields of a repository
_MAX_QUERY_LENGTH = 1500  # characters
_MAX_SKIPPED_ROWS = 500  # skipped entries of one source that the page lists
_AGE_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


class Age(NamedTuple):
    """How long ago something was, in the largest unit that fits."""

    unit: str
    amount: int


class SourceRow(NamedTuple):
    """One source, and how it stands."""

    status: SourceStatus
    name: str
    folder: str
    branch: str
    age: Age | None

    @property
    def followed(self) -> FollowedRepository | None:
        """What can be removed."""
        return self.status.followed

    @property
    def anchor(self) -> str:
        """Where the page of skipped entries has those of this source."""
        return _skipped_anchor(self.status)


class SkippedSection(NamedTuple):
    """What one source holds but does not serve."""

    anchor: str
    name: str  # "" for the skills of the run directory
    commit: str
    rows: tuple[SkippedItem, ...]  # the first of them
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
    skipped_count: int  # skills that are not served, whatever their source
    can_scan: bool
    folder: str  # that is scanned
    submitted: SourceSelector  # what was typed into the form of another repository
    is_shared: bool  # with other servers, which would not know what is added here
    list_error: PageError | None  # why the list of repositories cannot be used
    failed_form: str  # what did not work: follow, or something else
    problem: PageError | None

    @property
    def has_followed(self) -> bool:
        """Whether a repository is followed."""
        return any(row.followed for row in self.rows)


@dataclass(frozen=True, slots=True)
class SignInPage(Page):
    """The form that takes a token."""

    return_path: str
    problem: PageError | None


class SourcePages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def show_sources(self, request: PageRequest) -> ByteResponse:
        """How every source stands."""
        return self._render_page(request)

    def show_skipped(self, request: PageRequest) -> ByteResponse:
        """What every source holds but does not serve."""
        own = self._site.collection.snapshot().skipped
        sections = [SkippedSection("own", "", "", own[:_MAX_SKIPPED_ROWS], len(own))]
        for one in self._site.prompt_service.status():
            place = _skipped_anchor(one), one.source, one.commit
            sections.append(
                SkippedSection(*place, one.skipped[:_MAX_SKIPPED_ROWS], len(one.skipped))
            )
        page = SkippedPage(
            build_frame(request, request.translations("skipped.title"), "sources"),
            tuple(section for section in sections if section.total),
        )
        return render_page("skipped.html", page)

    def refresh(self, request: PageRequest) -> ByteResponse:
        """Look for news now."""
        try:
            snapshot = self._site.prompt_service.refresh()
        except SkillhallError as error:
            return self._render_page(request, error)
        self._site.prompt_service.refresh_followed()
        followed = [one for one in self._site.prompt_service.status() if one.followed is not None]
        for stale in (snapshot.stale, *(one.stale for one in followed)):
            if stale is not None:
                return self._render_page(request, HttpError("upstream_error", stale.reason))
        names = [snapshot.source, *(one.source for one in followed)]
        return self._site.redirect_with_notice("/sources", Notice("refreshed", ", ".join(names)))

    def follow(self, request: PageRequest) -> ByteResponse:
        """Read one more repository, whose skills are shown from then on."""
        try:
            added = self._site.prompt_service.follow(_read_selector(request))
        except SkillhallError as error:
            return self._render_page(request, error, "follow")
        return self._site.redirect_with_notice("/sources", Notice("added", added.source))

    def unfollow(self, request: PageRequest) -> ByteResponse:
        """Show the skills of a repository no longer."""
        try:
            removed = self._site.prompt_service.unfollow(request.form.text("key"))
        except SkillhallError as error:
            return self._render_page(request, error)
        name = without_credentials(removed.repo)
        again = _add_again_query(removed) if name == removed.repo else ""
        return self._site.redirect_with_notice("/sources", Notice("unfollowed", name, again))

    def save_preferences(self, request: PageRequest) -> ByteResponse:
        """Keep a choice of language or colours."""
        cookies = []
        for name, known in ((LANGUAGE_COOKIE, LANGUAGES), (THEME_COOKIE, THEMES)):
            given = request.form.text(name.removeprefix("skillhall_"))
            if given in known:
                cookies.append(
                    (
                        b"set-cookie",
                        self._site.credentials.build_cookie(name, given, _PREFERENCE_LIFETIME),
                    )
                )
        return redirect(safe_redirect_path(request.form.text("next")), tuple(cookies))

    def show_sign_in(self, request: PageRequest) -> ByteResponse:
        """The form that takes a token; who needs none is sent on."""
        back = safe_redirect_path(request.query.get("next", ""))
        if not self._site.credentials.is_required:
            return redirect(back)
        return self._render_sign_in(request, back)

    def sign_in(self, request: PageRequest) -> ByteResponse:
        """A cookie for the right token."""
        back = safe_redirect_path(request.form.text("next"))
        if not self._site.credentials.is_required:
            return redirect(back)
        given = request.form.text("token").strip().encode("utf-8", "replace")
        try:
            credential = self._site.credentials.authenticate_token(
                given, request.http_request.scope
            )
        except HttpError as refusal:
            return self._render_sign_in(request, back, refusal)
        if credential is None:
            wrong = HttpError("unauthenticated", request.translations("sign_in.wrong"))
            return self._render_sign_in(request, back, wrong)
        return redirect(
            back, ((b"set-cookie", self._site.credentials.build_session_cookie(credential)),)
        )

    def sign_out(self, request: PageRequest) -> ByteResponse:  # noqa: ARG002 - a call's signature
        """Without the cookie from here on."""
        return redirect(
            "/sign-in",
            ((b"set-cookie", self._site.credentials.build_cookie(SESSION_COOKIE, "", 0)),),
        )

    def _render_page(
        self, request: PageRequest, error: SkillhallError | None = None, failed_form: str = ""
    ) -> ByteResponse:
        shown, prompts = self._site.collection.snapshot(), self._site.settings.prompts
        status, why_not = self._site.prompt_service.status(), self._site.prompt_service.follow_error
        is_shared = isinstance(why_not, FollowingOff)
        page = SourcesPage(
            build_frame(request, request.translations("sources.title"), "sources"),
            rows=_build_rows(status, prompts),
            has_repository=bool(prompts.repo),
            counts=tuple(
                (one, len(shown.ids_of_source(one))) for one in ("user", "system", "repository")
            ),
            skipped_count=len(shown.skipped),
            can_scan=self._site.settings.server.folder_scan,
            folder=DEFAULT_FOLDER,
            submitted=_redact_selector(_read_selector(request)),
            is_shared=is_shared,
            list_error=None if is_shared or why_not is None else build_page_error(request, why_not),
            failed_form=failed_form,
            problem=None if error is None else build_page_error(request, error),
        )
        return render_page(
            "sources.html", page, status=error_status(error).http_status if error else 200
        )

    def _render_sign_in(
        self, request: PageRequest, return_path: str, error: HttpError | None = None
    ) -> ByteResponse:
        frame = build_frame(request, request.translations("sign_in.title"), "")
        problem = None if error is None else build_page_error(request, error)
        status, headers = (error_status(error).http_status, error.headers) if error else (200, ())
        return render_page(
            "sign_in.html", SignInPage(frame, return_path, problem), status=status, headers=headers
        )


def _build_rows(status: Sequence[SourceStatus], prompts: PromptSettings) -> tuple[SourceRow, ...]:
    """How every source stands; the first is the one in the settings, if there is one."""
    rows = [*map(_build_row, status)]
    if prompts.repo:
        rows[:1] = [row._replace(folder=prompts.path, branch=prompts.branch) for row in rows[:1]]
    return tuple(rows)


def _build_row(status: SourceStatus) -> SourceRow:
    age = _age_since(status.checked)
    if status.followed is None:
        return SourceRow(status, status.source, "", "", age)
    repo, folder, branch = status.followed
    return SourceRow(status, without_credentials(repo), folder, branch, age)


def _skipped_anchor(status: SourceStatus) -> str:
    """An id that stays the same while other sources come and go."""
    return f"of-{sha256_hex(f'{status.role} {status.source}'.encode())[:12]}"


def _read_selector(request: PageRequest) -> SourceSelector:
    """The repository in a form, or in the query of what takes a removal back."""
    repo, path, branch = (
        request.form.text(one) or request.query.get(one, "") for one in _REPOSITORY_FIELDS
    )
    return SourceSelector(repo, path, branch)


def _redact_selector(selector: SourceSelector) -> SourceSelector:
    """The same as a page may repeat it."""
    return selector._replace(repo=without_credentials(selector.repo))


def _add_again_query(removed: FollowedRepository) -> str:
    """The query that adds it again, if a cookie can hold it."""
    query = f"?{urlencode(removed._asdict())}"
    return query if len(query) <= _MAX_QUERY_LENGTH else ""


def safe_redirect_path(text: str) -> str:
    """A page of ours to go to, whatever was asked for."""
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii()
    return text if is_ours and text.isprintable() and len(text) < 2000 else "/"  # noqa: PLR2004


def _age_since(moment: str) -> Age | None:
    if not moment:
        return None
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, size in _AGE_UNITS:
        if seconds >= size:
            return Age(unit, seconds // size)
    return Age("seconds", max(0, seconds))
