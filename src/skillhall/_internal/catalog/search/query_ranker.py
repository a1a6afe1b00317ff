"""Query ranker: finds the skills that match a query, and scores them.

Each ranking has its own strength: names and descriptions say what a skill is for, a section
contains the rare words of a long prompt, and for a short query it matters where its words are: in
the name, or early in the description. The scores of each ranking are divided by its best score and
added up.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain, pairwise
from math import log
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillhall._internal.catalog.search.index_database import (
    HEAD_STEMS,
    NAME_WORDS,
    SECTION_STEMS,
)
from skillhall._internal.catalog.search.query import (
    Term,
    list_number_forms,
    loosen_terms,
    separate_unspaced,
    stem_word,
)
from skillhall._internal.catalog.search.sections import format_section_term, rank_texts
from skillhall._internal.catalog.search.spelling import (
    correct_word,
    is_correctable,
    is_numeronym,
    list_mistakes,
    list_variants,
    shorten_word,
    split_word,
)
from skillhall._internal.embeddings.semantic_ranking import DisabledRanking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.search.index_database import IndexDatabase
    from skillhall._internal.catalog.search.query import Query
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking

    ScoredRows: TypeAlias = Sequence[tuple[int, float]]  # row and score; higher scores are better

_Row = TypeVar("_Row")

MIN_HITS = 10  # with fewer hits, parts of words are searched, too
MAX_RARE_TERMS = 24  # terms of a long prompt that are searched; each costs time
_CHEAP_ROW_COUNT = 1000  # up to this many rows are cheap to rank, however common the term
# A word is common if it is in more rows than this share of the number of skills.
_COMMON_HEADS, _COMMON_SECTIONS = 0.05, 2.0
_MEANING_CONSTANT = 30  # rank at which the score is about half of the best
_STEM_WEIGHT = 0.9  # of another form of a word in a name
_FORM_WEIGHT = 0.7  # of another form of a word in a head
_PLURAL_WEIGHT = 0.9  # of its plural or singular
_SPELLING_WEIGHT = 0.95  # of another spelling, such as `xlsx` for `excel`
_LATE_WEIGHT = 0.2  # weight of a word at the end of a long description
_EARLY_LENGTH = 120  # position in a description at which half of the weight above that is lost
_SHORT_SECTION_WEIGHT = 0.5  # weight of sections for a short query
_EARLY_WORDS_WEIGHT = 5.6
_CONFIRMED_WEIGHT = 0.4  # of the lower score of a word that the name and the description have
_EARLY_WORDS_DEPTH = 100  # best skills of the other rankings
_UNFINISHED_WEIGHT = 0.8  # weight of each letter of an incomplete word
_SEPARATOR = re.compile(r"[\W_]")
# Scores are below 0.8 for matches, 0.9 for names that start with the query, and 1 for exact names.
_FUSED_SCORE, _NAME_SHARE = 0.8, 0.1
NAME_SCORE = _FUSED_SCORE + _NAME_SHARE


@dataclass(frozen=True, slots=True)
class Ranking:
    """Settings of the rankings. `benchmarks finding` measures the effect of each."""

    use_head_stems: bool = True  # names and descriptions, by word stems
    use_sections: bool = True  # sections of whole texts, by word stems
    use_early_words: bool = True  # where the words of a short query are in names and descriptions
    use_phrases: bool = True  # words of a short query next to each other
    use_names: bool = True  # words and prefixes of names, for short queries
    correct_spelling: bool = True
    vary_spelling: bool = True  # British and American, joined words, `k8s`
    rare_words_only: bool = True
    fold_copies: bool = True
    depth: int = 200  # rows of each ranking; more rows cost time and do not improve results
    # With more skills, texts are shortened: complete ones take three times as long to index.
    max_complete_texts: int = 10_000
    section_weight: float = 2.0  # for a long prompt; the other rankings have weight 1


DEFAULT_RANKING = Ranking()


class ScoredSkills(NamedTuple):
    """Skills found by one ranking, by location."""

    weight: float
    scores: Mapping[bytes, float]
    ranks: Mapping[bytes, int]

    def add_to(self, sums: dict[bytes, float]) -> None:
        """Add the weighted scores to those of other rankings."""
        weight = self.weight
        for location, score in self.scores.items():
            sums[location] = sums.get(location, 0.0) + weight * score


class RankedSkills(NamedTuple):
    """Scores of the matching skills, by location, and the rankings that contain them."""

    scores: Mapping[bytes, float]  # from 0 to 1
    rankings: Mapping[str, ScoredSkills]

    def get_ranks(self, location: bytes) -> Mapping[str, int]:
        """Return the ranks of a skill, by the names of the rankings that contain it."""
        rankings = self.rankings.items()
        return {name: one.ranks[location] for name, one in rankings if location in one.ranks}


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

    def rank(self, query: Query) -> RankedSkills:
        """Return the matching skills with their scores, in no particular order."""
        corrected = self._correct_terms(query)
        # A prompt has many words, so that another spelling of one makes no difference.
        variants = self._find_variants(corrected) if query.is_short else []
        terms = tuple(dict.fromkeys((*corrected, *chain.from_iterable(variants))))
        rankings = dict(self._rank_all(query, loosen_terms(terms)))
        sums: dict[bytes, float] = {}
        for ranking in rankings.values():
            ranking.add_to(sums)
        if query.is_short and self._ranking.use_early_words:
            best = nlargest(_EARLY_WORDS_DEPTH, sums, key=sums.__getitem__)
            rankings["early words"] = self._rank_early_words(corrected, variants, best)
            rankings["early words"].add_to(sums)
        # A skill that is the best of all rankings has the highest score.
        total = sum(ranking.weight for ranking in rankings.values()) or 1.0
        factor, share = _FUSED_SCORE / total, _NAME_SHARE / total
        scores = {location: score * factor for location, score in sums.items()}
        for rows, base in self._find_names(query, corrected):
            for location in self._locate("head", rows):
                scores[location] = base + sums.get(location, 0.0) * share
        if len(scores) < MIN_HITS:
            for location in self._find_parts(query):
                scores.setdefault(location, 0.0)
        return RankedSkills(scores, rankings)

    def _rank_all(self, query: Query, terms: Sequence[Term]) -> Iterator[tuple[str, ScoredSkills]]:
        ranking = self._ranking
        has_heads = False
        phrases = [*_pair_words(terms)] if query.is_short and ranking.use_phrases else []
        if ranking.use_head_stems:
            heads = self._rank_heads(HEAD_STEMS, [*terms, *phrases])
            has_heads = bool(heads.scores)
            yield "head", heads
        if ranking.use_sections:
            weight = _SHORT_SECTION_WEIGHT if query.is_short else ranking.section_weight
            # Common words do not tell sections apart, and take the most time.
            yield "sections", self._rank_sections(terms, weight, use_common=not has_heads)
        if query.is_short and ranking.use_names:
            yield "name", self._rank_names(query, terms)
        if self._semantic.is_enabled:
            yield "meaning", self._rank_by_meaning(query)

    def _rank_by_meaning(self, query: Query) -> ScoredSkills:
        if self._embeddings is None:
            self._embeddings = self._database.read_embeddings()
        places = self._embeddings
        digests = self._semantic.rank(query.text, places.keys(), self._ranking.depth)
        ranks = {place: n for n, one in enumerate(digests, 1) for place in places[one]}
        # Similarities of different models are not comparable, but their order is.
        constant = _MEANING_CONSTANT
        scores = {place: constant / (constant + rank - 1) for place, rank in ranks.items()}
        return ScoredSkills(1.0 if query.is_short else self._ranking.section_weight, scores, ranks)

    def _find_names(
        self, query: Query, terms: Sequence[Term]
    ) -> Iterator[tuple[Sequence[int], float]]:
        """Yield heads whose name equals or starts with the query, and their minimum score."""
        key = query.name_key
        if self._ranking.use_names and query.is_short and len(terms) > 1:
            yield self._find_names_with_stems({stem_word(one.text) for one in terms}), _FUSED_SCORE
        if " " in key and query.unfinished:
            yield self._database.find_heads_with_prefix(key, self._ranking.depth), _FUSED_SCORE
        yield self._database.find_heads(key), NAME_SCORE

    def _find_names_with_stems(self, stems: set[str]) -> list[int]:
        """Return the heads whose names have other forms of exactly these words."""
        prefixes = (format_term(Term(stem, is_prefix=True)) for stem in stems)
        expression = " AND ".join(prefixes)
        rows = self._database.rank_heads(NAME_WORDS, expression, self._ranking.depth)
        keys = self._database.read_name_keys([row for row, _ in rows])
        return [row for row, key in keys.items() if {*map(stem_word, key.split())} == stems]

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

    def _correct_terms(self, query: Query) -> tuple[Term, ...]:
        if not self._ranking.correct_spelling:
            return query.terms
        if not query.is_short:  # a prompt has unknown words, such as names of files, and others
            return tuple(map(self._correct_term, query.terms))
        corrected = map(self._correct_keyword, query.terms)
        return tuple(dict.fromkeys(chain.from_iterable(corrected)))

    def _correct_keyword(self, term: Term) -> Sequence[Term]:
        """Return the term that was probably meant: two joined words, or a similar word."""
        if self._is_known(term) or not is_correctable(term.text):
            return (term,)
        pairs = {pair: self._count_heads_with(Term(pair)) for pair in split_word(term.text)}
        best = max(pairs, key=pairs.__getitem__, default="")
        if best and pairs[best]:
            return [Term(word) for word in best.split()]
        corrected = self._correct_term(term)
        # A prefix of a word in a description is not a mistake: the user is still typing.
        if corrected.text != term.text or self._is_in_heads(term._replace(is_prefix=True)):
            return (corrected,)
        others = {*list_mistakes(term.text)}
        similar = self._database.count_words(HEAD_STEMS, others)
        similar = similar or self._database.count_words(SECTION_STEMS, others)
        return (Term(min(similar, key=lambda one: (-similar[one], one), default=term.text)),)

    def _correct_term(self, term: Term) -> Term:
        """Return the term, or the similar word of a name if no skill contains it."""
        if self._is_known(term):
            return term
        return Term(correct_word(term.text, self._get_name_words()) or term.text)

    def _is_known(self, term: Term) -> bool:
        prefix = format_term(term._replace(is_prefix=True))
        return bool(
            term.is_unspaced
            or self._database.count_matches(SECTION_STEMS, format_section_term(term), 1)
            or self._database.count_matches(NAME_WORDS, prefix, 1)
        )

    def _get_name_words(self) -> Mapping[str, int]:
        if self._name_words is None:
            names = self._database.read_names()
            self._name_words = Counter(word for name in names for word in name.split())
        return self._name_words

    def _find_variants(self, terms: Sequence[Term]) -> list[list[Term]]:
        """Return the other spellings of each term that occur in heads."""
        if not self._ranking.vary_spelling:
            return [[] for _ in terms]
        variants = list_variants(terms)
        for number, term in enumerate(terms):
            if is_numeronym(term.text):
                names = self._get_name_words()
                variants[number] += (one for one in names if shorten_word(one) == term.text)
        return [[*filter(self._is_in_heads, map(Term, dict.fromkeys(one)))] for one in variants]

    def _is_in_heads(self, term: Term) -> bool:
        return self._database.count_matches(HEAD_STEMS, format_term(term), 1) > 0

    def _count_heads_with(self, term: Term) -> int:
        """Return the number of heads with a term, up to that of a common one."""
        limit = max(_CHEAP_ROW_COUNT, int(self._database.count_heads() * _COMMON_HEADS)) + 1
        return self._database.count_matches(HEAD_STEMS, format_term(term), limit)

    def _find_rare(
        self, table: str, terms: Sequence[Term], *, use_common: bool = True
    ) -> Mapping[str, int]:
        """Return expressions for the rarest terms in the table, with row counts.

        With `use_common`, common terms are used if there are no others.
        """
        is_sections = table == SECTION_STEMS
        share = _COMMON_SECTIONS if is_sections else _COMMON_HEADS
        limit = max(_CHEAP_ROW_COUNT, int(self._database.count_heads() * share)) + 1
        if not self._ranking.rare_words_only:
            limit = sys.maxsize
        expressions = map(format_section_term if is_sections else format_term, terms)
        counts = {one: self._database.count_matches(table, one, limit) for one in expressions}
        known = [one for one, count in counts.items() if count]
        rare = [one for one in known if counts[one] < limit]
        if use_common:
            rare = rare or known
        rarest = sorted(rare, key=counts.__getitem__)[:MAX_RARE_TERMS]
        return {one: counts[one] for one in rarest}

    def _rank_heads(self, table: str, terms: Sequence[Term]) -> ScoredSkills:
        expression, depth = " OR ".join(self._find_rare(table, terms)), self._ranking.depth
        rows = self._database.rank_heads(table, expression, depth) if expression else []
        return self._score("head", rows, 1.0)

    def _rank_sections(
        self, terms: Sequence[Term], weight: float, *, use_common: bool
    ) -> ScoredSkills:
        counts = self._find_rare(SECTION_STEMS, terms, use_common=use_common)
        text_count, find = self._database.count_heads(), self._database.find_sections
        # Many texts have the same score, and all of them should count.
        rows = rank_texts(counts, find, text_count, 2 * self._ranking.depth)
        return self._score("text", rows, weight)

    def _rank_names(self, query: Query, terms: Sequence[Term]) -> ScoredSkills:
        """Rank names by how many of their words are in the query."""
        prefixes = {stem_word(term.text) for term in terms if not term.is_unspaced}
        if query.unfinished:
            prefixes.add(query.unfinished)
        expressions = [format_term(term) for term in terms if term.is_unspaced]
        expressions += [format_term(Term(one, is_prefix=True)) for one in sorted(prefixes)]
        rows: list[tuple[int, float]] = []
        if expressions:
            expression = " OR ".join(expressions)
            rows = self._database.rank_heads(NAME_WORDS, expression, self._ranking.depth)
        keys = self._database.read_name_keys([row for row, _ in rows])
        words = dict.fromkeys((stem_word(term.text) for term in terms), _STEM_WEIGHT)
        words |= dict.fromkeys((term.text for term in terms), 1.0)
        names = {row: keys[row].split() for row, _ in rows}
        # Computed once for each word, because names share most of their words.
        distinct = {word for name in names.values() for word in name}
        weights = {word: _match_word(word, words, query.unfinished) for word in distinct}
        scored = [
            (row, sum(map(weights.__getitem__, name)) ** 3 / len(name))
            for row, name in names.items()
        ]
        scored.sort(key=lambda pair: -pair[1])
        # Not relative to the best score, which may be that of a bad match.
        return self._score("head", scored, 1.0, len(query.terms) ** 2)

    def _rank_early_words(
        self,
        terms: Sequence[Term],
        variants: Sequence[Sequence[Term]],
        locations: Sequence[bytes],
    ) -> ScoredSkills:
        """Rank skills by the words of the query in the name or early in the description."""
        head_count = self._database.count_heads()
        counts = map(self._count_heads_with, terms)
        weights = [log(1 + head_count / max(count, 1)) for count in counts]
        matcher = _WordMatcher(
            [[term, *others] for term, others in zip(terms, variants, strict=True)]
        )
        heads = self._database.read_heads(locations)
        total = sum(weights) or 1.0
        scored = [
            (location, sum(map(mul, weights, matcher.match(*head))) / total)
            for location, head in heads.items()
        ]
        scored = [(location, score) for location, score in scored if score]
        scored.sort(key=lambda pair: -pair[1])
        return ScoredSkills(_EARLY_WORDS_WEIGHT, dict(scored), _count_ranks(scored))

    def _locate(self, column: str, rows: Sequence[int]) -> Iterable[bytes]:
        for locations in self._database.locate(column, rows).values():
            yield from locations

    def _score(
        self, column: str, rows: ScoredRows, weight: float, best: float = 0.0
    ) -> ScoredSkills:
        """Return the skills of these rows, with their ranks and scores relative to `best`.

        By default, `best` is the highest score of these rows.
        """
        locations = self._database.locate(column, [row for row, _ in rows])
        best = best or (rows[0][1] if rows else 1.0)
        scores: dict[bytes, float] = {}
        ranks: dict[bytes, int] = {}
        for (row, score), rank in zip(rows, _count_ranks(rows).values(), strict=True):
            for location in locations.get(row, ()):
                scores[location], ranks[location] = score / best if best else 0.0, rank
        return ScoredSkills(weight, scores, ranks)


def format_term(term: Term) -> str:
    """Return a term as an expression, quoted so that no part of it is query syntax."""
    quoted = f'"{separate_unspaced(term.text).strip()}"'
    return f"{quoted} *" if term.is_prefix else quoted


class _WordMatcher:
    """Finds the words of a query in heads, each given with its other spellings."""

    def __init__(self, words: Sequence[Sequence[Term]]) -> None:
        self._words = [word[0].text for word in words]
        self._spellings = [{term.text for term in word} for word in words]
        forms = (map(list_number_forms, spellings) for spellings in self._spellings)
        self._number_forms = [{*chain.from_iterable(one)} for one in forms]
        self._forms = [{*map(stem_word, spellings)} for spellings in self._spellings]
        self._are_starts = [word[0].is_prefix or word[0].is_unspaced for word in words]
        self._starts = [{_find_start(term).split()[0] for term in word} for word in words]
        # One pattern for each word: a spelling such as `database` may be that of two words.
        choices = ("|".join(map(_build_pattern, word)) for word in words)
        self._patterns = [re.compile(rf"(?:{choice})[^\W_]*") for choice in choices]
        self._weights: list[dict[str, float]] = [{} for _ in words]

    def match(self, name: str, description: str) -> list[float]:
        """Return a score per word: 1 in both, less in one of them or late, 0 if missing."""
        return [self._match_word(n, name, description) for n in range(len(self._words))]

    def _match_word(self, number: int, name: str, description: str) -> float:
        in_name = in_description = 0.0
        for match in self._find(number, name):
            in_name = max(in_name, self._weigh(number, match[0]))
        for match in self._find(number, description):
            early = _EARLY_LENGTH / (_EARLY_LENGTH + match.start())
            weight = self._weigh(number, match[0]) * (_LATE_WEIGHT + (1 - _LATE_WEIGHT) * early)
            in_description = max(in_description, weight)
        low, high = sorted((in_name, in_description))
        # Many names have a word that their description does not mention: `audio-levels-guide`.
        return (high + _CONFIRMED_WEIGHT * low) / (1 + _CONFIRMED_WEIGHT)

    def _find(self, number: int, text: str) -> Iterable[re.Match[str]]:
        # Most heads lack the word, and a pattern takes much longer to say so.
        for start in self._starts[number]:
            if start in text:
                return self._patterns[number].finditer(text)
        return ()

    def _weigh(self, number: int, found: str) -> float:
        weights = self._weights[number]  # the same few words occur in most heads
        if found not in weights:
            weights[found] = self._weigh_new(number, found)
        return weights[found]

    def _weigh_new(self, number: int, found: str) -> float:
        if self._are_starts[number] or found == self._words[number]:
            return 1.0
        word = found if found.isalnum() else _SEPARATOR.sub(" ", found)
        if word in self._spellings[number]:
            return _SPELLING_WEIGHT
        if word in self._number_forms[number]:
            return _PLURAL_WEIGHT
        return _FORM_WEIGHT if stem_word(word) in self._forms[number] else 0.0


def _build_pattern(term: Term) -> str:
    """Return a pattern of the start of a word, or of any part for unspaced scripts."""
    # A spelling of several words matches with hyphens, too.
    start = re.escape(_find_start(term)).replace(r"\ ", r"[\W_]")
    return start if term.is_unspaced else rf"(?<![^\W_]){start}"


def _find_start(term: Term) -> str:
    """Return what all forms of the term start with."""
    return term.text if term.is_prefix or term.is_unspaced else stem_word(term.text)


def _count_ranks(rows: Sequence[tuple[_Row, float]]) -> dict[_Row, int]:
    """Return the ranks of sorted rows, from 1; equal scores have equal ranks."""
    ranks: dict[_Row, int] = {}
    rank, last = 0, None
    for number, (row, score) in enumerate(rows, 1):
        if score != last:
            rank, last = number, score
        ranks[row] = rank
    return ranks


def _pair_words(terms: Sequence[Term]) -> Iterator[Term]:
    """Yield the pairs of words that follow each other."""
    for first, second in pairwise(terms):
        if not first.is_unspaced and not second.is_unspaced:
            yield Term(f"{first.text} {second.text}")


def _match_word(word: str, weights: Mapping[str, float], unfinished: str) -> float:
    """Return 1 for a word of the query, less for other forms and longer words."""
    weight = weights.get(word) or weights.get(stem_word(word), 0.0)
    is_longer = bool(unfinished) and word.startswith(unfinished)
    return max(weight, _UNFINISHED_WEIGHT * len(unfinished) / len(word) if is_longer else 0.0)
