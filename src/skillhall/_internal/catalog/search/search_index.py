"""Search index of the skills of one catalog, shared by all commands and APIs.

Names and descriptions are indexed immediately, complete texts when they have been read. The index
of many skills is stored in a file, by digest, so that a restart reads only files that have changed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
from contextlib import suppress
from itertools import groupby, islice
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.head_cache import now_ns
from skillhall._internal.catalog.search.index_database import (
    HeadRow,
    IndexDatabase,
    Place,
    TextRow,
)
from skillhall._internal.catalog.search.query import (
    build_name_key,
    fold_line,
    fold_text,
    parse_query,
    split_name,
)
from skillhall._internal.catalog.search.query_ranker import (
    DEFAULT_RANKING,
    NAME_SCORE,
    QueryRanker,
    RankedSkills,
    Ranking,
)
from skillhall._internal.catalog.search.sections import MAX_TEXT, shorten_text
from skillhall._internal.catalog.search.snippets import Snippet, SnippetBuilder
from skillhall._internal.catalog.skill_content import SkillReader, read_skill_md, read_status
from skillhall._internal.embeddings.embedding_text import (
    MAX_BODY,
    build_embedding_text,
    compute_text_digest,
)
from skillhall._internal.skill.copy_key import copy_key, words_key
from skillhall._internal.skill.frontmatter_locator import FrontmatterBlock, find_frontmatter
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.catalog.search.query import Query
    from skillhall._internal.embeddings.semantic_ranking import SemanticRanking

    TextReader: TypeAlias = Callable[[CatalogSkill], bytes]

DEFAULT_LIMIT = 20
# The embedding text starts with the first `MAX_BODY` characters after blank lines.
_MAX_EMBEDDED = 16 * MAX_BODY  # bytes
_BATCH = 64  # texts that are read and indexed at once
_COMMIT_SIZE = 16_384  # texts
_SIGNATURE = Struct("=2q2Q")  # times, size and inode
_LOG = logging.getLogger("skillhall.search")


class IndexHit(NamedTuple):
    """A matching skill."""

    skill: CatalogSkill
    score: float  # from 0 to 1; comparable only within one result
    snippet: Snippet
    copies: tuple[CatalogSkill, ...] = ()  # skills with the same text
    ranks: Mapping[str, int] = {}  # by the name of the ranking


class HitExplanation(NamedTuple):
    """Why a skill matches a query."""

    words: Mapping[str, Sequence[str]]  # of each field that match
    ranks: Mapping[str, int]  # rank from 1, by the name of the ranking

    @property
    def text(self) -> str:
        """The explanation on one line."""
        words = [f"{field}: {', '.join(found)}" for field, found in self.words.items()]
        ranks = [f"{name} {rank}" for name, rank in self.ranks.items()]
        return "; ".join([*words, f"ranks: {', '.join(ranks)}"] if ranks else words)


class SearchResult(NamedTuple):
    """One page of hits, best first."""

    hits: tuple[IndexHit, ...]
    total: int
    has_more: bool


class SearchIndex:
    """Search index of the skills of one catalog. Thread-safe."""

    def __init__(
        self,
        path: str | None = None,
        read_text: TextReader = read_skill_md,
        *,
        ranking: Ranking = DEFAULT_RANKING,
        semantic: SemanticRanking | None = None,
        clock: Callable[[], int] = now_ns,
    ) -> None:
        """Open the index in a file, or create one in memory."""
        self._has_complete_texts = True
        self._semantic = semantic
        self._has_model = semantic is not None and semantic.is_enabled
        self._clock = clock
        self._read_text = read_text
        self._ranking = ranking
        self._database = _open_database(path)
        self._ranker = QueryRanker(self._database, ranking, semantic)
        self._lock = threading.Lock()
        # Of the last update. Skills are identified by their objects: a catalog has another object
        # for each version of a skill.
        self._locations: dict[int, bytes] = {}
        self._skills: dict[bytes, CatalogSkill] = {}
        self._pending: dict[bytes, None] = {}  # locations of texts to read
        self._copies: set[bytes] = set()  # pending locations whose texts need a copy key
        self._unreadable: dict[bytes, None] = {}

    @classmethod
    def build(
        cls, skills: Iterable[CatalogSkill], read_text: TextReader = read_skill_md
    ) -> SearchIndex:
        """Build the complete index of these skills in memory."""
        index = cls(None, read_text)
        index.update(skills)
        index.read_texts()
        return index

    def close(self) -> None:
        """Close the index. Idempotent."""
        self._database.close()

    def __len__(self) -> int:
        return len(self._skills)

    @property
    def unreadable_skills(self) -> tuple[CatalogSkill, ...]:
        """Skills whose file cannot be read; they are found by name and description."""
        return tuple(self._skills[one] for one in self._unreadable if one in self._skills)

    @property
    def pending_count(self) -> int:
        """The number of skills whose texts have not been read yet."""
        return len(self._pending)

    @property
    def has_complete_texts(self) -> bool:
        """Whether complete texts are searched, instead of beginnings and headings."""
        return self._has_complete_texts

    def update(self, skills: Iterable[CatalogSkill]) -> None:
        """Set the skills to search.

        `read_texts` reads the texts that have changed.
        """
        skills = [*skills]
        try:
            self._update(skills)
        except sqlite3.Error as error:
            self._replace_database(error)
            self._update(skills)

    def _update(self, skills: Sequence[CatalogSkill]) -> None:
        with self._lock:
            self._set_extent(len(skills))
            is_first = not self._locations
            known = self._locations
            locations = {id(one): known.get(id(one)) or _encode_location(one) for one in skills}
            by_location = {locations[id(skill)]: skill for skill in reversed(skills)}
            changed = {locations[id(one)]: one for one in skills if id(one) not in known}
            removed = [location for location in self._skills if location not in by_location]
            self._locations, self._skills = locations, by_location
            if is_first and self._database.is_wasteful():
                self._database.clear(has_complete_texts=self._has_complete_texts)
            places = self._database.read_places() if is_first else {}
            if is_first:
                removed = [location for location in places if location not in by_location]
                changed = {
                    location: skill
                    for location, skill in changed.items()
                    if not self._is_current(places.get(location), skill)
                }
            self._store_heads(changed, removed)

    def _set_extent(self, count: int) -> None:
        """Index complete texts if there are few skills, else shortened ones."""
        self._has_complete_texts = count <= self._ranking.max_complete_texts
        if self._database.read_extent() != self._has_complete_texts:
            self._database.clear(has_complete_texts=self._has_complete_texts)
            self._locations = {}
            self._pending = {}
            self._copies = set()

    def _store_heads(self, changed: Mapping[bytes, CatalogSkill], removed: Sequence[bytes]) -> None:
        if not changed and not removed:
            return
        # Sorted by location, which takes a third less time to store.
        heads = {location: _build_head(changed[location]) for location in sorted(changed)}
        self._database.begin()
        self._database.remove_places(removed)
        rows = self._database.add_heads([*heads.values()])
        self._database.set_places(
            Place(location, rows[head.digest]) for location, head in heads.items()
        )
        for location in removed:
            self._pending.pop(location, None)
            self._copies.discard(location)
        self._copies.update(self._database.find_copies({h.description_key for h in heads.values()}))
        self._pending.update(dict.fromkeys([*heads, *self._copies]))
        if not self._pending:  # else the heads are committed with the texts
            self._database.commit()
        self._ranker.forget()

    def _replace_database(self, error: sqlite3.Error) -> None:
        """Continue with an empty database.

        It is in memory, or in the same file if that was damaged.
        """
        with self._lock:
            self._database = _replace_database(self._database, error)
            self._ranker = QueryRanker(self._database, self._ranking, self._semantic)
            self._locations = {}
            self._pending = {}
            self._copies = set()

    def read_texts(
        self,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Index the texts of skills that are new or have changed.

        `on_progress` is called with the number of texts that are still to be read.
        """
        try:
            self._read_pending(should_stop, on_progress)
        except sqlite3.Error as error:
            self._replace_database(error)
            self._update([*self._skills.values()])
            self._read_pending(should_stop, on_progress)

    def _read_pending(
        self, should_stop: Callable[[], bool], on_progress: Callable[[int], None]
    ) -> None:
        count = 0
        while self._pending and not should_stop():
            on_progress(len(self._pending))
            count += self._read_batch()
            # Each commit writes a segment of the index, and segments must be merged.
            if count >= _COMMIT_SIZE:
                self._database.commit()
                count = 0
        self._database.commit()

    def _read_batch(self) -> int:
        with self._lock:
            batch = [*islice(self._pending, _BATCH)]
            is_complete = self._has_complete_texts
            skills = [(location, self._skills[location]) for location in batch]
        with SkillReader(self._read_text) as reader:
            texts = [(location, self._read(location, skill, reader)) for location, skill in skills]
        rows = [(location, text) for location, text in texts if text is not None]
        with self._lock:
            if is_complete != self._has_complete_texts:
                return 0  # all texts are pending again
            self._database.begin()
            ids = self._database.add_texts([text.row for _, text in rows])
            current = self._skills
            unchanged = {place for place, skill in skills if current.get(place) is skill}
            self._database.set_texts(
                (ids[text.row.digest], text.signature, text.embedding, place)
                for place, text in rows
                if place in unchanged
            )
            self._ranker.forget()
            for location in unchanged:
                self._pending.pop(location, None)
                self._copies.discard(location)
        return len(batch)

    def _read(self, location: bytes, skill: CatalogSkill, reader: SkillReader) -> _ReadText | None:
        try:
            data, status = reader.read(skill)
        except SkillhallError:
            self._unreadable[location] = None
            return None
        self._unreadable.pop(location, None)
        key = copy_key(data) if location in self._copies else None
        content = data[:MAX_TEXT]
        if not self._has_complete_texts:
            content = shorten_text(content)
        # Hashes only the searched content, which takes a third of the time of the complete text.
        row = TextRow(hashlib.sha256(content + (key or b"")).digest()[:16], key, content)
        digest = _compute_embedding_digest(skill, data) if self._has_model else None
        return _ReadText(row, self._build_signature(status), digest)

    def _build_signature(self, status: os.stat_result | None) -> bytes:
        """Return the signature of a SKILL.md; empty if the file may change unnoticed."""
        if (
            status is None
            or max(status.st_mtime_ns, status.st_ctime_ns) > self._clock() - CLOCK_GRANULARITY
        ):
            return b""
        return _SIGNATURE.pack(
            status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
        )

    def _is_current(self, place: Place | None, skill: CatalogSkill) -> bool:
        if place is None or not place.signature or (self._has_model and place.embedding is None):
            return False
        return place.signature == self._build_signature(read_status(skill))

    def search(
        self,
        text: str,
        limit: int = DEFAULT_LIMIT,
        offset: int = 0,
        keep: Callable[[CatalogSkill], bool] | None = None,
    ) -> SearchResult:
        """Search; a blank text matches all skills, in name order.

        Skills for which `keep` is false are left out.
        """
        query = parse_query(text)
        limit, offset = max(0, limit), max(0, offset)
        matches = self._find_or_rebuild(query, offset + limit, keep)
        total = len(matches.groups)
        page = matches.groups[offset : offset + limit]
        hits = tuple(self._build_hits(query, matches, page))
        return SearchResult(hits, total, offset + len(hits) < total)

    def explain(self, text: str, hit: IndexHit) -> HitExplanation:
        """Explain a hit of this query: the words of each field that match, and its ranks."""
        builder = SnippetBuilder(parse_query(text), inside_words=not hit.ranks)
        fields = {
            "name": hit.skill.name,
            "description": hit.skill.description,
            "body": self._read_body(hit.skill),
        }
        words = {field: builder.find_words(value) for field, value in fields.items()}
        return HitExplanation({field: found for field, found in words.items() if found}, hit.ranks)

    def build_snippets(
        self, text: str, skills: Iterable[CatalogSkill]
    ) -> Iterator[tuple[Snippet, Snippet]]:
        """Yield the name of each skill and its snippet, with the matches of a query."""
        query = parse_query(text)
        words, parts = SnippetBuilder(query), SnippetBuilder(query, inside_words=True)
        for skill in skills:
            name, snippet = words.build(skill.name), self._build_snippet(skill, words)
            if not name.marks and not snippet.marks:
                name, snippet = parts.build(skill.name), self._build_snippet(skill, parts)
            yield name, snippet

    def find(self, text: str, limit: int = DEFAULT_LIMIT) -> tuple[list[list[CatalogSkill]], int]:
        """Return the best skills, each with its copies, and the total number of matches."""
        limit = max(0, limit)
        _, skills, groups = self._find_or_rebuild(parse_query(text), limit)
        page = [[skills[location] for location in group] for group in groups[:limit]]
        return page, len(groups)

    def _find_or_rebuild(
        self, query: Query, end: int, keep: Callable[[CatalogSkill], bool] | None = None
    ) -> _Matches:
        try:
            return self._find_matches(query, end, keep)
        except sqlite3.Error as error:
            self._replace_database(error)
            self._update([*self._skills.values()])
            self.read_texts()
            return self._find_matches(query, end, keep)

    def _find_matches(
        self, query: Query, end: int, keep: Callable[[CatalogSkill], bool] | None = None
    ) -> _Matches:
        """Return all matches, with copies in one group.

        Only the first `end` groups are in order.
        """
        skills = self._skills
        if query.folded_text:
            ranked = self._ranker.rank(query)
        else:
            ranked = RankedSkills(dict.fromkeys(skills, 0.0), {})
        found = [location for location in ranked.scores if location in skills]
        if keep is not None:
            found = [location for location in found if keep(skills[location])]
        groups: dict[bytes, list[bytes]] = {}
        use_keys = self._ranking.fold_copies and query.folded_text
        keys = self._database.read_copy_keys(found) if use_keys else {}
        text, rank_keys = query.text, {**ranked.scores}
        least = NAME_SCORE if query.folded_text else 0.0
        for location in found if text else ():
            # A name that equals the query exactly comes before other names with the same words.
            if rank_keys[location] >= least and skills[location].name.strip() == text:
                rank_keys[location] += 1
        rank_key = rank_keys.__getitem__
        found.sort(key=rank_key, reverse=True)
        for _, equal in groupby(found, rank_key):
            run = [*equal]
            # Sort keys of names are slow to build, and the order after the page does not matter.
            if len(run) > 1 and len(groups) < end:
                run.sort(key=lambda location: _sort_key(skills[location]))
            for location in run:
                groups.setdefault(keys.get(location) or location, []).append(location)
        return _Matches(ranked, skills, [*groups.values()])

    def _build_hits(
        self, query: Query, matches: _Matches, groups: Iterable[Sequence[bytes]]
    ) -> Iterator[IndexHit]:
        words, parts = SnippetBuilder(query), SnippetBuilder(query, inside_words=True)
        for group in groups:
            skill, *copies = (matches.skills[location] for location in group)
            ranks = matches.ranked.get_ranks(group[0])
            snippet = self._build_snippet(skill, words if ranks else parts)
            score = matches.ranked.scores[group[0]]
            yield IndexHit(skill, score, snippet, tuple(copies), ranks)

    def _build_snippet(self, skill: CatalogSkill, builder: SnippetBuilder) -> Snippet:
        description = builder.build(skill.description)
        if description.marks:
            return description
        body = builder.build(self._read_body(skill))
        return body if body.marks else description

    def _read_body(self, skill: CatalogSkill) -> str:
        """Read the body of a skill; "" if it has been deleted since it was indexed."""
        try:
            data = self._read_text(skill)
        except SkillhallError:
            return ""
        return data[_find_body(data) :].decode("utf-8", "replace")


