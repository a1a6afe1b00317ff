"""The pages that bring skills into a session: looked at first, where there is something to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cache import PendingStore
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.page_base import (
    SessionPageBase,
    optional_page_error,
    page_status,
    session_url,
)
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall._internal.wiring.sources import read_upload
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.importer import ImportChoices, ImportConflict, ImportOptions
from skillhall._internal.workspace.skill_blocks import LOCAL_SOURCE, UPLOAD_SOURCE, Provenance
from skillhall._internal.workspace.validation import parse_zone
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import PageError, Site
    from skillhall._internal.workspace import Session

MAX_LISTED_SKILLS = 200  # skills of the server that are offered at once


@dataclass(frozen=True, slots=True)
class SessionImportPage(Page):
    """The ways in."""

    session: Session
    skills: tuple[Skill, ...]
    is_truncated: bool
    query: str  # that offered skills were searched for
    source: str
    folder: str
    can_scan: bool
    failed_form: str
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class SessionReviewPage(Page):
    """What waits, to be chosen from."""

    session: Session
    import_id: str
    choices: ImportChoices
    existing_names: frozenset[str]  # names of skills that the session has
    chosen: frozenset[str]
    on_conflict: str
    zone: str
    problem: PageError | None

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Where they can go."""
        return tuple(Zone)


class _PendingSessionImport(NamedTuple):
    """What waits for an answer."""

    session: str
    choices: ImportChoices


class SessionImportPages(SessionPageBase):
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._pending: PendingStore[_PendingSessionImport] = PendingStore()

    def show_form(self, request: PageRequest) -> ByteResponse:
        """The ways in."""
        return self._render_form(request)

    def import_files(self, request: PageRequest) -> ByteResponse:
        """Files that were chosen or dropped."""
        return self._import_or_review(request, "files", self._find_uploaded)

    def import_source(self, request: PageRequest) -> ByteResponse:
        """A repository or a web address."""
        text = request.form.text("source").strip()
        return self._import_or_review(
            request, "address", lambda _: self._workspace().importer.read_source(text)
        )

    def import_folder(self, request: PageRequest) -> ByteResponse:
        """A folder of the server's machine."""
        text = request.form.text("folder").strip()
        return self._import_or_review(
            request, "folder", lambda _: self._workspace().importer.read_folder(text)
        )

    def import_from_collection(self, request: PageRequest) -> ByteResponse:
        """Skills of this server."""
        return self._import_or_review(request, "skills", self._find_selected)

    def show_review(self, request: PageRequest) -> ByteResponse:
        """What waits, to be chosen from."""
        found = self._find_pending(request)
        chosen = frozenset(one.id for one in found.candidates if not one.reasons)
        return self._render_review(request, found, chosen)

    def confirm(self, request: PageRequest) -> ByteResponse:
        """Import what was chosen."""
        found, form = self._find_pending(request), request.form
        chosen = tuple(form.values("chosen"))
        if not chosen:
            return self._render_review(request, found, frozenset())
        try:
            zone = parse_zone(form.text("zone")) if form.text("zone") else None
            same = form.text("same")
            wish = ImportOptions(
                zone,
                ImportConflict(same) if same in tuple(ImportConflict) else ImportConflict.REFUSE,
                chosen,
            )
            answer = self._import(request.path_parts[1], found, wish)
        except SkillhallError as error:
            return self._render_review(request, found, frozenset(chosen), error)
        self._pending.drop(request.path_parts[3])
        return answer

    def _import_or_review(
        self, request: PageRequest, form_name: str, find: Callable[[PageRequest], ImportChoices]
    ) -> ByteResponse:
        """Import at once what leaves nothing to ask; let the rest wait to be looked at."""
        session = self._workspace().sessions.find(request.path_parts[1]).id
        try:
            found = find(request)
            is_plain = len(found.candidates) == 1 or form_name == "skills"
            has_notes = any(one.findings or one.reasons for one in found.candidates)
            if (
                is_plain
                and not has_notes
                and not self._workspace().importer.find_conflicts(session, found)
            ):
                return self._import(session, found, ImportOptions())
        except SkillhallError as error:
            return self._render_form(request, form_name, error)
        key = self._pending.add(_PendingSessionImport(session, found), found.size)
        return redirect(f"{session_url(session)}/import/{key}")

    def _import(self, session: str, choices: ImportChoices, options: ImportOptions) -> ByteResponse:
        done = self._workspace().importer.import_choices(session, choices, options)
        names = ", ".join(one.content.skill.name for one in done.blocks if one.content.skill)
        return self._site.redirect_with_notice(session_url(session), Notice("imported", names))

    def _find_uploaded(self, request: PageRequest) -> ImportChoices:
        files, imports = request.form.files, self._workspace().importer
        if len(files) == 1 and "/" not in files[0][0]:
            return imports.read_upload(files[0][1], files[0][0])
        name = files[0][0].partition("/")[0] if files else ""
        return imports.read_bundles(read_upload(files), Provenance(UPLOAD_SOURCE, name))

    def _find_selected(self, request: PageRequest) -> ImportChoices:
        collection, imports = self._site.collection, self._workspace().importer
        found = []
        for identity in request.form.values("skill")[:MAX_LISTED_SKILLS]:
            one = imports.read_bundles(
                [collection.bundle(identity)], Provenance(LOCAL_SOURCE, identity)
            )
            found += [row._replace(local_path=identity) for row in one.candidates]
        return ImportChoices(tuple(found), Provenance(LOCAL_SOURCE, "skillhall"))

    def _find_pending(self, request: PageRequest) -> ImportChoices:
        asked = self._pending.find(request.path_parts[3])
        self._workspace().sessions.find(request.path_parts[1])
        return asked.choices

    def _render_form(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        session = self._workspace().sessions.find(request.path_parts[1])
        text = request.query.get("q", "").strip()[:200]
        shown = self._site.collection.snapshot()
        ids = [one.id for one in self._site.collection.search(text).skills] if text else shown.ids
        offered = [shown.skills[one] for one in ids if one in shown.skills]
        page = SessionImportPage(
            build_frame(request, request.translations("session_import.title"), "sessions"),
            session=session,
            skills=tuple(offered[:MAX_LISTED_SKILLS]),
            is_truncated=len(offered) > MAX_LISTED_SKILLS,
            query=text,
            source=request.form.text("source"),
            folder=request.form.text("folder") or DEFAULT_FOLDER,
            can_scan=self._site.settings.server.folder_scan,
            failed_form=failed_form,
            problem=optional_page_error(request, error),
        )
        return render_page("session_import.html", page, status=page_status(error))

    def _render_review(
        self,
        request: PageRequest,
        choices: ImportChoices,
        chosen: frozenset[str],
        error: SkillhallError | None = None,
    ) -> ByteResponse:
        desk = self._workspace()
        session = desk.sessions.find(request.path_parts[1])
        page = SessionReviewPage(
            build_frame(request, request.translations("session_import.choose_title"), "sessions"),
            session=session,
            import_id=request.path_parts[3],
            choices=choices,
            existing_names=desk.importer.find_conflicts(session.id, choices),
            chosen=chosen,
            on_conflict=request.form.text("same") or ImportConflict.REPLACE,
            zone=request.form.text("zone") or Zone.STABLE,
            problem=optional_page_error(request, error),
        )
        return render_page("session_review.html", page, status=page_status(error))
