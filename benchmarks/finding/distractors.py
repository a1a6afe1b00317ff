"""The collection that is searched: the targets among thousands of skills that resemble them.

Distractors use the vocabulary of the domains: its terms and actions, phrases of the targets'
descriptions and sentences of their bodies, besides sentences that occur in every domain. Sizes,
styles and repeated names have the shares of the real registry. The seed determines every byte.
"""

import json
import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from benchmarks.collection_texts import REGISTRY, CollectionWriter, draw
from benchmarks.finding.baselines import STOP_WORDS
from benchmarks.finding.evaluation_set import Domain, Target, load_set
from benchmarks.finding.phrases import (
    DESCRIPTION_PARTS,
    DESCRIPTION_STARTS,
    EVERYDAY,
    GENERAL_SENTENCES,
    HEADINGS,
    REQUESTS,
    SENTENCES,
)
from benchmarks.texts import SUFFIXES, VERBS

SECTIONS_PER_DOMAIN = 400
SECTIONS_PER_TARGET = 60
SIBLINGS = 0.65  # share of distractors about the subject of one target
SAME_TEXT = 0.6  # share of skills with a repeated name that are copies with small edits
LONGEST_PHRASE = 5  # words
PIECE = 3  # words of a piece of a longer phrase
OTHER_DOMAIN = 0.12  # share of sentences and terms from another domain
GENERAL = 0.3  # share of sentences of every domain
_SENTENCE_END = re.compile(r"(?<=[.:?!。])\s+|\n+")
_PHRASE_END = re.compile(r"[,:;.()]| and | or ")
_LEAD = re.compile(
    r"(Use|For|Answers|Input)\b[^:,.]*?\b(when|such as:?|like these:|case of|for|is|with)\b"
)
_WORD = re.compile(r"[^\W_]+")


class _Shares(NamedTuple):
    """Shares of what also occurs in a target."""

    description: float  # of the phrases in a description
    body: float  # of the phrases in a body
    sentences: float


SIBLING_SHARES = _Shares(0.9, 0.35, 0.1)
DOMAIN_SHARES = _Shares(0.08, 0.08, 0.04)


class CollectionSkill(NamedTuple):
    """A skill of the collection."""

    name: str
    content: bytes


class _KeywordFilter:
    """Keeps the answers to keyword queries out of generated names and phrases."""

    def __init__(self, queries: Sequence[str], names: Sequence[str]) -> None:
        self._taken = set(names)
        self._queries = [frozenset(_fold(query)) for query in queries]

    def allows(self, text: str) -> bool:
        """Whether the text is no target's name and has not all words of a keyword query."""
        words = set(_fold(text))
        # In Korean, particles follow a word without a space; in Chinese, other words do.
        unspaced = "" if text.isascii() else text.casefold()
        return text not in self._taken and not any(
            all(word in words or (not word.isascii() and word in unspaced) for word in query)
            for query in self._queries
        )


def _fold(text: str) -> list[str]:
    return [word.casefold().removesuffix("s") for word in _WORD.findall(text)]


def _split_description(text: str) -> Iterator[str]:
    """Yield the phrases of a description; of long ones, pieces of a few words."""
    for phrase in _PHRASE_END.split(_LEAD.sub(" ", text)):
        words = phrase.split()
        size = LONGEST_PHRASE if len(words) <= LONGEST_PHRASE else PIECE
        for start in range(0, len(words), size):
            piece = words[start : start + size]
            if len(piece) > 1:
                yield " ".join(piece)


def _is_name(phrase: str) -> bool:
    words = phrase.lower().split()
    return len(words) <= PIECE and not STOP_WORDS.intersection(words)


class _Topic:
    """What a distractor is about: a domain, or one target of it."""

    def __init__(
        self,
        domain: Domain,
        targets: Sequence[Target],
        shares: _Shares,
        keywords: _KeywordFilter,
    ) -> None:
        self.shares = shares
        self.terms = [term for term in domain.terms if keywords.allows(term)]
        self.actions = [action for action in domain.actions if keywords.allows(action)]
        lines = [line for target in targets for line in _SENTENCE_END.split(target.body)]
        lines = [line for line in lines if len(line.split()) > 3 and keywords.allows(line)]
        self.shared_sentences = lines or self.actions
        phrases = [
            phrase
            for target in targets
            for phrase in _split_description(target.description)
            if keywords.allows(phrase)
        ]
        self.shared_phrases = phrases or self.terms
        self.names = self.terms + [phrase for phrase in phrases if _is_name(phrase)]
        self.sections: list[str] = []


