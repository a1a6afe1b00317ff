"""Pages about many skills: the list with its filters, and exports of it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Self
from urllib.parse import urlencode

from markupsafe import Markup, escape
from starlette.responses import Response

from skillhall._internal.authoring.portability import load_client_table
from skillhall._internal.catalog.search.snippets import Snippet
from skillhall._internal.http.response import encode_json
from skillhall._internal.render.csv_table import render_csv_table
from skillhall._internal.skill_store.collection import CollectionSnapshot
from skillhall._internal.skill_store.input_checks import SkillSummary
from skillhall._internal.skill_store.skill_analysis import SkillFacts
from skillhall._internal.skill_store.skill_table import (
    Facet,
    FacetValue,
    SkillQuery,
)
from skillhall._internal.web.page_request import PageRequest, on_error, parse_number
from skillhall._internal.web.rendering import render
from skillhall._internal.web.skills.saved_views import (
    MAX_VIEW_NAME,
    VIEWS_COOKIE,
    SavedView,
    decode_views,
    encode_views,
)

ROWS_PER_PAGE = 50
MAX_SKIPPED_SHOWN = 20  # above the table; /sources/skipped lists more
_VIEWS_LIFETIME = 400 * 24 * 60 * 60  # seconds; browsers keep no cookie for longer
VALUES_SHOWN = 8  # of one facet; the others are folded
_CLIENT_FACETS = frozenset({"loads", "dropped"})
COLUMNS = ("name", "source", "risk", "tokens", "files", "findings")


class ListedSkill(NamedTuple):
    """A row of the list; matches of a search are marked."""

    entry: SkillSummary
    facts: SkillFacts
    name: Markup
    text: Markup


class ListView(NamedTuple):
    """The query of the list and its page: everything that its URL contains."""

    query: SkillQuery
    page: int = 1

    @classmethod
    def from_request(cls, request: PageRequest) -> Self:
        """Parse the query of a request; invalid values become the defaults."""
        query = SkillQuery.parse(request.query_params.getlist)
        return cls(query, max(1, parse_number(request.query_params.get("page", "1"))))

    @property
    def url(self) -> str:
        """URL of this view."""
        return self._build_url("/skills", self.query, self.page)

    def toggle_url(self, facet: str, value: str) -> str:
        """URL of the list with a value added to a filter, or removed from it."""
        return self._build_url("/skills", self.query.toggle(facet, value))

    def clear_url(self) -> str:
        """URL of the list without filters."""
        return self._build_url("/skills", self.query._replace(filters={}))

    def sort_url(self, key: str) -> str:
        """URL of the list sorted by a column, in the other order if it already is."""
        return self._build_url("/skills", self.query.sort_by(key))

    def relevance_url(self) -> str:
        """URL of the list in the order of relevance."""
        return self._build_url("/skills", self.query._replace(sort="", order=""))

    def page_url(self, page: int) -> str:
        """URL of another page."""
        return self._build_url("/skills", self.query, page)

    @property
    def is_default(self) -> bool:
        """Whether the list is neither searched, filtered nor sorted."""
        return not self.query.parameters

    def saved_view_url(self, action: str) -> str:
        """URL of an action on the saved views, which then shows this view again."""
        return self._build_url(f"/skills/views/{action}", self.query, self.page)

    def export_url(self, kind: str) -> str:
        """URL that downloads all skills of the list."""
        return self._build_url(f"/skills/export.{kind}", self.query)

    def aria_sort(self, key: str) -> str:
        """Value of `aria-sort` of a column; "" if the list is not sorted by it."""
        if key != self.query.sort_key:
            return ""
        return "descending" if self.query.is_descending else "ascending"

    @staticmethod
    def _build_url(path: str, query: SkillQuery, page: int = 1) -> str:
        pairs = query.parameters + ([("page", str(page))] if page > 1 else [])
        return f"{path}?{urlencode(pairs)}" if pairs else path


class ListedFacet(NamedTuple):
    """A facet with the names of its values."""

    name: str
    values: tuple[tuple[FacetValue, str], ...]

    @property
    def shown(self) -> tuple[tuple[FacetValue, str], ...]:
        """The values to show: the first ones, and those that are selected."""
        return tuple(
            one for n, one in enumerate(self.values) if n < VALUES_SHOWN or one[0].is_selected
        )

    @property
    def folded(self) -> tuple[tuple[FacetValue, str], ...]:
        """The other values."""
        return tuple(one for one in self.values if one not in self.shown)


def list_skills(request: PageRequest) -> Response:
    """Show the list of skills, filtered, searched and sorted."""
    collection, view = request.collection, ListView.from_request(request)
    snapshot = collection.snapshot()
    served = collection.clear(snapshot)
    find = partial(collection.query, view.query, snapshot, limit=ROWS_PER_PAGE)
    found = find(start=(view.page - 1) * ROWS_PER_PAGE)
    page_count = max(1, -(-found.total // ROWS_PER_PAGE))
    if view.page > page_count:
        view = view._replace(page=page_count)
        found = find(start=(page_count - 1) * ROWS_PER_PAGE)
    number, start = view.page, (view.page - 1) * ROWS_PER_PAGE
    rows = [*_build_rows(request, snapshot, view.query.text, found.ids)]
    facets = [_name_values(request, facet) for facet in found.facets]
    return render(
        request,
        "skills.html",
        rows=rows,
        total=found.total,
        first=start + 1,
        last=start + len(rows),
        view=view,
        columns=COLUMNS,
        saved_views=_read_views(request),
        max_view_name=MAX_VIEW_NAME,
        facets=[facet for facet in facets if facet.values],
        selected=[
            (facet.name, value.value, label)
            for facet in facets
            for value, label in facet.values
            if value.is_selected
        ],
        is_empty=not snapshot.skills,
        previous_url=view.page_url(number - 1) if number > 1 else "",
        next_url=view.page_url(number + 1) if number < page_count else "",
        revision=served.revision,
        held_ids=served.held_ids,
        skipped=snapshot.skipped[:MAX_SKIPPED_SHOWN],
        skipped_total=len(snapshot.skipped),
        progress=collection.facts.progress,  # of counting tokens; None if it is complete
    )


@on_error(list_skills)
def save_view(request: PageRequest) -> Response:
    """Save the current view under a name, which replaces a view with the same name."""
    view = SavedView.build(request.field("name"), ListView.from_request(request).query)
    others = (one for one in _read_views(request) if one.name != view.name)
    return _store_views(request, (*others, view), "view_saved", view.name)


@on_error(list_skills)
def delete_view(request: PageRequest) -> Response:
    """Delete a saved view."""
    name = request.field("name")
    others = (one for one in _read_views(request) if one.name != name)
    return _store_views(request, others, "view_deleted", name)


def check_for_changes(request: PageRequest) -> Response:
    """Trigger a reload of the list if the browser shows an old revision."""
    collection = request.collection
    if request.query_params.get("revision") == collection.clear(collection.snapshot()).revision:
        return Response(status_code=204)
    return Response(status_code=204, headers={"hx-trigger": "skills-changed"})


def export_csv(request: PageRequest) -> Response:
    """Return all skills of the current view as CSV."""
    rows = _serialize_view(request)
    names = [*dict.fromkeys(name for row in rows for name in row)]
    cells = ([_format_cell(row.get(name, "")) for name in names] for row in rows)
    text = render_csv_table([names, *cells])
    return _download(text.encode("utf-8", "replace"), "text/csv", "skills.csv")


def export_json(request: PageRequest) -> Response:
    """Return all skills of the current view as JSON."""
    rows = _serialize_view(request)
    data = encode_json({"skills": rows, "total": len(rows)})
    return _download(data, "application/json", "skills.json")


def _read_views(request: PageRequest) -> tuple[SavedView, ...]:
    return decode_views(request.cookies.get(VIEWS_COOKIE, ""))


def _store_views(
    request: PageRequest, views: Iterable[SavedView], notice: str, name: str
) -> Response:
    text = encode_views(views)
    response = request.redirect(ListView.from_request(request).url, notice, name)
    request.add_cookie(response, VIEWS_COOKIE, text, _VIEWS_LIFETIME)
    return response


def _build_rows(
    request: PageRequest, snapshot: CollectionSnapshot, text: str, ids: Sequence[str]
) -> Iterator[ListedSkill]:
    collection = request.collection
    snippets = collection.build_snippets(snapshot, text, ids) if text else ()
    for number, identity in enumerate(ids):
        entry = snapshot.get_entry(identity)
        facts = collection.facts.get_or_default(snapshot.skills[identity])
        name, excerpt = escape(entry.name), escape(entry.description)
        if snippets:
            name, excerpt = map(_mark, snippets[number])
        yield ListedSkill(entry, facts, name, excerpt)


def _mark(snippet: Snippet) -> Markup:
    """Return a snippet as HTML with its matches in `<mark>`."""
    text, parts, last = snippet.text, [], 0
    for start, end in snippet.marks:
        parts.append(escape(text[last:start]) + Markup("<mark>%s</mark>") % text[start:end])
        last = end
    return Markup("").join([*parts, escape(text[last:])])


def _name_values(request: PageRequest, facet: Facet) -> ListedFacet:
    """Translate the values of a facet; those without a text keep their own name."""
    if facet.name in _CLIENT_FACETS:
        labels = {one.id: one.label for one in load_client_table().clients.values()}
        named = [(one, labels.get(one.value, one.value)) for one in facet.values]
        named.sort(key=lambda row: (-row[0].total, row[1].casefold()))
        return ListedFacet(facet.name, tuple(named))
    translations, values = request.translations, []
    for one in facet.values:
        key = f"{facet.name}-{one.value}"
        is_known = f"facet_value.{key}" in translations.messages
        values.append((one, translations(f"facet_value.{key}") if is_known else one.value))
    return ListedFacet(facet.name, tuple(values))


def _serialize_view(request: PageRequest) -> list[dict[str, object]]:
    collection, snapshot = request.collection, request.collection.snapshot()
    query = SkillQuery.parse(request.query_params.getlist)
    found = collection.query(query, snapshot, limit=len(snapshot.ids))
    return [collection.serialize_row(snapshot, identity) for identity in found.ids]


def _format_cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _download(data: bytes, media_type: str, name: str) -> Response:
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(data, 200, disposition, media_type)
