"""Table of the skills of one revision: filters, facets, orders and pages.

The sets of skills with a fact are integers with one bit for each skill. Counting a facet of
thousands of skills takes microseconds, and no request reads the facts of all skills.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from skillhall._internal.authoring.portability import list_compared_clients
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.skill.risks.levels import RiskLevel
from skillhall._internal.skill_store.skill_analysis import SkillFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from skillhall._internal.skill_store.input_checks import SkillSummary

NO_FINDINGS = "none"  # value of the facet `findings`
YES, NO = "yes", "no"
# Facets with their values in order; the others are sorted by their number of skills.
FACETS: Mapping[str, Sequence[str]] = {
    "source": ("user", "system", "repository"),
    "repository": (),
    "risk": tuple(level.value for level in RiskLevel),
    "findings": (),
    "size": ("s", "m", "l", "xl"),
    "agent": tuple(PROFILES),
    "scripts": (YES, NO),
    "evals": (YES, NO),
    "loads": (),  # clients that load the skill
    "dropped": (),  # clients that do not
}
_SIZES = {"s": 500, "m": 2_000, "l": 5_000}  # tokens, exclusive; the rest is `xl`
ORDERS = ASCENDING, DESCENDING = "asc", "desc"
SORT_KEYS = ("name", "id", "source", "risk", "tokens", "files", "findings")
_LARGEST_FIRST = frozenset({"risk", "tokens", "files", "findings"})
_MAX_TEXT_LENGTH = 200
_MAX_VALUES = 100  # of one facet in a query
_FLAGS = bytes.maketrans(b"01", b"\0\1")


class SkillQuery(NamedTuple):
    """Which skills to list, and in which order."""

    text: str = ""
    filters: Mapping[str, tuple[str, ...]] = {}  # by facet; one of the values is enough
    sort: str = ""  # "" is relevance if there is a text, else the name
    order: str = ""  # "" is the usual order of the key

    @classmethod
    def parse(cls, read_all: Callable[[str], Iterable[str]]) -> Self:
        """Parse the parameters of a URL; unknown keys and orders become the defaults.

        `read_all` returns the values of a parameter.
        """
        text = next(iter(read_all("q")), "").strip()[:_MAX_TEXT_LENGTH]
        sort, order = (next(iter(read_all(name)), "") for name in ("sort", "order"))
        values = {
            facet: tuple(islice(dict.fromkeys(filter(None, read_all(facet))), _MAX_VALUES))
            for facet in FACETS
        }
        return cls(
            text,
            {facet: chosen for facet, chosen in values.items() if chosen},
            sort if sort in SORT_KEYS else "",
            order if order in ORDERS else "",
        )

    @property
    def sort_key(self) -> str:
        """The key that sorts the skills; "" for relevance."""
        return self.sort or ("" if self.text else SORT_KEYS[0])

    @property
    def is_descending(self) -> bool:
        """Whether the last or largest comes first."""
        return (self.order or first_order(self.sort_key)) == DESCENDING

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of its URL."""
        pairs = [("q", self.text)]
        pairs += [(facet, value) for facet in FACETS for value in self.filters.get(facet, ())]
        pairs += [("sort", self.sort), ("order", self.order)]
        return [(name, value) for name, value in pairs if value]

    def toggle(self, facet: str, value: str) -> Self:
        """Return the query with a value added to a facet, or removed from it."""
        chosen = self.filters.get(facet, ())
        rest = tuple(one for one in chosen if one != value)
        values = rest if len(rest) < len(chosen) else (*chosen, value)
        others = {key: row for key, row in self.filters.items() if key != facet}
        return self._replace(filters={**others, facet: values} if values else others)

    def sort_by(self, key: str) -> Self:
        """Return the query sorted by a key, in the other order if it already is."""
        order = ""
        if key == self.sort_key:
            order = ASCENDING if self.is_descending else DESCENDING
        is_usual = order == first_order(key)
        return self._replace(sort=key, order="" if is_usual else order)


class TableRow(NamedTuple):
    """A skill to put into the table, and its facts if they are known."""

    entry: SkillSummary
    facts: SkillFacts | None


class FacetValue(NamedTuple):
    """A value of a facet, and how many of the skills have it."""

    value: str
    total: int
    is_selected: bool


class Facet(NamedTuple):
    """A fact by which skills can be filtered."""

    name: str
    values: tuple[FacetValue, ...]

    @property
    def selected(self) -> tuple[FacetValue, ...]:
        """The values that the query asks for."""
        return tuple(one for one in self.values if one.is_selected)


class TablePage(NamedTuple):
    """A part of the skills that match a query."""

    ids: tuple[str, ...]
    total: int
    facets: tuple[Facet, ...]


