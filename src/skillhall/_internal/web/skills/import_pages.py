"""The pages that import skills: what comes in is looked at before it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.http.errors import error_status
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, build_frame, redirect, render_page
from skillhall._internal.web.site import PageError, build_page_error
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
    """The ways in."""

    source: str
    folder: str
    can_scan: bool
    failed_form: str  # which way in did not work: files, address or folder
    problem: PageError | None


@dataclass(frozen=True, slots=True)
class ReviewPage(Page):
    """What would be imported."""

    pending_import: PendingImport
    chosen: frozenset[str]
    problem: PageError | None

    @property
    def importable_count(self) -> int:
        """How many candidates could be imported."""
        return sum(one.can_import for one in self.pending_import.candidates)


class ImportPages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def show_form(self, request: PageRequest) -> ByteResponse:
        """The ways in."""
        return self._render_form(request)

    def review_files(self, request: PageRequest) -> ByteResponse:
        """Files that were chosen or dropped."""
        files = request.form.files
        try:
            name = files[0][0].partition("/")[0] if files else ""
            return self._start_review(name, read_upload(files))
        except SkillhallError as error:
            return self._render_form(request, "files", error)

    def review_source(self, request: PageRequest) -> ByteResponse:
        """A repository or a web address."""
        text = request.form.text("source").strip()
        try:
            opened = self._site.collection.open_remote(text)
            return self._start_review(without_credentials(text), opened.bundles)
        except SkillhallError as error:
            return self._render_form(request, "address", error)

    def review_folder(self, request: PageRequest) -> ByteResponse:
        """A folder of the server's machine."""
        text = request.form.text("folder").strip() or DEFAULT_FOLDER
        try:
            return self._start_review(text, self._site.collection.open_folder(text).bundles)
        except SkillhallError as error:
            return self._render_form(request, "folder", error)

    def show_review(self, request: PageRequest) -> ByteResponse:
        """What waits, to be chosen from."""
        review = self._site.pending_imports.find(request.path_parts[2])
        chosen = frozenset(one.key for one in review.candidates if one.can_import)
        return self._render_review(request, review, chosen)

    def confirm(self, request: PageRequest) -> ByteResponse:
        """Import what was chosen, unless it means something else than what was shown."""
        form, before = request.form, self._site.pending_imports.find(request.path_parts[2])
        ids = {one.key: form.text(f"id-{one.key}").strip() for one in before.candidates}
        changed = {key: given for key, given in ids.items() if given}
        review = self._site.pending_imports.find(request.path_parts[2], changed)
        chosen = frozenset(form.values("chosen"))
        shown = {one.key: form.text(f"against-{one.key}") for one in review.candidates}
        wanted = [one for one in review.candidates if one.key in chosen]
        is_as_shown = all(
            one.can_import and shown[one.key] == one.replaced_digest for one in wanted
        )
        if not wanted or not is_as_shown:
            return self._render_review(request, review, chosen, status=422)
        try:
            report, change = self._site.pending_imports.confirm(review, wanted)
        except SkillhallError as error:
            return self._render_review(request, review, chosen, error)
        names = ", ".join(one.id for one in report.imported)
        return self._site.redirect_with_notice("/skills", Notice("imported", names, change))

    def _start_review(self, source: str, bundles: Iterable[Bundle]) -> ByteResponse:
        review = self._site.pending_imports.add(source, bundles)
        return redirect(f"/skills/import/{review.id}")

    def _render_form(
        self, request: PageRequest, failed_form: str = "", error: SkillhallError | None = None
    ) -> ByteResponse:
        page = ImportPage(
            build_frame(request, request.translations("import.title"), "skills"),
            source=request.form.text("source"),
            folder=request.form.text("folder") or DEFAULT_FOLDER,
            can_scan=self._site.settings.server.folder_scan,
            failed_form=failed_form,
            problem=None if error is None else build_page_error(request, error),
        )
        return render_page("import.html", page, status=_page_status(error))

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
            None if error is None else build_page_error(request, error),
        )
        return render_page("review.html", page, status=_page_status(error) if error else status)


def _page_status(error: SkillhallError | None) -> int:
    return 200 if error is None else max(422, error_status(error).http_status)
