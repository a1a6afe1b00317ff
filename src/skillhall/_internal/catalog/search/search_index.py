"""Search over the skills of a catalog.

Results in order: exact name, prefix of a name, all terms, all terms as parts of words, any term.
Every text is a valid query.
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

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.search.fts import FtsEngine, FtsMatches
    from skillhall._internal.catalog.search.linear_scan import ScoredRow
    from skillhall._internal.catalog.search.query import Query

    BodyReader: TypeAlias = Callable[[CatalogSkill], str]
    SearchEngine: TypeAlias = FtsEngine | LinearScanEngine
    # A kind of hit, and all hits of that kind.
    _Stage: TypeAlias = tuple[int, FtsMatches | MatchList | UnrankedMatches]
    EngineFactory: TypeAlias = Callable[[Iterable[SearchRow], Iterable[int]], SearchEngine]

DEFAULT_LIMIT = 20
MIN_HITS = 10  # with fewer hits, the next kind of match is tried

# Kinds of hits, worst first. The integer part of a score is the kind, the fraction ranks within it.
_ANY_TERM, _SUBSTRINGS, _ALL_TERMS, _NAME_PREFIX, _NAME_FIRST_WORDS, _NAME_EXACT = range(6)
_KIND_COUNT = 6


class IndexHit(NamedTuple):
    """A matching skill."""

    skill: CatalogSkill
    score: float  # from 0 to 1; comparable only within one result
    snippet: Snippet


class SearchResult(NamedTuple):
    """One page of hits, best first."""

    hits: tuple[IndexHit, ...]
    total: int
    has_more: bool


class SearchIndex:
    """Search index of one catalog; immutable and thread-safe."""

    def __init__(
        self,
        skills: Iterable[CatalogSkill],
        body_reader: BodyReader | None,
        make_engine: EngineFactory,
    ) -> None:
        # Sorted by name: row numbers break ties, and names with a common prefix are adjacent.
        self._skills = sorted(
            skills, key=lambda s: (fold_line(s.name), s.name, s.root.path, s.folder, s.file)
        )
        self._names = [fold_line(skill.name) for skill in self._skills]
        self._body_reader = body_reader
        self._unreadable: list[CatalogSkill] = []
        hidden = [number for number, skill in enumerate(self._skills) if skill.hidden]
        self._hidden = frozenset(hidden)
        self._engine = make_engine(self._build_rows(body_reader), hidden)

    @classmethod
    def build(
        cls,
        skills: Iterable[CatalogSkill],
        body_reader: BodyReader | None = None,
        make_engine: EngineFactory | None = None,
    ) -> SearchIndex:
        """Build the index of names, descriptions and, with a `body_reader`, bodies.

        Bodies must be read from disk, so a server first builds an index without them.
        """
        return cls(skills, body_reader, make_engine or choose_engine())

    def __len__(self) -> int:
        return len(self._skills)

    @property
    def unreadable_skills(self) -> tuple[CatalogSkill, ...]:
        """Skills with unreadable bodies; they are indexed by name and description."""
        return tuple(self._unreadable)

    def search(
        self, text: str, limit: int = DEFAULT_LIMIT, offset: int = 0, *, for_models: bool = False
    ) -> SearchResult:
        """Search; a blank text matches all skills, in name order.

        `for_models` excludes skills that are hidden from models.
        """
        query = parse_query(text)
        stages = self._find_stages(query, RowExclusions(exclude_hidden=for_models))
        total = sum(matches.total for _, matches in stages)
        limit, offset = max(0, limit), max(0, offset)
        hits = tuple(self._build_hits(query, _iterate_page(stages, limit, offset)))
        return SearchResult(hits, total, offset + len(hits) < total)

    def find(self, text: str, limit: int = DEFAULT_LIMIT) -> tuple[list[CatalogSkill], int]:
        """Return the best skills and the total number of matches, without snippets."""
        stages = self._find_stages(parse_query(text), RowExclusions())
        skills = [self._skills[row] for _, (row, _) in _iterate_page(stages, max(0, limit), 0)]
        return skills, sum(matches.total for _, matches in stages)

    def _build_rows(self, body_reader: BodyReader | None) -> Iterator[SearchRow]:
        for name, skill in zip(self._names, self._skills, strict=True):
            body = ""
            if body_reader is not None:
                try:
                    body = fold_text(body_reader(skill))
                except SkillhallError:
                    self._unreadable.append(skill)
            yield SearchRow(name, fold_text(skill.description), body)

    @cached_property
    def _substring_engine(self) -> LinearScanEngine:
        # Only names and descriptions: bodies would need too much memory.
        return LinearScanEngine(self._build_rows(None), self._hidden)

    def _find_stages(self, query: Query, exclusions: RowExclusions) -> list[_Stage]:
        if not query.folded_text:
            rows = self._visible if exclusions.exclude_hidden else range(len(self))
            # Even a blank query can be a name: a lone accent folds to nothing.
            text = query.text.strip()
            if exact := [row for row in rows if text and self._skills[row].name.strip() == text]:
                rows = [*exact, *(row for row in rows if row not in exact)]
            return [(_ANY_TERM, UnrankedMatches(rows))]
        prefix, length = query.folded_text, len(query.folded_text)
        start = bisect_left(self._names, prefix)
        end = bisect_right(self._names, prefix, start, key=lambda name: name[:length])
        exclusions = exclusions._replace(name_matches=range(start, end))
        stages = self._find_name_stages(query, exclusions)
        for stage in self._find_word_matches(query, exclusions, stages):
            stages.append(stage)
            if sum(matches.total for _, matches in stages) >= MIN_HITS:
                break
        return stages

    def _find_word_matches(
        self, query: Query, exclusions: RowExclusions, stages: Sequence[_Stage]
    ) -> Iterator[_Stage]:
        """Yield one kind of matches after another; the caller stops when it has enough.

        The caller must append each stage to `stages` before it asks for the next.
        """
        terms = query.terms
        if not terms:
            term = Term(query.folded_text)
            yield _SUBSTRINGS, self._substring_engine.match_all([term], exclusions)
            return
        yield _ALL_TERMS, self._engine.match_all(terms, exclusions)
        # The engine finds terms of unspaced scripts inside longer runs anyway. A single letter is
        # a part of almost every text.
        words = [term for term in terms if not term.is_unspaced]
        is_useful = all(len(term.text) > 1 for term in words)
        if is_useful and self._engine.has_unknown_term(words):
            found = _list_rows(stages[-1])
            exclusions = exclusions._replace(already_found=found)
            yield _SUBSTRINGS, self._substring_engine.match_all(terms, exclusions)
            exclusions = exclusions._replace(already_found=(*found, *_list_rows(stages[-1])))
        if (loose := loosen_terms(terms)) != terms or len(terms) > 1:
            yield _ANY_TERM, self._engine.match_any(loose, terms, exclusions)

    @cached_property
    def _visible(self) -> list[int]:
        return [row for row in range(len(self)) if row not in self._hidden]

    def _find_name_stages(self, query: Query, exclusions: RowExclusions) -> list[_Stage]:
        kinds: dict[int, list[ScoredRow]] = {
            _NAME_EXACT: [],
            _NAME_FIRST_WORDS: [],
            _NAME_PREFIX: [],
        }
        length = len(query.folded_text)
        for row in exclusions.name_matches:
            if exclusions.exclude_hidden and row in self._hidden:
                continue
            name = self._names[row]
            if len(name) == length:
                is_same_case = self._skills[row].name == query.text
                kinds[_NAME_EXACT].append((row, float(is_same_case)))
            else:
                kind = _NAME_PREFIX if name[length].isalnum() else _NAME_FIRST_WORDS
                kinds[kind].append((row, length / len(name)))
        for rows in kinds.values():
            rows.sort(key=rank_key)
        return [(kind, MatchList(rows)) for kind, rows in kinds.items() if rows]

    def _build_hits(
        self, query: Query, rows: Iterable[tuple[int, ScoredRow]]
    ) -> Iterator[IndexHit]:
        words, parts = SnippetBuilder(query), SnippetBuilder(query, inside_words=True)
        for kind, (row, row_score) in rows:
            skill = self._skills[row]
            score = (kind + row_score / (1 + row_score)) / _KIND_COUNT
            snippet = self._build_snippet(skill, parts if kind == _SUBSTRINGS else words)
            yield IndexHit(skill, score, snippet)

    def _build_snippet(self, skill: CatalogSkill, builder: SnippetBuilder) -> Snippet:
        description = builder.build(skill.description)
        if description.marks or self._body_reader is None:
            return description
        try:
            body = builder.build(self._body_reader(skill))
        except SkillhallError:  # deleted since it was indexed
            return description
        return body if body.marks else description


def choose_engine() -> EngineFactory:
    """Return the full-text engine, or the linear scan if SQLite lacks FTS5."""
    try:
        from skillhall._internal.catalog.search import fts  # noqa: PLC0415 - Python may lack SQLite
    except ImportError:
        return LinearScanEngine
    return fts.FtsEngine if fts.is_available() else LinearScanEngine


def _list_rows(stage: _Stage) -> tuple[int, ...]:
    matches = stage[1]
    return tuple(row for row, _ in matches.page(matches.total, 0))


def _iterate_page(
    stages: Iterable[_Stage], limit: int, offset: int
) -> Iterator[tuple[int, ScoredRow]]:
    """Yield one page over all stages in order, with the kind of each row."""
    for kind, matches in stages:
        if limit and offset < matches.total:
            page = matches.page(limit, offset)
            limit -= len(page)
            yield from ((kind, scored) for scored in page)
        offset = max(0, offset - matches.total)