class _Writer(CollectionWriter):
    """Writes distractors about the topic chosen last."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng, REGISTRY)
        evaluation = load_set()
        queries = [query.text for query in evaluation.queries if query.is_keyword]
        self._keywords = _KeywordFilter(queries, [target.name for target in evaluation.targets])
        self.domains: dict[str, _Topic] = {}
        self.siblings: list[_Topic] = []
        for domain in evaluation.domains:
            targets = [target for target in evaluation.targets if target.domain == domain.name]
            self.domains[domain.name] = _Topic(domain, targets, DOMAIN_SHARES, self._keywords)
            self.siblings += [
                _Topic(domain, [target], SIBLING_SHARES, self._keywords) for target in targets
            ]
        self._all_domains = list(self.domains.values())
        self.topic = self._all_domains[0]
        self._is_in_body = True
        for topic in self._all_domains:
            self._fill_sections(topic, SECTIONS_PER_DOMAIN)
        for topic in self.siblings:
            self._fill_sections(topic, SECTIONS_PER_TARGET)
        self._is_in_body = False

    def choose_topic(self) -> None:
        """Choose the topic of the next distractor."""
        is_sibling = self.rng.random() < SIBLINGS
        self.topic = self.rng.choice(self.siblings if is_sibling else self._all_domains)

    def draw_name(self) -> str:
        """Return a new name, or one that an earlier distractor has."""
        rng = self.rng
        if self._names and rng.random() < self.figures.repeated_name:
            return self._names[int(len(self._names) * rng.random() ** 2)]
        name = self._new_name()
        self._used.add(name)
        self._names.append(name)
        return name

    def _new_name(self) -> str:
        rng = self.rng
        while True:
            parts = [rng.choice(self.topic.names)]
            if rng.random() < 0.7:
                parts.append(rng.choice(SUFFIXES))
            if rng.random() < 0.4:
                parts.insert(0, rng.choice(VERBS))
            name = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
            if name and name not in self._used and self._keywords.allows(name):
                return name

    def write_description(self, length: int) -> str:
        """Return a description of about `length` characters."""
        rng = self.rng
        text = self._fill(rng.choice(DESCRIPTION_STARTS))
        while len(text) < length:
            text += " " + self._fill(rng.choice(DESCRIPTION_PARTS))
        return text[: max(length, 40)].rsplit(" ", 1)[0].rstrip(" ,;:") + "."

    def write_body(self, size: int) -> bytes:
        """Return a body of about `size` bytes from sections about the topic."""
        parts, written = [], 0
        while written < size:
            part = self.rng.choice(self.topic.sections)
            parts.append(part)
            written += len(part)
        return "\n".join(parts).encode()[:size].decode("utf-8", "ignore").encode()

    def _fill_sections(self, topic: _Topic, count: int) -> None:
        self.topic = topic
        topic.sections += [self._section() for _ in range(count)]

    def _any_topic(self) -> _Topic:
        """Return the topic, or sometimes another domain."""
        other = self.rng.random() < OTHER_DOMAIN
        return self.rng.choice(self._all_domains) if other else self.topic

    def _term(self) -> str:
        topic = self._any_topic()
        share = topic.shares.body if self._is_in_body else topic.shares.description
        is_shared = self.rng.random() < share
        return self.rng.choice(topic.shared_phrases if is_shared else topic.terms)

    def _fill(self, template: str) -> str:
        text = template
        while "{" in text:
            kind = text[text.index("{") + 1 : text.index("}")]
            text = text.replace(f"{{{kind}}}", self._value(kind), 1)
        return text[0].upper() + text[1:]

    def _value(self, kind: str) -> str:
        if kind == "term":
            return self._term()
        if kind == "action":
            return self.rng.choice(self._any_topic().actions)
        return self.rng.choice(EVERYDAY[kind])

    def _sentence(self) -> str:
        rng = self.rng
        topic = self._any_topic()
        if rng.random() < topic.shares.sentences:
            return rng.choice(topic.shared_sentences)
        if rng.random() < GENERAL:
            # Some sentences are frequent, others rare.
            return GENERAL_SENTENCES[int(len(GENERAL_SENTENCES) * rng.random() ** 2)]
        return self._fill(rng.choice(SENTENCES))

    def _section(self) -> str:
        rng = self.rng
        heading = f"## {self._fill(rng.choice(HEADINGS))}\n"
        kind = rng.random()
        if kind < 0.2:
            requests = [f'- "{self._fill(rng.choice(REQUESTS))}"' for _ in range(rng.randint(2, 5))]
            return "\n".join([heading, *requests, ""])
        sentences = [self._sentence() for _ in range(rng.randint(3, 9))]
        if kind < 0.5:
            return "\n".join([heading, *(f"- {sentence}" for sentence in sentences), ""])
        return f"{heading}\n{' '.join(sentences)}\n"


class Collection:
    """All skills of a tree, in a stable order that mixes targets and distractors."""

    def __init__(self, seed: int = 1) -> None:
        self._rng = Random(f"finding/{seed}")
        self._writer = _Writer(self._rng)
        self._copies: dict[str, tuple[_Topic, bytes]] = {}

    def write(self, count: int) -> Iterator[CollectionSkill]:
        """Yield `count` skills: the targets, their neighbours, and distractors."""
        evaluation = load_set()
        skills = [self._target(target) for target in evaluation.targets]
        for domain in evaluation.domains:
            self._writer.topic = self._writer.domains[domain.name]
            skills += [self._neighbour(name, text) for name, text in domain.neighbours]
        skills += [self._distractor() for _ in range(count - len(skills))]
        self._rng.shuffle(skills)
        return iter(skills)

    def _target(self, target: Target) -> CollectionSkill:
        self._writer.topic = self._writer.domains[target.domain]
        return self._written(target.name, target.description, target.body)

    def _neighbour(self, name: str, description: str) -> CollectionSkill:
        return self._written(name, description, "")

    def _written(self, name: str, description: str, body: str) -> CollectionSkill:
        """Return a skill with a text written by hand and sections of its domain."""
        head = f"---\nname: {name}\ndescription: {json.dumps(description, ensure_ascii=False)}\n"
        content = f"{head}---\n\n{body}\n".encode()
        size = round(draw(self._rng, REGISTRY.size)) - len(content)
        return CollectionSkill(name, content + self._writer.write_body(max(size, 0)))

    def _distractor(self) -> CollectionSkill:
        writer, rng = self._writer, self._rng
        writer.choose_topic()
        name = writer.draw_name()
        if name in self._copies and rng.random() < SAME_TEXT:
            writer.topic, content = self._copies[name]
            return CollectionSkill(name, content + b"\n" + writer.write_body(rng.choice((80, 400))))
        content = writer.registry_text(name, f"owner{rng.randrange(4000)}").content
        self._copies.setdefault(name, (writer.topic, content))
        return CollectionSkill(name, content)
