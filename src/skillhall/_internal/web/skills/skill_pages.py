"""The pages that show skills: the table, one skill, its files, one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from skillhall._internal.http.response import ByteResponse
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.skill_store.collection import SOURCES
from skillhall._internal.web.highlight import escape_text, highlight_code
from skillhall._internal.web.rendering import Page, build_frame, render_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.skill.bundle import SkillFile
    from skillhall._internal.skill_store.collection import (
        CollectionEntry,
        CollectionSnapshot,
        SkillDetails,
        SkillSize,
    )
    from skillhall._internal.web.page_request import PageRequest
    from skillhall._internal.web.site import Site

ROWS_PER_PAGE = 50  # of the table, on one page
MAX_AGE = 2.0  # seconds until changes by other programs are seen in the table
MAX_SKIPPED_SHOWN = 20  # entries that the table names; a page of their own has more
MAX_TEXT_BYTES = 512 * 1024  # bytes of a file that is shown
SORT_KEYS = ("id", "name", "source", "tokens")
_SOURCE_FOLDERS = {source: folder for folder, source in LOCAL_SKILLS.roots}


class SkillRow(NamedTuple):
    """One skill in the table."""

    entry: CollectionEntry
    size: SkillSize


class FilterLink(NamedTuple):
    """One choice of several: what it is called, where it leads, how many it would show."""

    key: str
    url: str
    skill_count: int
    is_selected: bool


@dataclass(frozen=True, slots=True)
class SkillsPage(Page):
    """The table of skills."""

    rows: tuple[SkillRow, ...]
    total: int
    first: int  # the number of the first row
    query: str  # what is searched for
    source: str
    sort: str
    source_filters: tuple[FilterLink, ...]
    sort_links: tuple[FilterLink, ...]
    previous_url: str
    next_url: str
    url: str  # of this view
    revision: str
    skipped: tuple[SkippedItem, ...]  # the first of what is not served
    skipped_total: int

    @property
    def is_empty(self) -> bool:
        """Whether there is not a single skill, searched for or not."""
        return self.source_filters[0].skill_count == 0

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.first + len(self.rows) - 1


class FindingRow(NamedTuple):
    """A finding, and where it is to be seen."""

    judged: JudgedFinding
    meaning: str
    url: str


@dataclass(frozen=True, slots=True)
class SkillPage(Page):
    """One skill."""

    details: SkillDetails
    file: str  # what its SKILL.md is called
    location: str  # its folder, as agents name it; the repository's name for one of a repository
    commit: str
    body: Markup
    findings: tuple[FindingRow, ...]
    listing: str  # the system prompt of the server's agent with this skill alone
    activation: str  # what it gets when it loads the skill
    is_editable: bool

    @property
    def accepted_findings(self) -> tuple[FindingRow, ...]:
        """Those that nobody needs to act on."""
        return tuple(one for one in self.findings if one.judged.effect is Effect.ACCEPT)

    @property
    def actionable_findings(self) -> tuple[FindingRow, ...]:
        """Those that a person should look at."""
        return tuple(one for one in self.findings if one.judged.effect is not Effect.ACCEPT)


@dataclass(frozen=True, slots=True)
class FilesPage(Page):
    """The files of a skill."""

    id: str
    files: tuple[SkillFile, ...]


@dataclass(frozen=True, slots=True)
class FilePage(Page):
    """One file of a skill."""

    id: str
    path: str
    size: int
    digest: str
    lines: tuple[Markup, ...] | None  # None if it is no text, or too large
    findings: tuple[FindingRow, ...]

    @property
    def finding_lines(self) -> frozenset[int]:
        """The lines that findings are about."""
        return frozenset(one.judged.finding.line or 0 for one in self.findings)


class SkillPages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._collection = site.collection

    def list_skills(self, request: PageRequest) -> ByteResponse:
        """All skills, those of a source, or those that a text finds."""
        shown = self._collection.snapshot(MAX_AGE)
        asked = _TableQuery.from_request(request)
        found = self._find_ids(asked.text, shown)
        ids = [one for one in found if not asked.source or shown.skills[one].source == asked.source]
        if asked.sort != "id" and not asked.text:
            ids = self._sort_ids(ids, shown, asked.sort)
        start = (
            min(asked.page, max(1, -(-len(ids) // ROWS_PER_PAGE))) * ROWS_PER_PAGE - ROWS_PER_PAGE
        )
        rows = tuple(
            SkillRow(shown.get_entry(one), self._collection.measure_skill(shown.skills[one]))
            for one in ids[start : start + ROWS_PER_PAGE]
        )
        page = SkillsPage(
            build_frame(request, request.translations("skills.title"), "skills"),
            rows=rows,
            total=len(ids),
            first=start + 1,
            query=asked.text,
            source=asked.source,
            sort=asked.sort,
            source_filters=_build_source_filters(asked, shown, found),
            sort_links=tuple(
                FilterLink(one, asked.url(sort=one), 0, one == asked.sort) for one in SORT_KEYS
            ),
            previous_url=asked.url(page=start // ROWS_PER_PAGE) if start else "",
            next_url=asked.url(page=start // ROWS_PER_PAGE + 2)
            if start + ROWS_PER_PAGE < len(ids)
            else "",
            url=asked.url(page=start // ROWS_PER_PAGE + 1),
            revision=shown.revision,
            skipped=shown.skipped[:MAX_SKIPPED_SHOWN],
            skipped_total=len(shown.skipped),
        )
        return render_page("skills.html", page)

    def check_for_changes(self, request: PageRequest) -> ByteResponse:
        """Nothing while the list is what a page has; else an event that makes it ask again."""
        if request.query.get("revision") == self._collection.snapshot(MAX_AGE).revision:
            return ByteResponse(204)
        return ByteResponse(204, ((b"hx-trigger", b"skills-changed"),))

    def show_skill(self, request: PageRequest) -> ByteResponse:
        """One skill with everything about it."""
        identity = request.path_parts[1]
        details = self._collection.details(identity)
        listed, skill = details.entry, self._collection.find(identity)
        folder = f"{_SOURCE_FOLDERS.get(listed.source, '')}/{skill.folder}".strip("/")
        origin = self._collection.origin(identity)
        if listed.source not in _SOURCE_FOLDERS:
            folder = origin.repository
        page = SkillPage(
            build_frame(request, listed.name, "skills"),
            details=details,
            file=skill.file,
            location=folder,
            commit=origin.commit,
            body=self._site.markdown.render(
                details.body, f"/skill/{quote(identity, safe='')}/files"
            ),
            findings=build_finding_rows(details.findings, identity),
            listing=self._site.agent_skills.render_prompt_for_skill(identity),
            activation=self._site.agent_skills.render_activation_text(identity),
            is_editable=listed.source == "user",
        )
        return render_page("skill.html", page)

    def list_files(self, request: PageRequest) -> ByteResponse:
        """The files of a skill."""
        identity = request.path_parts[1]
        files = tuple(self._collection.bundle(identity).files.values())
        return render_page(
            "files.html", FilesPage(build_frame(request, identity, "skills"), identity, files)
        )

    def show_file(self, request: PageRequest) -> ByteResponse:
        """One file of a skill: text in colours, anything else as facts."""
        identity, path = request.path_parts[1], "/".join(request.path_parts[3:])
        data = self._collection.read_file(identity, path)
        found = self._collection.details(identity).findings
        mine = [one for one in found if one.finding.path == path]
        page = FilePage(
            build_frame(request, f"{path} · {identity}", "skills"),
            identity,
            path,
            len(data),
            f"sha256:{sha256_hex(data)}",
            _highlight_lines(data, path),
            build_finding_rows(mine, identity),
        )
        return render_page("file.html", page)

    def _find_ids(self, text: str, snapshot: CollectionSnapshot) -> Sequence[str]:
        if not text:
            return snapshot.ids
        found = self._collection.search(text, max_age=MAX_AGE)
        return [one.id for one in found.skills if one.id in snapshot.skills]

    def _sort_ids(self, ids: Iterable[str], snapshot: CollectionSnapshot, sort: str) -> list[str]:
        """In that order; of tokens the most come first."""
        skills, figures = snapshot.skills, self._collection.measure_skill
        if sort == "name":
            return sorted(ids, key=lambda one: (skills[one].name.casefold(), one))
        if sort == "tokens":
            return sorted(ids, key=lambda one: (-figures(skills[one]).tokens, one))
        return sorted(ids, key=lambda one: (SOURCES.index(skills[one].source), one))


class _TableQuery(NamedTuple):
    """What the table is asked for."""

    text: str
    source: str
    sort: str
    page: int

    @classmethod
    def from_request(cls, request: PageRequest) -> _TableQuery:
        number = request.query.get("page", "1")
        is_number = number.isascii() and number.isdigit()
        source, sort = request.query.get("source", ""), request.query.get("sort", "id")
        return cls(
            request.query.get("q", "").strip()[:200],
            source if source in SOURCES else "",
            sort if sort in SORT_KEYS else "id",
            max(1, int(number[:6])) if is_number else 1,
        )

    def url(self, source: str | None = None, sort: str = "", page: int = 1) -> str:
        """The address of another view."""
        given = {
            "q": self.text,
            "source": self.source if source is None else source,
            "sort": "" if (sort or self.sort) == "id" else sort or self.sort,
            "page": "" if page == 1 else str(page),
        }
        query = urlencode({key: value for key, value in given.items() if value})
        return f"/skills?{query}" if query else "/skills"


def _build_source_filters(
    table_query: _TableQuery, snapshot: CollectionSnapshot, ids: Sequence[str]
) -> tuple[FilterLink, ...]:
    counts = dict.fromkeys(SOURCES, 0)
    for identity in ids:
        counts[snapshot.skills[identity].source] += 1
    every = FilterLink("all", table_query.url(source=""), len(ids), not table_query.source)
    return (
        every,
        *(
            FilterLink(one, table_query.url(source=one), counts[one], one == table_query.source)
            for one in SOURCES
        ),
    )


def build_finding_rows(findings: Iterable[JudgedFinding], identity: str) -> tuple[FindingRow, ...]:
    """The findings, each with what it means and where it is to be seen."""
    base = f"/skill/{quote(identity, safe='')}/files/"
    rows = []
    for one in findings:
        line = f"#L{one.finding.line}" if one.finding.line else ""
        address = f"{base}{quote(one.finding.path)}{line}" if one.finding.path else ""
        rows.append(FindingRow(one, CODE_DESCRIPTIONS[one.finding.code], address))
    return tuple(sorted(rows, key=lambda row: row.judged.effect is Effect.ACCEPT))


def _highlight_lines(data: bytes, path: str) -> tuple[Markup, ...] | None:
    if len(data) > MAX_TEXT_BYTES or b"\0" in data:
        return None
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None
    lines = text.removesuffix("\n").split("\n")
    painted = str(highlight_code(text, path)).removesuffix("\n").split("\n")
    # A span may go on for several lines; such a file is shown plain rather than torn apart.
    if len(painted) != len(lines) or any(
        one.count("<span") != one.count("</span") for one in painted
    ):
        return tuple(escape_text(line) for line in lines)
    return tuple(Markup(line) for line in painted)  # noqa: S704 - lines of what was painted
