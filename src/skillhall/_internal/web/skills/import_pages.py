"""The pages that import skills: what comes in is looked at before it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.http.errors import status_of
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall._internal.web.site import Problem, problem_of
from skillhall._internal.wiring.sources import open_upload
from skillhall.errors import SkillhallError, without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.http.response import Answer
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.pending_imports import Review
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Site

DEFAULT_FOLDER = "~/.claude/skills"


@dataclass(frozen=True, slots=True)
class ImportPage(Page):
    """The ways in."""

    address: str
    folder: str
    can_scan: bool
    failed: str  # which way in did not work: files, address or folder
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class ReviewPage(Page):
    """What would be imported."""

    review: Review
    chosen: frozenset[str]
    problem: Problem | None

    @property
    def takeable(self) -> int:
        """How many candidates could be imported."""
        return sum(one.can_be_taken for one in self.review.candidates)


class ImportPages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def show_ways(self, visit: Visit) -> Answer:
        """The ways in."""
        return self._ways(visit)

    def from_files(self, visit: Visit) -> Answer:
        """Files that were chosen or dropped."""
        files = visit.form.files
        try:
            name = files[0][0].partition("/")[0] if files else ""
            return self._begin(name, open_upload(files))
        except SkillhallError as error:
            return self._ways(visit, "files", error)

    def from_address(self, visit: Visit) -> Answer:
        """A repository or a web address."""
        text = visit.form.text("source").strip()
        try:
            opened = self._site.collection.open_remote(text)
            return self._begin(without_credentials(text), opened.bundles)
        except SkillhallError as error:
            return self._ways(visit, "address", error)

    def from_folder(self, visit: Visit) -> Answer:
        """A folder of the server's machine."""
        text = visit.form.text("folder").strip() or DEFAULT_FOLDER
        try:
            return self._begin(text, self._site.collection.open_folder(text).bundles)
        except SkillhallError as error:
            return self._ways(visit, "folder", error)

    def show_review(self, visit: Visit) -> Answer:
        """What waits, to be chosen from."""
        review = self._site.reviews.find(visit.names[2])
        chosen = frozenset(one.key for one in review.candidates if one.can_be_taken)
        return self._review(visit, review, chosen)

    def take(self, visit: Visit) -> Answer:
        """Import what was chosen, unless it means something else than what was shown."""
        form, before = visit.form, self._site.reviews.find(visit.names[2])
        ids = {one.key: form.text(f"id-{one.key}").strip() for one in before.candidates}
        changed = {key: given for key, given in ids.items() if given}
        review = self._site.reviews.find(visit.names[2], changed)
        chosen = frozenset(form.all("chosen"))
        shown = {one.key: form.text(f"against-{one.key}") for one in review.candidates}
        wanted = [one for one in review.candidates if one.key in chosen]
        is_as_shown = all(one.can_be_taken and shown[one.key] == one.against for one in wanted)
        if not wanted or not is_as_shown:
            return self._review(visit, review, chosen, status=422)
        try:
            report, change = self._site.reviews.take(review, wanted)
        except SkillhallError as error:
            return self._review(visit, review, chosen, error)
        names = ", ".join(one.id for one in report.imported)
        return self._site.done("/skills", Notice("imported", names, change))

    def _begin(self, source: str, bundles: Iterable[Bundle]) -> Answer:
        review = self._site.reviews.begin(source, bundles)
        return redirect(f"/skills/import/{review.id}")

    def _ways(self, visit: Visit, failed: str = "", error: SkillhallError | None = None) -> Answer:
        page = ImportPage(
            frame_of(visit, visit.texts("import.title"), "skills"),
            address=visit.form.text("source"),
            folder=visit.form.text("folder") or DEFAULT_FOLDER,
            can_scan=self._site.settings.server.folder_scan,
            failed=failed,
            problem=None if error is None else problem_of(visit, error),
        )
        return page_answer("import.html", page, status=_status(error))

    def _review(
        self,
        visit: Visit,
        review: Review,
        chosen: frozenset[str],
        error: SkillhallError | None = None,
        *,
        status: int = 200,
    ) -> Answer:
        page = ReviewPage(
            frame_of(visit, visit.texts("review.title"), "skills"),
            review,
            chosen,
            None if error is None else problem_of(visit, error),
        )
        return page_answer("review.html", page, status=_status(error) if error else status)


def _status(error: SkillhallError | None) -> int:
    return 200 if error is None else max(422, status_of(error).http)
