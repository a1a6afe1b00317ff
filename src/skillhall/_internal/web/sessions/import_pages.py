"""Pages that import skills into a session, with a review if one is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cache import PendingStore
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.sessions.page_base import SessionPageBase, session_url
from skillhall._internal.web.site import PageError, optional_page_error, page_status
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall._internal.wiring.sources import read_upload
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.importer import ImportChoices, ImportConflict, ImportOptions
from skillhall._internal.workspace.skill_blocks import LOCAL_SOURCE, UPLOAD_SOURCE, Provenance
from skillhall._internal.workspace.validation import parse_zone
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site
    from skillhall._internal.workspace import Session

MAX_LISTED_SKILLS = 200  # of this server


@dataclass(frozen=True, slots=True)
class SessionImportPage(Page):
    """Forms for every kind of source."""

    session: Session
    skills: tuple[CatalogSkill, ...]
    is_truncated: bool
    query: str  # search in the skills of this server
    source: str
    folder: str
    can_scan: bool
    failed_form: str
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class SessionReviewPage(Page):
    """Candidates of a pending import, to select from."""

    session: Session
    import_id: str
    choices: ImportChoices
    existing_names: frozenset[str]  # candidates that the session already has
    chosen: frozenset[str]
    on_conflict: str
    zone: str
    problem: PageError | None

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Zones to choose from."""
        return tuple(Zone)


class _PendingSessionImport(NamedTuple):
    """Import that waits for confirmation."""

    session: str
    choices: ImportChoices


class SessionImportPages(SessionPageBase):
    """Handlers of the session import pages."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._pending: PendingStore[_PendingSessionImport] = PendingStore()

    def show_form(self, request: PageRequest) -> ByteResponse:
        """Show the import forms."""
        return self._render_form(request)

    def import_files(self, request: PageRequest) -> ByteResponse:
        """Import uploaded files."""
        return self._import_or_review(request, "files", self._read_uploaded)

    def import_source(self, request: PageRequest) -> ByteResponse:
        """Import from a repository or URL."""
        text, importer = request.form.text("source").strip(), self._workspace().importer
        return self._import_or_review(request, "source", lambda _: importer.read_source(text))

    def import_folder(self, request: PageRequest) -> ByteResponse:
        """Import from a folder on the server."""
        text, importer = request.form.text("folder").strip(), self._workspace().importer
        return self._import_or_review(request, "folder", lambda _: importer.read_folder(text))

    def import_from_collection(self, request: PageRequest) -> ByteResponse:
        """Import skills of this server."""
        return self._import_or_review(request, "skills", self._read_selected)

    def show_review(self, request: PageRequest) -> ByteResponse:
        """Show the candidates of a pending import."""
        choices = self._find_pending(request)
        chosen = frozenset(row.id for row in choices.candidates if not row.reasons)
        return self._render_review(request, choices, chosen)

    def confirm(self, request: PageRequest) -> ByteResponse:
        """Import the selected candidates."""
        choices, form = self._find_pending(request), request.form
        chosen = tuple(form.values("chosen"))
        if not chosen:
            return self._render_review(request, choices, frozenset())
        try:
            zone = parse_zone(form.text("zone")) if form.text("zone") else None
            on_conflict, refuse = form.text("on_conflict"), ImportConflict.REFUSE
            conflict = ImportConflict(on_conflict) if on_conflict in [*ImportConflict] else refuse
            options = ImportOptions(zone, conflict, chosen)
            response = self._import(request.path_parts[1], choices, options)
        except SkillhallError as error:
            return self._render_review(request, choices, frozenset(chosen), error)
        self._pending.drop(request.path_parts[3])
        return response

    def _import_or_review(
        self, request: PageRequest, form_name: str, read: Callable[[PageRequest], ImportChoices]
    ) -> ByteResponse:
        """Import candidates without findings or conflicts; review all others first."""
        workspace = self._workspace()
        session_id = workspace.sessions.find(request.path_parts[1]).id
        try:
            choices = read(request)
            is_explicit = len(choices.candidates) == 1 or form_name == "skills"
            is_clean = not any(row.findings or row.reasons for row in choices.candidates)
            conflicts = workspace.importer.find_conflicts
            if is_explicit and is_clean and not conflicts(session_id, choices):
                return self._import(session_id, choices, ImportOptions())
        except SkillhallError as error:
            return self._render_form(request, form_name, error)
        key = self._pending.add(_PendingSessionImport(session_id, choices), choices.size)
        return redirect(f"{session_url(session_id)}/import/{key}")

    def _import(self, session: str, choices: ImportChoices, options: ImportOptions) -> ByteResponse:
        blocks = self._workspace().importer.import_choices(session, choices, options).blocks
        names = ", ".join(row.content.skill.name for row in blocks if row.content.skill)
        return self._site.redirect_with_notice(session_url(session), Notice("imported", names))

    def _read_uploaded(self, request: PageRequest) -> ImportChoices:
        files, importer = request.form.files, self._workspace().importer
        if len(files) == 1 and "/" not in files[0][0]:
            return importer.read_upload(files[0][1], files[0][0])
        name = files[0][0].partition("/")[0] if files else ""
        return importer.read_bundles(read_upload(files), Provenance(UPLOAD_SOURCE, name))

    def _read_selected(self, request: PageRequest) -> ImportChoices:
        collection, importer = self._site.collection, self._workspace().importer
        candidates = []
        for skill_id in request.form.values("skill")[:MAX_LISTED_SKILLS]:
            provenance = Provenance(LOCAL_SOURCE, skill_id)
            choices = importer.read_bundles([collection.bundle(skill_id)], provenance)
            candidates += [row._replace(local_path=skill_id) for row in choices.candidates]
        return ImportChoices(tuple(candidates), Provenance(LOCAL_SOURCE, "skillhall"))

    def _find_pending(self, request: PageRequest) -> ImportChoices:
        pending = self._pending.find(request.path_parts[3])
        self._workspace().sessions.find(request.path_parts[1])  # 404 if the session was deleted
        return pending.choices

    def _render_form(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        session = self._workspace().sessions.find(request.path_parts[1])
        text = request.query.get("q", "").strip()[:200]
        collection, listed = self._site.collection, self._site.collection.snapshot()
        ids = [result.id for result in collection.search(text).skills] if text else listed.ids
        skills = [listed.skills[skill_id] for skill_id in ids if skill_id in listed.skills]
        page = SessionImportPage(
            build_frame(request, request.translations("session_import.title"), "sessions"),
            session=session,
            skills=tuple(skills[:MAX_LISTED_SKILLS]),
            is_truncated=len(skills) > MAX_LISTED_SKILLS,
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
        workspace = self._workspace()
        session = workspace.sessions.find(request.path_parts[1])
        page = SessionReviewPage(
            build_frame(request, request.translations("session_import.choose_title"), "sessions"),
            session=session,
            import_id=request.path_parts[3],
            choices=choices,
            existing_names=workspace.importer.find_conflicts(session.id, choices),
            chosen=chosen,
            on_conflict=request.form.text("on_conflict") or ImportConflict.REPLACE,
            zone=request.form.text("zone") or Zone.STABLE,
            problem=optional_page_error(request, error),
        )
        return render_page("session_review.html", page, status=page_status(error))
