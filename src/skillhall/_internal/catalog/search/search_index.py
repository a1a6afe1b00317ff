"""Search over a catalog: which skills come first when a person types some words.

An exact name, then names that begin so, then skills with all the words, then those that hold
them as parts of longer words, then skills with some of the words. Any text is a query.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.search.linear_scan import (
    InOrder,
    Listed,
    PlainScan,
    Row,
    Without,
    best_first,
)
from skillhall._internal.catalog.search.query import Term, fold, fold_line, loosened, read_query
from skillhall._internal.catalog.search.snippets import Excerpt, Excerpts
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Catalog, Skill
    from skillhall._internal.catalog.search.linear_scan import Engine, Matches, Weighed
    from skillhall._internal.catalog.search.query import Query

    Bodies: TypeAlias = Callable[[Skill], str]
    MakeEngine: TypeAlias = Callable[[Iterable[Row], Iterable[int]], Engine]

DEFAULT_LIMIT = 20
ENOUGH = 10  # hits; with fewer of one kind the next kind is looked for

# The kinds of hits, worst first. A score is the kind and, below one, how good it is of its kind.
_SOME, _PARTS, _EVERY, _BEGINNING, _FIRST_WORDS, _EXACT = range(6)
_KINDS = 6


class Hit(NamedTuple):
    """A skill that was found."""

    skill: Skill
    score: float  # from 0 to 1; comparable within one answer
    snippet: Excerpt


class SearchResult(NamedTuple):
    """One page of hits, best first."""

    hits: tuple[Hit, ...]
    total: int
    has_more: bool


class _Stage(NamedTuple):
    """Hits of one kind."""

    kind: int
    matches: Matches
    total: int


class SearchIndex:
    """Finds the skills of one catalog; immutable, and any number of threads may ask at once.

    A new catalog gets a new index.
    """

    def __init__(self, skills: Sequence[Skill], bodies: Bodies | None, make: MakeEngine) -> None:
        # In name order, so that a row's number is its place among equals and the names that begin
        # alike are neighbours.
        self._skills = sorted(skills, key=_by_name)
        self._names = [fold_line(skill.name) for skill in self._skills]
        self._bodies = bodies
        self._unread: list[Skill] = []
        hidden = [number for number, skill in enumerate(self._skills) if skill.hidden]
        self._hidden = frozenset(hidden)
        self._engine = make(self._rows(bodies), hidden)

    @classmethod
    def build(
        cls, catalog: Catalog, bodies: Bodies | None = None, make: MakeEngine | None = None
    ) -> SearchIndex:
        """The index of a catalog: names and descriptions, and what `bodies` gives for each skill.

        Names and descriptions are in memory, bodies must be read: a server builds one index
        without and, in the background, a second one with them.
        """
        return cls(catalog.skills, bodies, make or best_engine())

    def __len__(self) -> int:
        """How many skills can be found."""
        return len(self._skills)

    @property
    def unread(self) -> tuple[Skill, ...]:
        """The skills whose bodies could not be read; they are found by name and description."""
        return tuple(self._unread)

    def search(
        self, text: str, limit: int = DEFAULT_LIMIT, offset: int = 0, *, for_models: bool = False
    ) -> SearchResult:
        """The page of hits for whatever `text` is; for a blank one all skills, in name order.

        `for_models` leaves out the skills that no model may be shown.
        """
        query = read_query(text)
        stages = self._stages(query, Without(hidden=for_models))
        total = sum(stage.total for stage in stages)
        limit, offset = max(0, limit), max(0, offset)
        hits = tuple(self._hits(query, _slice(stages, limit, offset)))
        return SearchResult(hits, total, offset + len(hits) < total)

    def find(self, text: str, limit: int = DEFAULT_LIMIT) -> tuple[list[Skill], int]:
        """The skills of the first page of `search`, and how many there are; no body is read."""
        stages = self._stages(read_query(text), Without())
        found = [self._skills[row] for _, (row, _) in _slice(stages, max(0, limit), 0)]
        return found, sum(stage.total for stage in stages)

    def _rows(self, bodies: Bodies | None) -> Iterator[Row]:
        for name, skill in zip(self._names, self._skills, strict=True):
            body = fold(self._body(skill, bodies)) if bodies else ""
            yield Row(name, fold(skill.description), body)

    def _body(self, skill: Skill, bodies: Bodies) -> str:
        try:
            return bodies(skill)
        except SkillhallError:
            self._unread.append(skill)
            return ""

    @cached_property
    def _letters(self) -> PlainScan:
        """For parts of words. Names and descriptions alone: bodies would fill the memory."""
        return PlainScan(self._rows(None), self._hidden)

    def _stages(self, query: Query, without: Without) -> list[_Stage]:
        if not query.needle:
            everything = self._visible if without.hidden else range(len(self))
            return [_stage(_SOME, InOrder(self._called(query.text, everything)))]
        named = self._named(query.needle)
        without = without._replace(named=named)
        stages = self._name_stages(query, without)
        for kind, matches in self._word_matches(query, without, stages):
            stages.append(_stage(kind, matches))
            if sum(stage.total for stage in stages) >= ENOUGH:
                break
        return stages

    def _called(self, text: str, rows: Sequence[int]) -> Sequence[int]:
        """The rows, those first that are called so: a lone accent folds to nothing."""
        named = [row for row in rows if text and self._skills[row].name.strip() == text.strip()]
        return [*named, *(row for row in rows if row not in named)] if named else rows

    def _word_matches(
        self, query: Query, without: Without, stages: Sequence[_Stage]
    ) -> Iterator[tuple[int, Matches]]:
        """The kinds of hits by words, each looked for when the former ones were not enough."""
        terms = query.terms
        if not terms:
            yield _PARTS, self._letters.every([Term(query.needle)], without)
            return
        yield _EVERY, self._engine.every(terms, without)
        # A run without blanks is found inside of longer ones at once.
        words = [term for term in terms if not term.is_unspaced]
        if _may_be_parts(words) and self._engine.has_unknown(words):
            found = _rows_of(stages[-1])
            without = without._replace(found=found)
            yield _PARTS, self._letters.every(terms, without)
            without = without._replace(found=(*found, *_rows_of(stages[-1])))
        if (loose := loosened(terms)) != terms or len(terms) > 1:
            yield _SOME, self._engine.some(loose, terms, without)

    @cached_property
    def _visible(self) -> list[int]:
        return [row for row in range(len(self)) if row not in self._hidden]

    def _may_show(self, row: int, without: Without) -> bool:
        return not (without.hidden and row in self._hidden)

    def _named(self, needle: str) -> range:
        """The rows whose names begin with `needle`."""
        start = bisect_left(self._names, needle)
        length = len(needle)
        return range(start, bisect_right(self._names, needle, start, key=lambda n: n[:length]))

    def _name_stages(self, query: Query, without: Without) -> list[_Stage]:
        kinds: dict[int, list[Weighed]] = {_EXACT: [], _FIRST_WORDS: [], _BEGINNING: []}
        for row in without.named:
            if self._may_show(row, without):
                kind, weight = self._weigh_name(row, query)
                kinds[kind].append((row, weight))
        for rows in kinds.values():
            rows.sort(key=best_first)
        return [_stage(kind, Listed(rows)) for kind, rows in kinds.items() if rows]

    def _weigh_name(self, row: int, query: Query) -> tuple[int, float]:
        name, length = self._names[row], len(query.needle)
        if len(name) == length:
            return _EXACT, float(self._skills[row].name == query.text)
        kind = _BEGINNING if name[length].isalnum() else _FIRST_WORDS
        return kind, length / len(name)

    def _hits(self, query: Query, found: Iterable[tuple[int, Weighed]]) -> Iterator[Hit]:
        words, parts = Excerpts(query), Excerpts(query, inside_words=True)
        for kind, (row, weight) in found:
            score = (kind + weight / (1 + weight)) / _KINDS
            excerpts = parts if kind == _PARTS else words
            yield Hit(self._skills[row], score, self._excerpt(self._skills[row], excerpts))

    def _excerpt(self, skill: Skill, excerpts: Excerpts) -> Excerpt:
        described = excerpts.of(skill.description)
        if described.marks or self._bodies is None:
            return described
        try:
            written = excerpts.of(self._bodies(skill))
        except SkillhallError:  # it vanished since it was indexed
            return described
        return written if written.marks else described


def best_engine() -> MakeEngine:
    """The full-text index, or a plain scan where this interpreter has no full-text search."""
    try:
        from skillhall._internal.catalog.search import fts as fulltext  # noqa: PLC0415 - an interpreter may lack SQLite
    except ImportError:
        return PlainScan
    return fulltext.FullText if fulltext.is_available() else PlainScan


def _by_name(skill: Skill) -> tuple[str, ...]:
    return fold_line(skill.name), skill.name, skill.root.path, skill.folder, skill.file


def _may_be_parts(terms: Iterable[Term]) -> bool:
    """Whether the terms say something as parts of words: a letter is part of almost every text."""
    return all(len(term.text) > 1 for term in terms)


def _stage(kind: int, matches: Matches) -> _Stage:
    return _Stage(kind, matches, matches.total)


def _rows_of(stage: _Stage) -> tuple[int, ...]:
    return tuple(row for row, _ in stage.matches.page(stage.total, 0))


def _slice(stages: Iterable[_Stage], limit: int, offset: int) -> Iterator[tuple[int, Weighed]]:
    """A page of all stages, one after the other, with the kind of each row."""
    for kind, matches, total in stages:
        if limit and offset < total:
            page = matches.page(limit, offset)
            limit -= len(page)
            yield from ((kind, weighed) for weighed in page)
        offset = max(0, offset - total)
