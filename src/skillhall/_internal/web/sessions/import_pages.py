"""The pages that bring skills into a session: looked at first, where there is something to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cache import Waiting
from skillhall._internal.web.page_request import Notice
from skillhall._internal.web.rendering import Page, frame_of, page_answer, redirect
from skillhall._internal.web.sessions.page_base import (
    DeskPages,
    session_address,
    status_for,
    told,
)
from skillhall._internal.web.skills.import_pages import DEFAULT_FOLDER
from skillhall._internal.wiring.sources import open_upload
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.importer import Found, SameName, Wish
from skillhall._internal.workspace.skill_blocks import LOCAL, UPLOAD, Provenance
from skillhall._internal.workspace.validation import checked_zone
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.http.response import Answer
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Problem, Site
    from skillhall._internal.workspace import Session

OFFERED = 200  # skills of the server that are offered at once


@dataclass(frozen=True, slots=True)
class SessionImportPage(Page):
    """The ways in."""

    session: Session
    offered: tuple[Skill, ...]
    is_cut: bool
    text: str  # that offered skills were searched for
    address: str
    folder: str
    can_scan: bool
    failed: str
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class SessionReviewPage(Page):
    """What waits, to be chosen from."""

    session: Session
    review: str
    found: Found
    there: frozenset[str]  # names of skills that the session has
    chosen: frozenset[str]
    same: str
    zone: str
    problem: Problem | None

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Where they can go."""
        return tuple(Zone)


class _Asked(NamedTuple):
    """What waits for an answer."""

    session: str
    found: Found


class SessionImportPages(DeskPages):
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._waiting: Waiting[_Asked] = Waiting()

    def show_ways(self, visit: Visit) -> Answer:
        """The ways in."""
        return self._ways(visit)

    def from_files(self, visit: Visit) -> Answer:
        """Files that were chosen or dropped."""
        return self._begin(visit, "files", self._sent)

    def from_address(self, visit: Visit) -> Answer:
        """A repository or a web address."""
        text = visit.form.text("source").strip()
        return self._begin(visit, "address", lambda _: self._desk().imports.find_source(text))

    def from_folder(self, visit: Visit) -> Answer:
        """A folder of the server's machine."""
        text = visit.form.text("folder").strip()
        return self._begin(visit, "folder", lambda _: self._desk().imports.find_folder(text))

    def from_collection(self, visit: Visit) -> Answer:
        """Skills of this server."""
        return self._begin(visit, "skills", self._picked)

    def show_review(self, visit: Visit) -> Answer:
        """What waits, to be chosen from."""
        found = self._asked(visit)
        chosen = frozenset(one.id for one in found.candidates if not one.reasons)
        return self._review(visit, found, chosen)

    def take(self, visit: Visit) -> Answer:
        """Import what was chosen."""
        found, form = self._asked(visit), visit.form
        chosen = tuple(form.all("chosen"))
        if not chosen:
            return self._review(visit, found, frozenset())
        try:
            zone = checked_zone(form.text("zone")) if form.text("zone") else None
            same = form.text("same")
            wish = Wish(
                zone, SameName(same) if same in tuple(SameName) else SameName.REFUSE, chosen
            )
            answer = self._take(visit.names[1], found, wish)
        except SkillhallError as error:
            return self._review(visit, found, frozenset(chosen), error)
        self._waiting.drop(visit.names[3])
        return answer

    def _begin(self, visit: Visit, way: str, find: Callable[[Visit], Found]) -> Answer:
        """Import at once what leaves nothing to ask; let the rest wait to be looked at."""
        session = self._desk().sessions.find(visit.names[1]).id
        try:
            found = find(visit)
            is_plain = len(found.candidates) == 1 or way == "skills"
            has_notes = any(one.findings or one.reasons for one in found.candidates)
            if is_plain and not has_notes and not self._desk().imports.same_names(session, found):
                return self._take(session, found, Wish())
        except SkillhallError as error:
            return self._ways(visit, way, error)
        key = self._waiting.put(_Asked(session, found), found.size)
        return redirect(f"{session_address(session)}/import/{key}")

    def _take(self, session: str, found: Found, wish: Wish) -> Answer:
        done = self._desk().imports.take(session, found, wish)
        names = ", ".join(one.content.skill.name for one in done.blocks if one.content.skill)
        return self._site.done(session_address(session), Notice("imported", names))

    def _sent(self, visit: Visit) -> Found:
        files, imports = visit.form.files, self._desk().imports
        if len(files) == 1 and "/" not in files[0][0]:
            return imports.find_upload(files[0][1], files[0][0])
        name = files[0][0].partition("/")[0] if files else ""
        return imports.find_bundles(open_upload(files), Provenance(UPLOAD, name))

    def _picked(self, visit: Visit) -> Found:
        collection, imports = self._site.collection, self._desk().imports
        found = []
        for identity in visit.form.all("skill")[:OFFERED]:
            one = imports.find_bundles([collection.bundle(identity)], Provenance(LOCAL, identity))
            found += [row._replace(place=identity) for row in one.candidates]
        return Found(tuple(found), Provenance(LOCAL, "skillhall"))

    def _asked(self, visit: Visit) -> Found:
        asked = self._waiting.find(visit.names[3])
        self._desk().sessions.find(visit.names[1])
        return asked.found

    def _ways(self, visit: Visit, failed: str = "", error: SkillhallError | None = None) -> Answer:
        session = self._desk().sessions.find(visit.names[1])
        text = visit.query.get("q", "").strip()[:200]
        shown = self._site.collection.show()
        ids = [one.id for one in self._site.collection.search(text).skills] if text else shown.ids
        offered = [shown.skills[one] for one in ids if one in shown.skills]
        page = SessionImportPage(
            frame_of(visit, visit.texts("session_import.title"), "sessions"),
            session=session,
            offered=tuple(offered[:OFFERED]),
            is_cut=len(offered) > OFFERED,
            text=text,
            address=visit.form.text("source"),
            folder=visit.form.text("folder") or DEFAULT_FOLDER,
            can_scan=self._site.settings.server.folder_scan,
            failed=failed,
            problem=told(visit, error),
        )
        return page_answer("session_import.html", page, status=status_for(error))

    def _review(
        self,
        visit: Visit,
        found: Found,
        chosen: frozenset[str],
        error: SkillhallError | None = None,
    ) -> Answer:
        desk = self._desk()
        session = desk.sessions.find(visit.names[1])
        page = SessionReviewPage(
            frame_of(visit, visit.texts("session_import.choose_title"), "sessions"),
            session=session,
            review=visit.names[3],
            found=found,
            there=desk.imports.same_names(session.id, found),
            chosen=chosen,
            same=visit.form.text("same") or SameName.REPLACE,
            zone=visit.form.text("zone") or Zone.STABLE,
            problem=told(visit, error),
        )
        return page_answer("session_review.html", page, status=status_for(error))
