"""Pages that import skills, with a review before anything is saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.site import PageError, form_status, optional_page_error
from skillhall._internal.wiring.sources import read_upload
from skillhall.errors import SkillhallError, without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.http.response import ByteResponse
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.pending_imports import PendingImport
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site

DEFAULT_FOLDER = "~/.claude/skills"


@dataclass(frozen=True, slots=True)
class ImportPage(Page):
    """Forms for every kind of source."""

    source: str
    folder: str
    can_scan: bool
    failed_form: str  # "files", "source" or "folder"; "" if none failed
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class ReviewPage(Page):
    """Candidates of a pending import, to select from."""

    pending_import: PendingImport
    chosen: frozenset[str]
    problem: PageError | None

    @property
    def importable_count(self) -> int:
        """Number of candidates that can be imported."""
        return sum(candidate.can_import for candidate in self.pending_import.candidates)


class ImportPages:
    """Handlers of the import pages."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def show_form(self, request: PageRequest) -> ByteResponse:
        """Show the import forms."""
        return self._render_form(request)

    def review_files(self, request: PageRequest) -> ByteResponse:
        """Review uploaded files."""
        files = request.form.files
        try:
            name = files[0][0].partition("/")[0] if files else ""
            return self._start_review(name, read_upload(files))
        except SkillhallError as error:
            return self._render_form(request, "files", error)

    def review_source(self, request: PageRequest) -> ByteResponse:
        """Review a repository or URL."""
        text = request.form.text("source").strip()
        try:
            opened = self._site.collection.open_remote(text)
            return self._start_review(without_credentials(text), opened.bundles)
        except SkillhallError as error:
            return self._render_form(request, "source", error)

    def review_folder(self, request: PageRequest) -> ByteResponse:
        """Review a folder on the server."""
        text = request.form.text("folder").strip() or DEFAULT_FOLDER
        try:
            return self._start_review(text, self._site.collection.open_folder(text).bundles)
        except SkillhallError as error:
            return self._render_form(request, "folder", error)

    def show_review(self, request: PageRequest) -> ByteResponse:
        """Show the candidates of a pending import."""
        pending = self._site.pending_imports.find(request.path_parts[2])
        chosen = frozenset(row.key for row in pending.candidates if row.can_import)
        return self._render_review(request, pending, chosen)

    def confirm(self, request: PageRequest) -> ByteResponse:
        """Import the selected candidates, unless they changed since they were shown."""
        form, imports = request.form, self._site.pending_imports
        import_id = request.path_parts[2]
        keys = [row.key for row in imports.find(import_id).candidates]
        ids = {key: skill_id for key in keys if (skill_id := form.text(f"id-{key}").strip())}
        pending = imports.find(import_id, ids)
        chosen = frozenset(form.values("chosen"))
        selected = [row for row in pending.candidates if row.key in chosen]
        # Another id, or a change on the server, may replace a skill that was not shown.
        is_as_shown = all(
            row.can_import and form.text(f"replaces-{row.key}") == row.replaced_digest
            for row in selected
        )
        if not selected or not is_as_shown:
            return self._render_review(request, pending, chosen, status=422)
        try:
            report, change = imports.confirm(pending, selected)
        except SkillhallError as error:
            return self._render_review(request, pending, chosen, error)
        names = ", ".join(skill.id for skill in report.imported)
        return self._site.redirect_with_notice("/skills", Notice("imported", names, change))

    def _start_review(self, source: str, bundles: Iterable[Bundle]) -> ByteResponse:
        pending = self._site.pending_imports.add(source, bundles)
        return redirect(f"/skills/import/{pending.id}")

    def _render_form(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        page = ImportPage(
            build_frame(request, request.translations("import.title"), "skills"),
            source=request.form.text("source"),
            folder=request.form.text("folder") or DEFAULT_FOLDER,
            can_scan=self._site.settings.server.folder_scan,
            failed_form=failed_form,
            problem=optional_page_error(request, error),
        )
        return render_page("import.html", page, status=form_status(error))

    def _render_review(
        self,
        request: PageRequest,
        pending_import: PendingImport,
        chosen: frozenset[str],
        error: SkillhallError | None = None,
        *,
        status: int = 200,
    ) -> ByteResponse:
        page = ReviewPage(
            build_frame(request, request.translations("review.title"), "skills"),
            pending_import,
            chosen,
            optional_page_error(request, error),
        )
        return render_page("review.html", page, status=form_status(error) if error else status)
