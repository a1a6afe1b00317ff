"""Pages that import skills, with a review before anything is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.web.rendering import form_status, redirect, render
from skillhall._internal.web.site import PageHandlers
from skillhall._internal.wiring.sources import read_upload
from skillhall.errors import SkillhallError, without_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.responses import Response

    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.pending_imports import PendingImport
    from skillhall._internal.web.page_request import PageRequest

DEFAULT_FOLDER = "~/.claude/skills"


class ImportPages(PageHandlers):
    """Handlers of the import pages."""

    def show_form(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> Response:
        """Show the import forms."""
        return render(
            request,
            "import.html",
            error=error,
            status=form_status(error),
            source=request.field("source"),
            folder=request.field("folder") or DEFAULT_FOLDER,
            can_scan=self._site.settings.server.folder_scan,
            failed_form=failed_form,
        )

    def review_files(self, request: PageRequest) -> Response:
        """Review uploaded files."""
        files = request.files
        name = files[0][0].partition("/")[0] if files else ""
        return self._start_review(request, "files", name, lambda: read_upload(files))

    def review_source(self, request: PageRequest) -> Response:
        """Review a repository or URL."""
        text, collection = request.field("source").strip(), self._collection
        name = without_credentials(text)
        return self._start_review(
            request, "source", name, lambda: collection.open_remote(text).bundles
        )

    def review_folder(self, request: PageRequest) -> Response:
        """Review a folder on the server."""
        text = request.field("folder").strip() or DEFAULT_FOLDER
        return self._start_review(
            request, "folder", text, lambda: self._collection.open_folder(text).bundles
        )

    def show_review(self, request: PageRequest) -> Response:
        """Show the candidates of a pending import."""
        pending = self._site.pending_imports.find(request.path_params["review"])
        chosen = frozenset(row.key for row in pending.candidates if row.can_import)
        return _render_review(request, pending, chosen)

    def confirm(self, request: PageRequest) -> Response:
        """Import the selected candidates, unless they changed since they were shown."""
        imports, import_id = self._site.pending_imports, request.path_params["review"]
        keys = [row.key for row in imports.find(import_id).candidates]
        ids = {key: skill_id for key in keys if (skill_id := request.field(f"id-{key}").strip())}
        pending = imports.find(import_id, ids)
        chosen = frozenset(request.fields.getlist("chosen"))
        selected = [row for row in pending.candidates if row.key in chosen]
        # Another id, or a change on the server, may replace a skill that was not shown.
        is_as_shown = all(
            row.can_import and request.field(f"replaces-{row.key}") == row.replaced_digest
            for row in selected
        )
        if not selected or not is_as_shown:
            return _render_review(request, pending, chosen, status=422)
        try:
            report, change = imports.confirm(pending, selected)
        except SkillhallError as error:
            return _render_review(request, pending, chosen, error, status=form_status(error))
        names = ", ".join(skill.id for skill in report.imported)
        return self._site.redirect("/skills", "imported", names, change)

    def _start_review(
        self, request: PageRequest, form: str, source: str, read: Callable[[], Iterable[Bundle]]
    ) -> Response:
        try:
            pending = self._site.pending_imports.add(source, read())
        except SkillhallError as error:
            return self.show_form(request, form, error)
        return redirect(f"/skills/import/{pending.id}")


def _render_review(
    request: PageRequest,
    pending_import: PendingImport,
    chosen: frozenset[str],
    error: SkillhallError | None = None,
    *,
    status: int = 200,
) -> Response:
    return render(
        request,
        "review.html",
        error=error,
        status=status,
        pending_import=pending_import,
        chosen=chosen,
        can_import=any(row.can_import for row in pending_import.candidates),
    )
