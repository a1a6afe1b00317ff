"""Pages for sources, preferences and sign-in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from skillhall._internal.http.credentials import SESSION_COOKIE
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.prompts.prompt_model import SourceSelector
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.web.page_request import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.site import PageError, optional_page_error, page_status
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

_PREFERENCE_LIFETIME = 365 * 24 * 3600  # seconds
_REPOSITORY_FIELDS = ("repo", "path", "branch")
_MAX_QUERY_LENGTH = 1500  # characters that fit into the notice cookie
_MAX_SKIPPED_ROWS = 500  # listed per source
_AGE_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


class Age(NamedTuple):
    """Elapsed time in its largest unit."""

    unit: str
    amount: int


class SourceRow(NamedTuple):
    """Source and its status."""

    status: SourceStatus
    name: str
    folder: str
    branch: str
    age: Age | None

    @property
    def followed(self) -> FollowedRepository | None:
        """Followed repository, which can be removed; None for other sources."""
        return self.status.followed

    @property
    def anchor(self) -> str:
        """Fragment of this source on the page of skipped entries."""
        return _skipped_anchor(self.status)


class SkippedSection(NamedTuple):
    """Skipped entries of one source."""

    anchor: str
    name: str  # "" for the skills of this server
    commit: str
    rows: tuple[SkippedItem, ...]  # at most _MAX_SKIPPED_ROWS
    total: int


@dataclass(frozen=True, slots=True)
class SkippedPage(Page):
    """Skipped entries by source."""

    sections: tuple[SkippedSection, ...]


@dataclass(frozen=True, slots=True)
class SourcesPage(Page):
    """Sources, and forms to add a repository and scan a folder."""

    rows: tuple[SourceRow, ...]
    has_repository: bool  # in the settings
    counts: tuple[tuple[str, int], ...]  # skills by source
    skipped_count: int  # of all sources
    can_scan: bool
    folder: str  # to scan
    submitted: SourceSelector  # values of the form that adds a repository
    is_shared: bool  # other servers share the database but not the list of repositories
    list_error: PageError | None  # why repositories cannot be added
    failed_form: str  # "follow", or ""
    problem: PageError | None

    @property
    def has_followed(self) -> bool:
        """Whether any repository is followed."""
        return any(row.followed for row in self.rows)


@dataclass(frozen=True, slots=True)
class SignInPage(Page):
    """Sign-in form."""

    return_path: str
    problem: PageError | None


class SourcePages:
    """Handlers of the source, preference and sign-in pages."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def show_sources(self, request: PageRequest) -> ByteResponse:
        """Show the status of every source."""
        return self._render_page(request)

    def show_skipped(self, request: PageRequest) -> ByteResponse:
        """Show the skipped entries of every source."""
        own = self._site.collection.snapshot().skipped
        sections = [SkippedSection("own", "", "", own[:_MAX_SKIPPED_ROWS], len(own))]
        for status in self._site.prompt_service.status():
            rows, total = status.skipped[:_MAX_SKIPPED_ROWS], len(status.skipped)
            anchor = _skipped_anchor(status)
            sections.append(SkippedSection(anchor, status.source, status.commit, rows, total))
        page = SkippedPage(
            build_frame(request, request.translations("skipped.title"), "sources"),
            tuple(section for section in sections if section.total),
        )
        return render_page("skipped.html", page)

    def refresh(self, request: PageRequest) -> ByteResponse:
        """Fetch every source now."""
        try:
            snapshot = self._site.prompt_service.refresh()
        except SkillhallError as error:
            return self._render_page(request, error)
        self._site.prompt_service.refresh_followed()
        followed = [row for row in self._site.prompt_service.status() if row.followed is not None]
        for stale in (snapshot.stale, *(row.stale for row in followed)):
            if stale is not None:
                return self._render_page(request, HttpError("upstream_error", stale.reason))
        names = [snapshot.source, *(row.source for row in followed)]
        return self._site.redirect_with_notice("/sources", Notice("refreshed", ", ".join(names)))

    def follow(self, request: PageRequest) -> ByteResponse:
        """Add a repository, whose skills are listed from then on."""
        try:
            added = self._site.prompt_service.follow(_read_selector(request))
        except SkillhallError as error:
            return self._render_page(request, error, "follow")
        return self._site.redirect_with_notice("/sources", Notice("added", added.source))

    def unfollow(self, request: PageRequest) -> ByteResponse:
        """Remove a repository and its skills."""
        try:
            removed = self._site.prompt_service.unfollow(request.form.text("key"))
        except SkillhallError as error:
            return self._render_page(request, error)
        name = without_credentials(removed.repo)
        # A URL with credentials must not be stored in the notice cookie.
        undo_query = _undo_query(removed) if name == removed.repo else ""
        return self._site.redirect_with_notice("/sources", Notice("unfollowed", name, undo_query))

    def save_preferences(self, request: PageRequest) -> ByteResponse:
        """Save the chosen language or theme in a cookie."""
        cookies = []
        for name, known in ((LANGUAGE_COOKIE, LANGUAGES), (THEME_COOKIE, THEMES)):
            value = request.form.text(name.removeprefix("skillhall_"))
            if value in known:
                cookie = self._site.credentials.build_cookie(name, value, _PREFERENCE_LIFETIME)
                cookies.append((b"set-cookie", cookie))
        return redirect(safe_redirect_path(request.form.text("next")), tuple(cookies))

    def show_sign_in(self, request: PageRequest) -> ByteResponse:
        """Show the sign-in form, or redirect if no token is required."""
        return_path = safe_redirect_path(request.query.get("next", ""))
        if not self._site.credentials.is_required:
            return redirect(return_path)
        return self._render_sign_in(request, return_path)

    def sign_in(self, request: PageRequest) -> ByteResponse:
        """Sign in with an access token."""
        return_path = safe_redirect_path(request.form.text("next"))
        if not self._site.credentials.is_required:
            return redirect(return_path)
        token = request.form.text("token").strip().encode("utf-8", "replace")
        credentials = self._site.credentials
        try:
            credential = credentials.authenticate_token(token, request.http_request.scope)
        except HttpError as error:
            return self._render_sign_in(request, return_path, error)
        if credential is None:
            invalid = HttpError("unauthenticated", request.translations("sign_in.wrong"))
            return self._render_sign_in(request, return_path, invalid)
        cookie = credentials.build_session_cookie(credential)
        return redirect(return_path, ((b"set-cookie", cookie),))

    def sign_out(self, request: PageRequest) -> ByteResponse:  # noqa: ARG002 - a page handler
        """Delete the session cookie."""
        cookie = self._site.credentials.build_cookie(SESSION_COOKIE, "", 0)
        return redirect("/sign-in", ((b"set-cookie", cookie),))

    def _render_page(
        self, request: PageRequest, error: SkillhallError | None = None, failed_form: str = ""
    ) -> ByteResponse:
        snapshot, prompts = self._site.collection.snapshot(), self._site.settings.prompts
        service, sources = self._site.prompt_service, ("user", "system", "repository")
        is_shared = isinstance(service.follow_error, FollowingOff)
        page = SourcesPage(
            build_frame(request, request.translations("sources.title"), "sources"),
            rows=_build_rows(service.status(), prompts),
            has_repository=bool(prompts.repo),
            counts=tuple((source, len(snapshot.ids_of_source(source))) for source in sources),
            skipped_count=len(snapshot.skipped),
            can_scan=self._site.settings.server.folder_scan,
            folder=DEFAULT_FOLDER,
            submitted=_redact_selector(_read_selector(request)),
            is_shared=is_shared,
            list_error=None if is_shared else optional_page_error(request, service.follow_error),
            failed_form=failed_form,
            problem=optional_page_error(request, error),
        )
        return render_page("sources.html", page, status=page_status(error))

    def _render_sign_in(
        self, request: PageRequest, return_path: str, error: HttpError | None = None
    ) -> ByteResponse:
        frame = build_frame(request, request.translations("sign_in.title"), "")
        page = SignInPage(frame, return_path, optional_page_error(request, error))
        headers = error.headers if error else ()
        return render_page("sign_in.html", page, status=page_status(error), headers=headers)


