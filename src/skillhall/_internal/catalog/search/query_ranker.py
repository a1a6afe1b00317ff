"""Query ranker: finds the skills that match a query, and scores them.

Each ranking has its own strength: names and descriptions say what a skill is for, a section
contains the rare words of a long prompt, and for a short query exact words are better than words
with the same stem. The scores of each ranking are divided by its best score and added up.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.search.index_database import (
    HEAD_STEMS,
    HEAD_WORDS,
    SECTION_STEMS,
)
from skillhall._internal.catalog.search.query import Term, loosen_terms, separate_unspaced
from skillhall._internal.catalog.search.spelling import correct_word
from skillhall._internal.embeddings.semantic_ranking import DisabledRanking

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.search.index_database import IndexDatabase
    from skillhall._internal.catalog.search.query import Query
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking

    ScoredRows: TypeAlias = Sequence[tuple[int, float]]  # a higher score is better

MIN_HITS = 10  # with fewer hits, parts of words are searched, too
MAX_RARE_TERMS = 24  # of a long prompt; each costs time
_CHEAP_ROW_COUNT = 1000  # up to this many rows are cheap to rank, however common the term
# A word is common if it is in more rows than this share of the number of skills.
_COMMON_HEADS, _COMMON_SECTIONS = 0.05, 1.0
_MEANING_CONSTANT = 30  # rank at which the score is about half of the best
_UNFINISHED_WEIGHT = 0.8  # of a letter of a word that is not complete
# Scores are below 0.8 for matches, 0.9 for names that start with the query, and 1 for exact names.
_FUSED_SCORE, _NAME_SCORE = 0.8, 0.1


@dataclass(frozen=True, slots=True)
class Ranking:
    """Settings of the rankings. `benchmarks finding` measures the effect of each."""

    use_head_stems: bool = True  # names and descriptions, by word stems
    use_sections: bool = True  # sections of whole texts, by word stems
    use_head_words: bool = True  # names and descriptions, by exact words, for short queries
    use_names: bool = True  # words and prefixes of names, for short queries
    correct_spelling: bool = True
    rare_words_only: bool = True
    fold_copies: bool = True
    depth: int = 400  # rows of each ranking
    section_weight: float = 2.0  # of a long prompt; the other rankings have the weight 1


DEFAULT_RANKING = Ranking()


class MatchedSkill(NamedTuple):
    """Location and score of a matching skill, and its rank in each ranking."""

    location: bytes
    score: float  # from 0 to 1
    ranks: Mapping[str, int]


class _ScoredSkills(NamedTuple):
    """Skills found by one ranking."""

    weight: float
    scores: Mapping[bytes, float]
    ranks: Mapping[bytes, int]


class QueryRanker:
    """Ranks the rows of a database for queries."""

    def __init__(
        self,
        database: IndexDatabase,
        ranking: Ranking = DEFAULT_RANKING,
        semantic: SemanticRanking | None = None,
    ) -> None:
        """Create the ranker; `semantic` ranks by meaning, if a model is configured."""
        self._database = database
        self._ranking = ranking
        self._semantic = semantic or DisabledRanking()
        self._name_words: Mapping[str, int] | None = None
        self._embeddings: Mapping[str, list[bytes]] | None = None

    def forget(self) -> None:
        """Clear cached data about all skills. Call it after the index has changed."""
        self._name_words = None
        self._embeddings = None

    def rank(self, query: Query) -> list[MatchedSkill]:
        """Return the matching skills with their scores, in no particular order."""
        rankings = dict(self._rank_all(query))
        total_weight = sum(ranking.weight for ranking in rankings.values()) or 1.0
        found: dict[bytes, float] = {}
        for ranking in rankings.values():
            factor = ranking.weight / total_weight
            for location, score in ranking.scores.items():
                found[location] = found.get(location, 0.0) + factor * score
        scores = {location: score * _FUSED_SCORE for location, score in found.items()}
        for rows, base in self._find_names(query):
            for location in self._locate("head", rows):
                scores[location] = base + found.get(location, 0.0) * _NAME_SCORE
        if len(scores) < MIN_HITS:
            for location in self._find_parts(query):
                scores.setdefault(location, 0.0)
        return [
            MatchedSkill(
                location,
                score,
                {
                    name: one.ranks[location]
                    for name, one in rankings.items()
                    if location in one.ranks
                },
            )
            for location, score in scores.items()
        ]

    def _rank_all(self, query: Query) -> Iterator[tuple[str, _ScoredSkills]]:
        ranking = self._ranking
        terms = loosen_terms(self._correct_terms(query.terms))
        has_heads = False
        if ranking.use_head_stems:
            heads = self._rank_heads(HEAD_STEMS, terms)
            has_heads = bool(heads.scores)
            yield "head", heads
        if ranking.use_sections:
            weight = 1.0 if query.is_short else ranking.section_weight
            # Common words do not tell sections apart, and take the most time.
            yield "sections", self._rank_sections(terms, weight, use_common=not has_heads)
        if query.is_short and ranking.use_head_words:
            yield "exact words", self._rank_heads(HEAD_WORDS, terms)
        if query.is_short and ranking.use_names:
            yield "name", self._rank_names(query, terms)
        if self._semantic.is_enabled:
            yield "meaning", self._rank_by_meaning(query)

    def _rank_by_meaning(self, query: Query) -> _ScoredSkills:
        if self._embeddings is None:
            self._embeddings = self._database.read_embeddings()
        places = self._embeddings
        digests = self._semantic.rank(query.text, places.keys(), self._ranking.depth)
        ranks = {place: n for n, one in enumerate(digests, 1) for place in places[one]}
        # Similarities of different models are not comparable, but their order is.
        constant = _MEANING_CONSTANT
        scores = {place: constant / (constant + rank - 1) for place, rank in ranks.items()}
        return _ScoredSkills(1.0 if query.is_short else self._ranking.section_weight, scores, ranks)

    def _find_names(self, query: Query) -> Iterator[tuple[Sequence[int], float]]:
        """Yield the heads whose name is or starts with the query, and their minimum score."""
        key = query.name_key
        if " " in key and query.unfinished:
            yield self._database.find_heads_with_prefix(key, self._ranking.depth), _FUSED_SCORE
        yield self._database.find_heads(key), _FUSED_SCORE + _NAME_SCORE

    def _find_parts(self, query: Query) -> Iterable[bytes]:
        """Find skills with all terms inside words; none if a term is a single letter.

        Almost every text contains a single letter.
        """
        parts = [term.text for term in query.terms] or [query.folded_text]
        if query.terms and any(len(part) == 1 for part in parts):
            return ()
        return self._locate(
            "head", self._database.find_heads_with_parts(parts, self._ranking.depth)
        )

    def _correct_terms(self, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(map(self._correct_term, terms)) if self._ranking.correct_spelling else terms

    def _correct_term(self, term: Term) -> Term:
        prefix = format_term(term._replace(is_prefix=True))
        if (
            term.is_unspaced
            or self._database.count_matches(SECTION_STEMS, format_term(term), 1)
            or self._database.count_matches(HEAD_WORDS, prefix, 1)
        ):
            return term
        if self._name_words is None:
            names = self._database.read_names()
            self._name_words = Counter(word for name in names for word in name.split())
        return Term(correct_word(term.text, self._name_words) or term.text)

    def _format_rare(self, table: str, terms: Sequence[Term], *, use_common: bool = True) -> str:
        """Return an expression for the rarest terms that occur in the table, or "".

        With `use_common`, common terms are used if there are no others.
        """
        share = _COMMON_SECTIONS if table == SECTION_STEMS else _COMMON_HEADS
        limit = max(_CHEAP_ROW_COUNT, int(self._database.count_heads() * share)) + 1
        if not self._ranking.rare_words_only:
            limit = sys.maxsize
        expressions = map(format_term, terms)
        counts = {one: self._database.count_matches(table, one, limit) for one in expressions}
        known = [one for one, count in counts.items() if count]
        rare = [one for one in known if counts[one] < limit]
        if use_common:
            rare = rare or known
        return " OR ".join(sorted(rare, key=counts.__getitem__)[:MAX_RARE_TERMS])

    def _rank_heads(self, table: str, terms: Sequence[Term]) -> _ScoredSkills:
        expression, depth = self._format_rare(table, terms), self._ranking.depth
        rows = self._database.rank_heads(table, expression, depth) if expression else []
        return self._score("head", rows, 1.0)

    def _rank_sections(
        self, terms: Sequence[Term], weight: float, *, use_common: bool
    ) -> _ScoredSkills:
        expression = self._format_rare(SECTION_STEMS, terms, use_common=use_common)
        rows = self._database.rank_texts(expression, self._ranking.depth) if expression else []
        return self._score("text", rows, weight)

    def _rank_names(self, query: Query, terms: Sequence[Term]) -> _ScoredSkills:
        """Rank names by how many of their words are in the query."""
        expressions = [*map(format_term, terms)]
        if query.unfinished:
            expressions.append(format_term(Term(query.unfinished, is_prefix=True)))
        rows: list[tuple[int, float]] = []
        if expressions:
            expression = f"name : ({' OR '.join(expressions)})"
            rows = self._database.rank_heads(HEAD_WORDS, expression, self._ranking.depth)
        keys = self._database.read_name_keys([row for row, _ in rows])
        words = {term.text for term in terms}
        scored = []
        for row, _ in rows:
            name = keys[row].split()
            matched = sum(_match_word(word, words, query.unfinished) for word in name)
            scored.append((row, matched**3 / len(name)))
        scored.sort(key=lambda pair: -pair[1])
        # Not relative to the best one, which may be a bad match.
        return self._score("head", scored, 1.0, len(query.terms) ** 2)

    def _locate(self, column: str, rows: Sequence[int]) -> Iterable[bytes]:
        for locations in self._database.locate(column, rows).values():
            yield from locations

    def _score(
        self, column: str, rows: ScoredRows, weight: float, best: float = 0.0
    ) -> _ScoredSkills:
        """Return the skills of some rows, with their ranks and scores relative to `best`.

        By default, `best` is the highest score of these rows.
        """
        locations = self._database.locate(column, [row for row, _ in rows])
        best = best or (rows[0][1] if rows else 1.0)
        scores: dict[bytes, float] = {}
        ranks: dict[bytes, int] = {}
        rank, last = 0, None
        for number, (row, score) in enumerate(rows, 1):
            if score != last:  # rows with equal scores have equal ranks
                rank, last = number, score
            for location in locations.get(row, ()):
                scores[location], ranks[location] = score / best if best else 0.0, rank
        return _ScoredSkills(weight, scores, ranks)


def format_term(term: Term) -> str:
    """Return a term as an expression, quoted so that no part of it is query syntax."""
    quoted = f'"{separate_unspaced(term.text).strip()}"'
    return f"{quoted} *" if term.is_prefix else quoted


def _match_word(word: str, words: Container[str], unfinished: str) -> float:
    """Return 1 for a word of the query, less for one that starts with `unfinished`."""
    if word in words:
        return 1.0
    is_longer = bool(unfinished) and word.startswith(unfinished)
    return _UNFINISHED_WEIGHT * len(unfinished) / len(word) if is_longer else 0.0
