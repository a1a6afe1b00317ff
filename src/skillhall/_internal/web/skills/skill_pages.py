"""The pages that show skills: the table, one skill, its files, one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from skillhall._internal.http.response import Answer
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import sha256_of
from skillhall._internal.skill.code_descriptions import MEANINGS
from skillhall._internal.skill_store.collection import SOURCES
from skillhall._internal.web.highlight import highlight, shown
from skillhall._internal.web.rendering import Page, frame_of, page_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.policy.skipped_items import Skipped
    from skillhall._internal.skill.bundle import SkillFile
    from skillhall._internal.skill_store.collection import Details, Figures, Listed, Shown
    from skillhall._internal.web.page_request import Visit
    from skillhall._internal.web.site import Site

ROWS = 50  # of the table, on one page
PATIENCE = 2.0  # seconds until changes by other programs are seen in the table
SKIPPED = 20  # entries that the table names; a page of their own has more
MAX_TEXT = 512 * 1024  # bytes of a file that is shown
SORTS = ("id", "name", "source", "tokens")
_FOLDERS = {source: folder for folder, source in LOCAL_SKILLS.roots}


class Row(NamedTuple):
    """One skill in the table."""

    listed: Listed
    figures: Figures


class Choice(NamedTuple):
    """One choice of several: what it is called, where it leads, how many it would show."""

    key: str
    address: str
    number: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class SkillsPage(Page):
    """The table of skills."""

    rows: tuple[Row, ...]
    total: int
    first: int  # the number of the first row
    text: str  # what is searched for
    source: str
    sort: str
    choices: tuple[Choice, ...]
    sorts: tuple[Choice, ...]
    previous: str
    following: str
    address: str  # of this view
    revision: str
    skipped: tuple[Skipped, ...]  # the first of what is not served
    skipped_total: int

    @property
    def is_empty(self) -> bool:
        """Whether there is not a single skill, searched for or not."""
        return self.choices[0].number == 0

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.first + len(self.rows) - 1


class FindingRow(NamedTuple):
    """A finding, and where it is to be seen."""

    judged: Judged
    meaning: str
    address: str


@dataclass(frozen=True, slots=True)
class SkillPage(Page):
    """One skill."""

    details: Details
    file: str  # what its SKILL.md is called
    place: str  # its folder, as agents name it; the repository's name for one of a repository
    commit: str
    body: Markup
    findings: tuple[FindingRow, ...]
    listing: str  # the system prompt of the server's agent with this skill alone
    activation: str  # what it gets when it loads the skill
    can_change: bool

    @property
    def quiet_findings(self) -> tuple[FindingRow, ...]:
        """Those that nobody needs to act on."""
        return tuple(one for one in self.findings if one.judged.effect is Effect.ACCEPT)

    @property
    def loud_findings(self) -> tuple[FindingRow, ...]:
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
    def found_lines(self) -> frozenset[int]:
        """The lines that findings are about."""
        return frozenset(one.judged.finding.line or 0 for one in self.findings)


class SkillPages:
    """The calls of these pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._collection = site.collection

    def list_skills(self, visit: Visit) -> Answer:
        """All skills, those of a source, or those that a text finds."""
        shown = self._collection.show(PATIENCE)
        asked = _Asked.of(visit)
        found = self._found(asked.text, shown)
        ids = [one for one in found if not asked.source or shown.skills[one].source == asked.source]
        if asked.sort != "id" and not asked.text:
            ids = self._sorted(ids, shown, asked.sort)
        start = min(asked.page, max(1, -(-len(ids) // ROWS))) * ROWS - ROWS
        rows = tuple(
            Row(shown.listed(one), self._collection.figures(shown.skills[one]))
            for one in ids[start : start + ROWS]
        )
        page = SkillsPage(
            frame_of(visit, visit.texts("skills.title"), "skills"),
            rows=rows,
            total=len(ids),
            first=start + 1,
            text=asked.text,
            source=asked.source,
            sort=asked.sort,
            choices=_choices(asked, shown, found),
            sorts=tuple(Choice(one, asked.at(sort=one), 0, one == asked.sort) for one in SORTS),
            previous=asked.at(page=start // ROWS) if start else "",
            following=asked.at(page=start // ROWS + 2) if start + ROWS < len(ids) else "",
            address=asked.at(page=start // ROWS + 1),
            revision=shown.revision,
            skipped=shown.skipped[:SKIPPED],
            skipped_total=len(shown.skipped),
        )
        return page_answer("skills.html", page)

    def news(self, visit: Visit) -> Answer:
        """Nothing while the list is what a page has; else an event that makes it ask again."""
        if visit.query.get("revision") == self._collection.show(PATIENCE).revision:
            return Answer(204)
        return Answer(204, ((b"hx-trigger", b"skills-changed"),))

    def one_skill(self, visit: Visit) -> Answer:
        """One skill with everything about it."""
        identity = visit.names[1]
        details = self._collection.details(identity)
        listed, skill = details.listed, self._collection.find(identity)
        folder = f"{_FOLDERS.get(listed.source, '')}/{skill.folder}".strip("/")
        origin = self._collection.origin(identity)
        if listed.source not in _FOLDERS:
            folder = origin.repository
        page = SkillPage(
            frame_of(visit, listed.name, "skills"),
            details=details,
            file=skill.file,
            place=folder,
            commit=origin.commit,
            body=self._site.markdown.render(
                details.body, f"/skill/{quote(identity, safe='')}/files"
            ),
            findings=finding_rows(details.findings, identity),
            listing=self._site.agent.text_about(identity),
            activation=self._site.agent.activation(identity),
            can_change=listed.source == "user",
        )
        return page_answer("skill.html", page)

    def list_files(self, visit: Visit) -> Answer:
        """The files of a skill."""
        identity = visit.names[1]
        files = tuple(self._collection.bundle(identity).files.values())
        return page_answer(
            "files.html", FilesPage(frame_of(visit, identity, "skills"), identity, files)
        )

    def one_file(self, visit: Visit) -> Answer:
        """One file of a skill: text in colours, anything else as facts."""
        identity, path = visit.names[1], "/".join(visit.names[3:])
        data = self._collection.read_file(identity, path)
        found = self._collection.details(identity).findings
        mine = [one for one in found if one.finding.path == path]
        page = FilePage(
            frame_of(visit, f"{path} · {identity}", "skills"),
            identity,
            path,
            len(data),
            f"sha256:{sha256_of(data)}",
            _lines(data, path),
            finding_rows(mine, identity),
        )
        return page_answer("file.html", page)

    def _found(self, text: str, shown: Shown) -> Sequence[str]:
        if not text:
            return shown.ids
        found = self._collection.search(text, max_age=PATIENCE)
        return [one.id for one in found.skills if one.id in shown.skills]

    def _sorted(self, ids: Iterable[str], shown: Shown, sort: str) -> list[str]:
        """In that order; of tokens the most come first."""
        skills, figures = shown.skills, self._collection.figures
        if sort == "name":
            return sorted(ids, key=lambda one: (skills[one].name.casefold(), one))
        if sort == "tokens":
            return sorted(ids, key=lambda one: (-figures(skills[one]).tokens, one))
        return sorted(ids, key=lambda one: (SOURCES.index(skills[one].source), one))


class _Asked(NamedTuple):
    """What the table is asked for."""

    text: str
    source: str
    sort: str
    page: int

    @classmethod
    def of(cls, visit: Visit) -> _Asked:
        number = visit.query.get("page", "1")
        is_number = number.isascii() and number.isdigit()
        source, sort = visit.query.get("source", ""), visit.query.get("sort", "id")
        return cls(
            visit.query.get("q", "").strip()[:200],
            source if source in SOURCES else "",
            sort if sort in SORTS else "id",
            max(1, int(number[:6])) if is_number else 1,
        )

    def at(self, source: str | None = None, sort: str = "", page: int = 1) -> str:
        """The address of another view."""
        given = {
            "q": self.text,
            "source": self.source if source is None else source,
            "sort": "" if (sort or self.sort) == "id" else sort or self.sort,
            "page": "" if page == 1 else str(page),
        }
        query = urlencode({key: value for key, value in given.items() if value})
        return f"/skills?{query}" if query else "/skills"


def _choices(asked: _Asked, shown: Shown, found: Sequence[str]) -> tuple[Choice, ...]:
    counts = dict.fromkeys(SOURCES, 0)
    for identity in found:
        counts[shown.skills[identity].source] += 1
    every = Choice("all", asked.at(source=""), len(found), not asked.source)
    return (
        every,
        *(Choice(one, asked.at(source=one), counts[one], one == asked.source) for one in SOURCES),
    )


def finding_rows(findings: Iterable[Judged], identity: str) -> tuple[FindingRow, ...]:
    """The findings, each with what it means and where it is to be seen."""
    base = f"/skill/{quote(identity, safe='')}/files/"
    rows = []
    for one in findings:
        line = f"#L{one.finding.line}" if one.finding.line else ""
        address = f"{base}{quote(one.finding.path)}{line}" if one.finding.path else ""
        rows.append(FindingRow(one, MEANINGS[one.finding.code], address))
    return tuple(sorted(rows, key=lambda row: row.judged.effect is Effect.ACCEPT))


def _lines(data: bytes, path: str) -> tuple[Markup, ...] | None:
    if len(data) > MAX_TEXT or b"\0" in data:
        return None
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None
    lines = text.removesuffix("\n").split("\n")
    painted = str(highlight(text, path)).removesuffix("\n").split("\n")
    # A span may go on for several lines; such a file is shown plain rather than torn apart.
    if len(painted) != len(lines) or any(
        one.count("<span") != one.count("</span") for one in painted
    ):
        return tuple(shown(line) for line in lines)
    return tuple(Markup(line) for line in painted)  # noqa: S704 - lines of what was painted