class SkillTable:
    """Immutable table of skills; orders are computed when they are needed."""

    def __init__(self, rows: Iterable[TableRow]) -> None:
        """Create the table; `rows` are sorted by id."""
        members: dict[str, dict[str, list[int]]] = {facet: defaultdict(list) for facet in FACETS}
        columns: dict[str, list[Any]] = {key: [] for key in SORT_KEYS}
        count = 0
        for count, (entry, facts) in enumerate(rows, 1):
            for facet, value in _find_values(entry, facts):
                members[facet][value].append(count - 1)
            for key, cell in _sort_values(entry, facts or SkillFacts()).items():
                columns[key].append(cell)
        self._columns = columns
        self._ids = tuple(map(str, columns["id"]))
        self._positions = {identity: number for number, identity in enumerate(self._ids)}
        self._all = (1 << count) - 1
        self._masks = {
            facet: {value: self._build_mask(rows) for value, rows in values.items()}
            for facet, values in members.items()
        }
        # Most clients load most skills, so these sets follow from the others.
        examined, dropped = self._select("risk", self._masks["risk"]), self._masks["dropped"]
        self._masks["loads"] = {
            client.id: examined & ~dropped.get(client.id, 0) for client in list_compared_clients()
        }
        self._orders: dict[tuple[str, bool], Sequence[int]] = {}

    def find(
        self, query: SkillQuery, matches: Sequence[str] | None, start: int, limit: int
    ) -> TablePage:
        """Return the page from number `start` on.

        `matches` are the ids that match the text, best first; `None` if there is no text.
        """
        found = None
        if matches is not None:
            places = (self._positions.get(identity) for identity in matches)
            found = [place for place in places if place is not None]
        matching = self._all if found is None else self._build_mask(found)
        chosen = {facet: self._select(facet, values) for facet, values in query.filters.items()}
        selected = matching
        for mask in chosen.values():
            selected &= mask
        order = self._sort(query) if query.sort_key else found or ()
        ids = (self._ids[place] for place in self._pick(order, selected, start, limit))
        facets = tuple(self._count(facet, query, chosen, matching) for facet in FACETS)
        return TablePage(tuple(ids), selected.bit_count(), facets)

    def _build_mask(self, places: Iterable[int]) -> int:
        flags = bytearray(b"0" * len(self._ids))
        for place in places:
            flags[-1 - place] = 49  # "1"
        return int(flags, 2) if flags else 0

    def _select(self, facet: str, values: Iterable[str]) -> int:
        masks, selected = self._masks[facet], 0
        for value in values:
            selected |= masks.get(value, 0)
        return selected

    def _count(
        self, facet: str, query: SkillQuery, chosen: Mapping[str, int], matching: int
    ) -> Facet:
        """Count the skills with each value, among those that match the other facets."""
        for other, mask in chosen.items():
            if other != facet:
                matching &= mask
        masks, selected = self._masks[facet], query.filters.get(facet, ())
        counts = {value: (mask & matching).bit_count() for value, mask in masks.items()}
        counts |= {value: 0 for value in selected if value not in counts}
        ranks = {value: rank for rank, value in enumerate(FACETS[facet])}
        names = sorted(
            (value for value, count in counts.items() if count or value in selected),
            key=lambda value: (ranks.get(value, len(ranks)), -counts[value], value),
        )
        return Facet(facet, tuple(FacetValue(one, counts[one], one in selected) for one in names))

    def _sort(self, query: SkillQuery) -> Sequence[int]:
        key, is_descending = query.sort_key, query.is_descending
        order = self._orders.get((key, is_descending))
        if order is None:
            cells = self._columns[key]
            # Sorting is stable, so equal cells stay in the order of ids.
            order = sorted(range(len(cells)), key=cells.__getitem__, reverse=is_descending)
            self._orders[key, is_descending] = order
        return order

    def _pick(self, order: Sequence[int], mask: int, start: int, limit: int) -> Iterator[int]:
        if mask == self._all and len(order) == len(self._ids):
            return iter(order[start : start + limit])
        flags = f"{mask:0{len(self._ids)}b}"[::-1].encode("ascii").translate(_FLAGS)
        found = compress(order, map(flags.__getitem__, order))
        return islice(found, start, start + limit)


def first_order(key: str) -> str:
    """Return the order in which a key sorts at first."""
    return DESCENDING if key in _LARGEST_FIRST else ASCENDING


def find_size(tokens: int) -> str:
    """Return the value of the facet `size` for a number of tokens."""
    return next((size for size, limit in _SIZES.items() if tokens < limit), "xl")


def _find_values(entry: SkillSummary, facts: SkillFacts | None) -> Iterator[tuple[str, str]]:
    """Yield the facets of a skill with their values; facts that are not known have none."""
    yield "source", entry.source
    if entry.repository:
        yield "repository", entry.repository
    if facts is None or not facts.risk:
        return
    yield "risk", facts.risk
    yield "size", find_size(facts.tokens)
    yield "scripts", YES if facts.has_scripts else NO
    yield "evals", YES if facts.has_evals else NO
    for code in facts.codes or (NO_FINDINGS,):
        yield "findings", code
    for profile in facts.profiles:
        yield "agent", profile
    for client in facts.dropped_by:
        yield "dropped", client


def _sort_values(entry: SkillSummary, facts: SkillFacts) -> dict[str, object]:
    return {
        "name": entry.name.casefold(),
        "id": entry.id,
        "source": (entry.source, entry.repository),
        "risk": facts.risk,
        "tokens": facts.tokens,
        "files": facts.files,
        "findings": facts.warnings,
    }
