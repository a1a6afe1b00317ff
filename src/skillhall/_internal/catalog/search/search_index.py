"""Search over a catalog: which skills come first when a person types some words.

An exact name, then names that begin so, then skills with all the words, then those that hold
them as parts of longer words, then skills with some of the words. Any text is a query.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.search.linear_scan import (
    LinearScanEngine,
    MatchList,
    RowExclusions,
    SearchRow,
    UnrankedMatches,
    rank_key,
)
from skillhall._internal.catalog.search.query import (
    Term,
    fold_line,
    fold_text,
    loosen_terms,
    parse_query,
)
from skillhall._internal.catalog.search.snippets import Snippet, SnippetBuilder
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import Catalog, Skill
    from skillhall._internal.catalog.search.linear_scan import Matches, ScoredRow, SearchEngine
    from skillhall._internal.catalog.search.query import Query

    BodyReader: TypeAlias = Callable[[Skill], str]
    EngineFactory: TypeAlias = Callable[[Iterable[SearchRow], Iterable[int]], SearchEngine]

DEFAULT_LIMIT = 20
MIN_HITS = 10  # hits; with fewer of one kind the next kind is looked for

# The kinds of hits, worst first. A score is the kind and, below one, how good it is of its kind.
_ANY_TERM, _SUBSTRINGS, _ALL_TERMS, _NAME_PREFIX, _NAME_FIRST_WORDS, _NAME_EXACT = range(6)
_KIND_COUNT = 6


class SearchHit(NamedTuple):
    """A skill that was found."""

    skill: Skill
    score: float  # from 0 to 1; comparable within one answer
    snippet: Snippet


class SearchResult(NamedTuple):
    """One page of hits, best first."""

    hits: tuple[SearchHit, ...]
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

    def __init__(
        self, skills: Sequence[Skill], body_reader: BodyReader | None, make_engine: EngineFactory
    ) -> None:
        # In name order, so that a row's number is its place among equals and the names that begin
        # alike are neighbours.
        self._skills = sorted(skills, key=_name_sort_key)
        self._names = [fold_line(skill.name) for skill in self._skills]
        self._body_reader = body_reader
        self._unreadable: list[Skill] = []
        hidden = [number for number, skill in enumerate(self._skills) if skill.hidden]
        self._hidden = frozenset(hidden)
        self._engine = make_engine(self._build_rows(body_reader), hidden)

    @classmethod
    def build(
        cls,
        catalog: Catalog,
        body_reader: BodyReader | None = None,
        make_engine: EngineFactory | None = None,
    ) -> SearchIndex:
        """The index of a catalog: names and descriptions, and what `bodies` gives for each skill.

        Names and descriptions are in memory, bodies must be read: a server builds one index
        without and, in the background, a second one with them.
        """
        return cls(catalog.skills, body_reader, make_engine or choose_engine())

    def __len__(self) -> int:
        """How many skills can be found."""
        return len(self._skills)

    @property
    def unreadable_skills(self) -> tuple[Skill, ...]:
        """The skills whose bodies could not be read; they are found by name and description."""
        return tuple(self._unreadable)

    def search(
        self, text: str, limit: int = DEFAULT_LIMIT, offset: int = 0, *, for_models: bool = False
    ) -> SearchResult:
        """The page of hits for whatever `text` is; for a blank one all skills, in name order.

        `for_models` leaves out the skills that no model may be shown.
        """
        query = parse_query(text)
        stages = self._find_stages(query, RowExclusions(exclude_hidden=for_models))
        total = sum(stage.total for stage in stages)
        limit, offset = max(0, limit), max(0, offset)
        hits = tuple(self._build_hits(query, _iterate_page(stages, limit, offset)))
        return SearchResult(hits, total, offset + len(hits) < total)

    def find(self, text: str, limit: int = DEFAULT_LIMIT) -> tuple[list[Skill], int]:
        """The skills of the first page of `search`, and how many there are; no body is read."""
        stages = self._find_stages(parse_query(text), RowExclusions())
        found = [self._skills[row] for _, (row, _) in _iterate_page(stages, max(0, limit), 0)]
        return found, sum(stage.total for stage in stages)

    def _build_rows(self, body_reader: BodyReader | None) -> Iterator[SearchRow]:
        for name, skill in zip(self._names, self._skills, strict=True):
            body = fold_text(self._read_body(skill, body_reader)) if body_reader else ""
            yield SearchRow(name, fold_text(skill.description), body)

    def _read_body(self, skill: Skill, body_reader: BodyReader) -> str:
        try:
            return body_reader(skill)
        except SkillhallError:
            self._unreadable.append(skill)
            return ""

    @cached_property
    def _substring_engine(self) -> LinearScanEngine:
        """For parts of words. Names and descriptions alone: bodies would fill the memory."""
        return LinearScanEngine(self._build_rows(None), self._hidden)

    def _find_stages(self, query: Query, exclusions: RowExclusions) -> list[_Stage]:
        if not query.folded_text:
            everything = self._visible if exclusions.exclude_hidden else range(len(self))
            return [
                _build_stage(
                    _ANY_TERM, UnrankedMatches(self._put_exact_name_first(query.text, everything))
                )
            ]
        named = self._find_name_prefix(query.folded_text)
        exclusions = exclusions._replace(name_matches=named)
        stages = self._find_name_stages(query, exclusions)
        for kind, matches in self._find_word_matches(query, exclusions, stages):
            stages.append(_build_stage(kind, matches))
            if sum(stage.total for stage in stages) >= MIN_HITS:
                break
        return stages

    def _put_exact_name_first(self, text: str, rows: Sequence[int]) -> Sequence[int]:
        """The rows, those first that are called so: a lone accent folds to nothing."""
        named = [row for row in rows if text and self._skills[row].name.strip() == text.strip()]
        return [*named, *(row for row in rows if row not in named)] if named else rows

    def _find_word_matches(
        self, query: Query, exclusions: RowExclusions, stages: Sequence[_Stage]
    ) -> Iterator[tuple[int, Matches]]:
        """The kinds of hits by words, each looked for when the former ones were not enough."""
        terms = query.terms
        if not terms:
            yield (
                _SUBSTRINGS,
                self._substring_engine.match_all([Term(query.folded_text)], exclusions),
            )
            return
        yield _ALL_TERMS, self._engine.match_all(terms, exclusions)
        # A run without blanks is found inside of longer ones at once.
        words = [term for term in terms if not term.is_unspaced]
        if _are_useful_substrings(words) and self._engine.has_unknown_term(words):
            found = _list_rows(stages[-1])
            exclusions = exclusions._replace(already_found=found)
            yield _SUBSTRINGS, self._substring_engine.match_all(terms, exclusions)
            exclusions = exclusions._replace(already_found=(*found, *_list_rows(stages[-1])))
        if (loose := loosen_terms(terms)) != terms or len(terms) > 1:
            yield _ANY_TERM, self._engine.match_any(loose, terms, exclusions)

    @cached_property
    def _visible(self) -> list[int]:
        return [row for row in range(len(self)) if row not in self._hidden]

    def _is_allowed(self, row: int, exclusions: RowExclusions) -> bool:
        return not (exclusions.exclude_hidden and row in self._hidden)

    def _find_name_prefix(self, needle: str) -> range:
        """The rows whose names begin with `needle`."""
        start = bisect_left(self._names, needle)
        length = len(needle)
        return range(start, bisect_right(self._names, needle, start, key=lambda n: n[:length]))

    def _find_name_stages(self, query: Query, exclusions: RowExclusions) -> list[_Stage]:
        kinds: dict[int, list[ScoredRow]] = {
            _NAME_EXACT: [],
            _NAME_FIRST_WORDS: [],
            _NAME_PREFIX: [],
        }
        for row in exclusions.name_matches:
            if self._is_allowed(row, exclusions):
                kind, weight = self._score_name(row, query)
                kinds[kind].append((row, weight))
        for rows in kinds.values():
            rows.sort(key=rank_key)
        return [_build_stage(kind, MatchList(rows)) for kind, rows in kinds.items() if rows]

    def _score_name(self, row: int, query: Query) -> tuple[int, float]:
        name, length = self._names[row], len(query.folded_text)
        if len(name) == length:
            return _NAME_EXACT, float(self._skills[row].name == query.text)
        kind = _NAME_PREFIX if name[length].isalnum() else _NAME_FIRST_WORDS
        return kind, length / len(name)

    def _build_hits(
        self, query: Query, found: Iterable[tuple[int, ScoredRow]]
    ) -> Iterator[SearchHit]:
        words, parts = SnippetBuilder(query), SnippetBuilder(query, inside_words=True)
        for kind, (row, weight) in found:
            score = (kind + weight / (1 + weight)) / _KIND_COUNT
            excerpts = parts if kind == _SUBSTRINGS else words
            yield SearchHit(
                self._skills[row], score, self._build_snippet(self._skills[row], excerpts)
            )

    def _build_snippet(self, skill: Skill, builder: SnippetBuilder) -> Snippet:
        described = builder.build(skill.description)
        if described.marks or self._body_reader is None:
            return described
        try:
            written = builder.build(self._body_reader(skill))
        except SkillhallError:  # it vanished since it was indexed
            return described
        return written if written.marks else described


def choose_engine() -> EngineFactory:
    """The full-text index, or a plain scan where this interpreter has no full-text search."""
    try:
        from skillhall._internal.catalog.search import fts as fulltext  # noqa: PLC0415 - an interpreter may lack SQLite
    except ImportError:
        return LinearScanEngine
    return fulltext.FtsEngine if fulltext.is_available() else LinearScanEngine


def _name_sort_key(skill: Skill) -> tuple[str, ...]:
    return fold_line(skill.name), skill.name, skill.root.path, skill.folder, skill.file


def _are_useful_substrings(terms: Iterable[Term]) -> bool:
    """Whether the terms say something as parts of words: a letter is part of almost every text."""
    return all(len(term.text) > 1 for term in terms)


def _build_stage(kind: int, matches: Matches) -> _Stage:
    return _Stage(kind, matches, matches.total)


def _list_rows(stage: _Stage) -> tuple[int, ...]:
    return tuple(row for row, _ in stage.matches.page(stage.total, 0))


def _iterate_page(
    stages: Iterable[_Stage], limit: int, offset: int
) -> Iterator[tuple[int, ScoredRow]]:
    """A page of all stages, one after the other, with the kind of each row."""
    for kind, matches, total in stages:
        if limit and offset < total:
            page = matches.page(limit, offset)
            limit -= len(page)
            yield from ((kind, weighed) for weighed in page)
        offset = max(0, offset - total)
