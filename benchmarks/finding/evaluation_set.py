"""The evaluation set: skills written by hand, and the queries they answer.

`data` has one file per domain, with the domain's vocabulary, skills that are close to its targets,
and the targets with their prompts and keyword queries. Targets are divided into two halves by
their names: search is tuned on one half and reported on the other.
"""

import hashlib
import re
import tomllib
import zlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
# Not in `data`, because the generated skills depend on all queries there.
MORE_KEYWORDS = Path(__file__).parent / "more_keywords.toml"
GENERATORS = ("distractors", "phrases")  # modules that determine the generated skills
SHORT_WORDS = 20  # a prompt with fewer words counts as short
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CHARACTERS_PER_WORD = 2  # of Chinese and Japanese
_LANGUAGE_GROUPS = {
    "en": "English",
    "de": "European",
    "es": "European",
    "fr": "European",
    "pt": "European",
    "ru": "Russian",
    "ja": "CJK",
    "ko": "CJK",
    "zh": "CJK",
}


class Half(StrEnum):
    """A half of the targets."""

    TUNING = "tuning"
    REPORTING = "reporting"


@dataclass(frozen=True, slots=True)
class Query:
    """A text to search for and the names of the skills that answer it."""

    text: str
    right: frozenset[str]
    half: Half
    language: str = "en"
    is_keyword: bool = False

    @property
    def group(self) -> str:
        """The language group of the text."""
        return _LANGUAGE_GROUPS[self.language]

    @property
    def words(self) -> int:
        """Number of words; characters of scripts without spaces count in part."""
        unspaced = self.language in {"ja", "zh"}
        cjk = len(_CJK.findall(self.text)) if unspaced else 0
        rest = _CJK.sub(" ", self.text) if unspaced else self.text
        return len(rest.split()) + cjk // _CHARACTERS_PER_WORD

    @property
    def is_short(self) -> bool:
        """Whether the text has few words."""
        return self.words < SHORT_WORDS


@dataclass(frozen=True, slots=True)
class Target:
    """A skill written by hand."""

    name: str
    description: str
    body: str
    domain: str


@dataclass(frozen=True, slots=True)
class Domain:
    """A field of work: its vocabulary and skills that are close to its targets."""

    name: str
    terms: tuple[str, ...]
    actions: tuple[str, ...]
    neighbours: tuple[tuple[str, str], ...]  # name and description


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """All domains, targets and queries."""

    domains: tuple[Domain, ...]
    targets: tuple[Target, ...]
    queries: tuple[Query, ...]

    def prompts(self, half: Half) -> list[Query]:
        """Return the natural prompts of one half."""
        return [query for query in self.queries if query.half is half and not query.is_keyword]

    def keywords(self, half: Half) -> list[Query]:
        """Return the keyword queries of one half."""
        return [query for query in self.queries if query.half is half and query.is_keyword]


def half_of(name: str) -> Half:
    """Return the half a target belongs to; it depends on the name alone."""
    digest = hashlib.sha256(name.encode()).digest()
    return Half.TUNING if digest[0] % 2 else Half.REPORTING


@cache
def load_set() -> EvaluationSet:
    """Return the evaluation set."""
    domains: list[Domain] = []
    targets: list[Target] = []
    queries: list[Query] = []
    for path in sorted(DATA.glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        domains.append(_read_domain(path.stem, document))
        for skill in document["skill"]:
            body = skill["body"].strip() + "\n"
            targets.append(Target(skill["name"], skill["description"], body, path.stem))
            queries += _read_queries(skill)
    return EvaluationSet(tuple(domains), tuple(targets), tuple(queries))


def load_more_keywords() -> list[Query]:
    """Return further keyword queries, all of the tuning half."""
    document = tomllib.loads(MORE_KEYWORDS.read_text(encoding="utf-8"))
    right = {name: one.right for one in load_set().queries for name in one.right}
    return [
        Query(text, right[name], half_of(name), is_keyword=True)
        for name, texts in document.items()
        for text in texts
    ]


def compute_checksum() -> int:
    """Return a number that changes with the set and with the generator of its distractors."""
    checksum = 0
    for path in sorted([*DATA.glob("*.toml"), *DATA.parent.glob("*.py")]):
        if path.suffix == ".toml" or path.stem in GENERATORS:
            checksum = zlib.crc32(path.read_bytes(), checksum)
    return checksum


def _read_domain(name: str, document: dict[str, Any]) -> Domain:
    neighbours = [text.split(": ", 1) for text in document["neighbours"]]
    pairs = tuple((name, description) for name, description in neighbours)
    return Domain(name, tuple(document["terms"]), tuple(document["actions"]), pairs)


def _read_queries(skill: dict[str, Any]) -> list[Query]:
    name = skill["name"]
    right, half = frozenset([name, *skill.get("also", ())]), half_of(name)
    queries = [
        Query(text, right, half, key.partition("_")[2] or "en")
        for key, texts in skill.items()
        if key.partition("_")[0] == "prompts"
        for text in texts
    ]
    keywords = [Query(text, right, half, is_keyword=True) for text in skill["keywords"]]
    return queries + keywords