class _ReadText(NamedTuple):
    """A text that was read, with its file's signature and its embedding digest."""

    row: TextRow
    signature: bytes
    embedding: str | None


class _Matches(NamedTuple):
    """Matching skills and their order."""

    ranked: RankedSkills
    skills: Mapping[bytes, CatalogSkill]  # by location
    groups: list[list[bytes]]  # locations of skills, each with its copies; best first


def _open_database(path: str | None) -> IndexDatabase:
    """Open the database; in memory if the file cannot be used."""
    if path is None:
        return IndexDatabase()
    try:
        return IndexDatabase(path)
    except OSError as error:
        _LOG.warning("the search index cannot be stored: %s", error)
        return IndexDatabase()
    except sqlite3.Error as error:
        return _recreate_database(path, error)


def _replace_database(database: IndexDatabase, error: sqlite3.Error) -> IndexDatabase:
    with suppress(sqlite3.Error):
        database.close()
    return IndexDatabase() if database.path is None else _recreate_database(database.path, error)


def _recreate_database(path: str, error: sqlite3.Error) -> IndexDatabase:
    """Replace a damaged file; a file that another process has locked is left alone."""
    if "locked" in str(error):
        _LOG.debug("another process is changing the search index %s", path)
        return IndexDatabase()
    _LOG.warning("the search index was damaged and is being rebuilt: %s (%s)", path, error)
    try:
        for suffix in ("", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(f"{path}{suffix}")
        return IndexDatabase(path)
    except (OSError, sqlite3.Error):
        return IndexDatabase()


def _build_head(skill: CatalogSkill) -> HeadRow:
    name, written = skill.name, skill.description
    digest = hashlib.sha256(f"{name}\0{written}".encode("utf-8", "surrogatepass")).digest()[:16]
    description = fold_text(written)
    key = words_key(description.encode("utf-8", "surrogatepass"))
    return HeadRow(digest, build_name_key(name), split_name(name), description, key)


def _compute_embedding_digest(skill: CatalogSkill, data: bytes) -> str:
    body = data[_find_body(data) :][:_MAX_EMBEDDED].decode("utf-8", "replace")
    return compute_text_digest(build_embedding_text(skill.name, skill.description, body))


def _find_body(data: bytes) -> int:
    block = find_frontmatter(data)
    return block.body_start if isinstance(block, FrontmatterBlock) else 0


def _sort_key(skill: CatalogSkill) -> tuple[str, ...]:
    return fold_line(skill.name), skill.name, skill.root.path, skill.folder, skill.file


def _encode_location(skill: CatalogSkill) -> bytes:
    return skill.location.encode("utf-8", "surrogatepass")
