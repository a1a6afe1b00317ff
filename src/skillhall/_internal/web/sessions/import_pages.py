"""Pages that import skills into a session, with a review if one is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.cache import PendingStore
from skillhall._internal.web.rendering import redirect, render
from skillhall._internal.web.site import PageHandlers
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall._internal.wiring.sources import read_upload
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.importer import ImportChoices, ImportConflict, ImportOptions
from skillhall._internal.workspace.skill_blocks import LOCAL_SOURCE, UPLOAD_SOURCE, Provenance
from skillhall._internal.workspace.validation import parse_zone
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site

MAX_LISTED_SKILLS = 200  # of this server


class SessionImportPages(PageHandlers):
    """Handlers of the session import pages."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._pending: PendingStore[ImportChoices] = PendingStore()

    def show_form(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> Response:
        """Show the import forms."""
        session = self._workspace.sessions.find(request.path_params["id"])
        text = request.query_params.get("q", "").strip()[:200]
        collection, listed = self._collection, self._collection.snapshot()
        ids = [result.id for result in collection.search(text).skills] if text else listed.ids
        skills = [listed.skills[skill_id] for skill_id in ids if skill_id in listed.skills]
        return render(
            request,
            "session_import.html",
            error=error,
            session=session,
            skills=tuple(skills[:MAX_LISTED_SKILLS]),
            is_truncated=len(skills) > MAX_LISTED_SKILLS,
            query=text,
            source=request.field("source"),
            folder=request.field("folder") or DEFAULT_FOLDER,
            can_scan=self._site.settings.server.folder_scan,
            failed_form=failed_form,
        )

    def import_files(self, request: PageRequest) -> Response:
        """Import uploaded files."""
        return self._import_or_review(request, "files", self._read_uploaded)

    def import_source(self, request: PageRequest) -> Response:
        """Import from a repository or URL."""
        text, importer = request.field("source").strip(), self._workspace.importer
        return self._import_or_review(request, "source", lambda _: importer.read_source(text))

    def import_folder(self, request: PageRequest) -> Response:
        """Import from a folder on the server."""
        text, importer = request.field("folder").strip(), self._workspace.importer
        return self._import_or_review(request, "folder", lambda _: importer.read_folder(text))

    def import_from_collection(self, request: PageRequest) -> Response:
        """Import skills of this server."""
        return self._import_or_review(request, "skills", self._read_selected)

    def show_review(self, request: PageRequest) -> Response:
        """Show the candidates of a pending import."""
        choices = self._find_pending(request)
        chosen = frozenset(row.id for row in choices.candidates if not row.reasons)
        return self._render_review(request, choices, chosen)

    def confirm(self, request: PageRequest) -> Response:
        """Import the selected candidates."""
        choices = self._find_pending(request)
        chosen = tuple(request.fields.getlist("chosen"))
        if not chosen:
            return self._render_review(request, choices, frozenset())
        try:
            zone = parse_zone(request.field("zone")) if request.field("zone") else None
            on_conflict, refuse = request.field("on_conflict"), ImportConflict.REFUSE
            conflict = ImportConflict(on_conflict) if on_conflict in [*ImportConflict] else refuse
            options = ImportOptions(zone, conflict, chosen)
            response = self._import(request.path_params["id"], choices, options)
        except SkillhallError as error:
            return self._render_review(request, choices, frozenset(chosen), error)
        self._pending.drop(request.path_params["review"])
        return response

    def _import_or_review(
        self, request: PageRequest, form_name: str, read: Callable[[PageRequest], ImportChoices]
    ) -> Response:
        """Import candidates without findings or conflicts; review all others first."""
        workspace = self._workspace
        session_id = workspace.sessions.find(request.path_params["id"]).id
        try:
            choices = read(request)
            is_explicit = len(choices.candidates) == 1 or form_name == "skills"
            is_clean = not any(row.findings or row.reasons for row in choices.candidates)
            conflicts = workspace.importer.find_conflicts
            if is_explicit and is_clean and not conflicts(session_id, choices):
                return self._import(session_id, choices, ImportOptions())
        except SkillhallError as error:
            return self.show_form(request, form_name, error)
        key = self._pending.add(choices, choices.size)
        return redirect(f"/session/{session_id}/import/{key}")

    def _import(self, session: str, choices: ImportChoices, options: ImportOptions) -> Response:
        blocks = self._workspace.importer.import_choices(session, choices, options).blocks
        names = ", ".join(row.content.skill.name for row in blocks if row.content.skill)
        return self._site.redirect(f"/session/{session}", "imported", names)

    def _read_uploaded(self, request: PageRequest) -> ImportChoices:
        files, importer = request.files, self._workspace.importer
        if len(files) == 1 and "/" not in files[0][0]:
            return importer.read_upload(files[0][1], files[0][0])
        name = files[0][0].partition("/")[0] if files else ""
        return importer.read_bundles(read_upload(files), Provenance(UPLOAD_SOURCE, name))

    def _read_selected(self, request: PageRequest) -> ImportChoices:
        collection, importer = self._collection, self._workspace.importer
        candidates = []
        for skill_id in request.fields.getlist("skill")[:MAX_LISTED_SKILLS]:
            provenance = Provenance(LOCAL_SOURCE, skill_id)
            choices = importer.read_bundles([collection.bundle(skill_id)], provenance)
            candidates += [row._replace(local_path=skill_id) for row in choices.candidates]
        return ImportChoices(tuple(candidates), Provenance(LOCAL_SOURCE, "skillhall"))

    def _find_pending(self, request: PageRequest) -> ImportChoices:
        choices = self._pending.find(request.path_params["review"])
        self._workspace.sessions.find(request.path_params["id"])  # 404 if the session was deleted
        return choices

    def _render_review(
        self,
        request: PageRequest,
        choices: ImportChoices,
        chosen: frozenset[str],
        error: SkillhallError | None = None,
    ) -> Response:
        workspace = self._workspace
        session = workspace.sessions.find(request.path_params["id"])
        return render(
            request,
            "session_review.html",
            request.translations("session_import.choose_title"),
            error=error,
            session=session,
            import_id=request.path_params["review"],
            choices=choices,
            existing_names=workspace.importer.find_conflicts(session.id, choices),
            chosen=chosen,
            on_conflict=request.field("on_conflict") or ImportConflict.REPLACE,
            zone=request.field("zone") or Zone.STABLE,
        )
