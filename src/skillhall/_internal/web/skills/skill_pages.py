"""Pages that show skills: the table, one skill, its files and one file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.responses import Response

from skillhall._internal.evals.reports.served_results import find_served_overview
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill_store.collection import (
    SOURCES,
    Collection,
    CollectionSnapshot,
    SkillDetails,
)
from skillhall._internal.web.highlight import escape_text, highlight_code
from skillhall._internal.web.page_request import PageRequest, parse_number
from skillhall._internal.web.rendering import render
from skillhall._internal.web.skills.eval_card import build_eval_card
from skillhall.errors import SkillNotApproved

ROWS_PER_PAGE = 50
MAX_SKIPPED_SHOWN = 20  # above the table; /sources/skipped lists more
MAX_TEXT_BYTES = 512 * 1024  # larger files are not shown
SORT_KEYS = ("id", "name", "source", "tokens")
_SOURCE_FOLDERS = {source: folder for folder, source in LOCAL_SKILLS.roots}


def list_skills(request: PageRequest) -> Response:
    """Show the table of skills, filtered, searched and sorted."""
    collection, query = request.collection, TableQuery.from_request(request)
    snapshot = collection.snapshot()
    served = collection.clear(snapshot)
    ids, counts = _find_ids(collection, snapshot, query)
    page_count = max(1, -(-len(ids) // ROWS_PER_PAGE))
    number = min(query.page, page_count)
    start = (number - 1) * ROWS_PER_PAGE
    rows = [
        (snapshot.get_entry(row), collection.facts.get_or_default(snapshot.skills[row]))
        for row in ids[start : start + ROWS_PER_PAGE]
    ]
    return render(
        request,
        "skills.html",
        rows=rows,
        total=len(ids),
        first=start + 1,
        last=start + len(rows),
        table=query,
        sources=SOURCES,
        sort_keys=SORT_KEYS,
        source_counts=counts,
        match_count=sum(counts.values()),  # of all sources
        previous_url=query.url(page=number - 1) if number > 1 else "",
        next_url=query.url(page=number + 1) if number < page_count else "",
        url=query.url(page=number),
        revision=served.revision,
        held_ids=served.held_ids,
        skipped=snapshot.skipped[:MAX_SKIPPED_SHOWN],
        skipped_total=len(snapshot.skipped),
        progress=collection.facts.progress,  # of counting tokens; None if it is complete
    )


def check_for_changes(request: PageRequest) -> Response:
    """Trigger a reload of the table if the browser shows an old revision."""
    collection = request.collection
    if request.query_params.get("revision") == collection.clear(collection.snapshot()).revision:
        return Response(status_code=204)
    return Response(status_code=204, headers={"hx-trigger": "skills-changed"})


def show_skill(request: PageRequest) -> Response:
    """Show one skill."""
    skill_id = request.path_params["id"]
    details = request.collection.details(skill_id)
    entry, skill = details.entry, request.collection.find(skill_id)
    origin, folder = request.collection.origin(skill_id), _SOURCE_FOLDERS.get(entry.source)
    files_url = f"/skill/{quote(skill_id, safe='')}/files"
    accepted, actionable = _split_findings(details.findings)
    return render(
        request,
        "skill.html",
        entry.name,
        details=details,
        file=skill.file,
        location=f"{folder}/{skill.folder}".strip("/") if folder else origin.repository,
        commit=origin.commit,
        body=request.site.markdown.render(details.body, files_url),
        accepted_findings=accepted,
        actionable_findings=actionable,
        listing=request.site.default_agent_skills.render_prompt_for_skill(skill_id),
        activation=_render_activation(request, details),
        is_editable=entry.source == "user",
        trust=request.collection.summarize_trust(skill),
        evals=build_eval_card(find_served_overview(request.collection, skill_id)),
        has_versions=entry.source == "user" and request.collection.versions is not None,
    )


def _render_activation(request: PageRequest, details: SkillDetails) -> str:
    """Return the text that a model gets; "" for a skill that is revoked or held by a rule."""
    try:
        return request.site.default_agent_skills.render_activation_text(details.entry.id)
    except SkillNotApproved:
        return ""


def list_files(request: PageRequest) -> Response:
    """Show the files of a skill."""
    skill_id = request.path_params["id"]
    files = tuple(request.collection.bundle(skill_id).files.values())
    return render(request, "files.html", skill_id, id=skill_id, files=files)


def show_file(request: PageRequest) -> Response:
    """Show one file of a skill: highlighted text, or only size and digest."""
    skill_id, path = request.path_params["id"], request.path_params["path"]
    data = request.collection.read_file(skill_id, path)
    findings = request.collection.details(skill_id).findings
    accepted, actionable = _split_findings([row for row in findings if row.finding.path == path])
    return render(
        request,
        "file.html",
        f"{path} · {skill_id}",
        id=skill_id,
        path=path,
        size=len(data),
        digest=f"sha256:{sha256_hex(data)}",
        lines=_highlight_lines(data, path),  # None if it is not text or too large
        findings=[*actionable, *accepted],
        finding_lines={row.finding.line for row in (*actionable, *accepted)},
    )


class TableQuery(NamedTuple):
    """Search text, filter, order and page of the table."""

    text: str
    source: str
    sort: str
    page: int

    @classmethod
    def from_request(cls, request: PageRequest) -> Self:
        """Parse the query of a request; invalid values become the defaults."""
        query = request.query_params
        source, sort = query.get("source", ""), query.get("sort", "id")
        return cls(
            query.get("q", "").strip()[:200],
            source if source in SOURCES else "",
            sort if sort in SORT_KEYS else "id",
            max(1, parse_number(query.get("page", "1"))),
        )

    def url(self, source: str | None = None, sort: str = "", page: int = 1) -> str:
        """Return the URL of the table with another source, order or page."""
        parameters = {
            "q": self.text,
            "source": self.source if source is None else source,
            "sort": "" if (sort or self.sort) == "id" else sort or self.sort,
            "page": "" if page == 1 else str(page),
        }
        query = urlencode({key: value for key, value in parameters.items() if value})
        return f"/skills?{query}" if query else "/skills"


def _find_ids(
    collection: Collection, snapshot: CollectionSnapshot, query: TableQuery
) -> tuple[Sequence[str], Mapping[str, int]]:
    """Return the ids to show, in order, and the number of matches per source."""
    skills, source = snapshot.skills, query.source
    if query.text:  # search results are sorted by relevance
        found = collection.search_ids(snapshot, query.text)
        ids = [row for row in found if not source or skills[row].source == source]
        return ids, Counter(skills[match].source for match in found)
    counts = snapshot.source_counts
    if query.sort == "name":
        return snapshot.sort_ids(source, by_name=True), counts
    if query.sort == "source":
        return snapshot.sort_ids(source), counts
    if query.sort == "tokens":
        return collection.sort_by_tokens(snapshot, source), counts
    return snapshot.ids_of_source(source) if source else snapshot.ids, counts


def _split_findings(
    findings: Sequence[JudgedFinding],
) -> tuple[list[JudgedFinding], list[JudgedFinding]]:
    """Return the findings that need no action, then the others."""
    accepted = [row for row in findings if row.effect is Effect.ACCEPT]
    return accepted, [row for row in findings if row.effect is not Effect.ACCEPT]


def _highlight_lines(data: bytes, path: str) -> tuple[Markup, ...] | None:
    if len(data) > MAX_TEXT_BYTES or b"\0" in data:
        return None
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None
    lines = text.removesuffix("\n").split("\n")
    rows = str(highlight_code(text, path)).removesuffix("\n").split("\n")
    # A span over several lines cannot be split; such a file is shown without highlighting.
    if len(rows) != len(lines) or any(row.count("<span") != row.count("</span") for row in rows):
        return tuple(escape_text(line) for line in lines)
    return tuple(Markup(row) for row in rows)  # noqa: S704 - highlighted, thus escaped