def _build_rows(status: Sequence[SourceStatus], prompts: PromptSettings) -> tuple[SourceRow, ...]:
    rows = [*map(_build_row, status)]
    if prompts.repo:  # the repository of the settings is the first source
        rows[:1] = [row._replace(folder=prompts.path, branch=prompts.branch) for row in rows[:1]]
    return tuple(rows)


def _build_row(status: SourceStatus) -> SourceRow:
    age = _age_since(status.checked)
    if status.followed is None:
        return SourceRow(status, status.source, "", "", age)
    repo, folder, branch = status.followed
    return SourceRow(status, without_credentials(repo), folder, branch, age)


def _skipped_anchor(status: SourceStatus) -> str:
    """Return a fragment that does not depend on the other sources."""
    return f"of-{sha256_hex(f'{status.role} {status.source}'.encode())[:12]}"


def _read_selector(request: PageRequest) -> SourceSelector:
    """Return the repository of the form, or of the query of an undo URL."""
    form, query = request.form, request.query
    values = (form.text(field) or query.get(field, "") for field in _REPOSITORY_FIELDS)
    repo, path, branch = values
    return SourceSelector(repo, path, branch)


def _redact_selector(selector: SourceSelector) -> SourceSelector:
    return selector._replace(repo=without_credentials(selector.repo))


def _undo_query(removed: FollowedRepository) -> str:
    """Return the query that adds the repository again; "" if it is too long."""
    query = f"?{urlencode(removed._asdict())}"
    return query if len(query) <= _MAX_QUERY_LENGTH else ""


def safe_redirect_path(text: str) -> str:
    """Return the path if it leads to a page of this server, else "/"."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii()
    return text if is_local and text.isprintable() and len(text) < 2000 else "/"  # noqa: PLR2004


def _age_since(moment: str) -> Age | None:
    if not moment:
        return None
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, size in _AGE_UNITS:
        if seconds >= size:
            return Age(unit, seconds // size)
    return Age("seconds", max(0, seconds))
