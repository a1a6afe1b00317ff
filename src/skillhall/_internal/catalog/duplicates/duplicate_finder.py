"""Finds copies among skills: equal, nearly equal and overlapping ones.

Each SKILL.md is read once for its digests and a sketch of its text. Skills with the same sketch
values are candidates; only these are read again and compared exactly.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from typing import NamedTuple, Protocol, TypeVar

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.duplicates.candidate_pairs import find_candidate_pairs
from skillhall._internal.catalog.duplicates.duplicate_report import (
    DEFAULT_THRESHOLD,
    DuplicateGroup,
    DuplicateKind,
    DuplicateReport,
    SkillCopy,
    SkillDifferences,
)
from skillhall._internal.catalog.duplicates.text_comparison import (
    TextComparison,
    compare_phrases,
    hash_phrases,
    read_words,
    sketch_words,
)
from skillhall._internal.catalog.skill_content import (
    open_skill_bundle,
    read_main_file,
    read_skill_md,
)
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.folder_walk_rules import ScanPolicy
from skillhall._internal.skill.bundle import SkillFile
from skillhall._internal.skill.copy_key import KEY_SIZE, copy_key
from skillhall._internal.skill.frontmatter_locator import FrontmatterBlock, find_frontmatter
from skillhall.errors import SkillhallError

_MIN_SHARED_WORDS = 40  # for overlapping skills; fewer words are just a few common sentences
_MAX_NEAR = 0.999  # maximum for texts that differ, even if only in the order of lines
_TEXTS_IN_MEMORY = 64  # a text is often compared several times in a row
_KINDS = [*DuplicateKind]
_T = TypeVar("_T")
_R = TypeVar("_R")


class RunStep(Protocol):
    """Applies a function to all items, in order, and reports the step's progress."""

    def __call__(
        self, step: str, function: Callable[[_T], _R], items: Sequence[_T], /
    ) -> Iterable[_R]: ...


def _run_in_order(_step: str, function: Callable[[_T], _R], items: Sequence[_T], /) -> Iterable[_R]:
    return map(function, items)


class _TextLocation(NamedTuple):
    """The location of a SKILL.md; small, since it is sent to other processes."""

    folder: FolderHandle
    file: str
    real_file: FolderHandle | None

    def read(self) -> bytes | None:
        """Return the SKILL.md; `None` if it cannot be read."""
        try:
            return read_main_file(self.folder, self.file, self.real_file)
        except (SkillhallError, OSError):
            return None


class _TextFacts(NamedTuple):
    """Digests and sketch of a SKILL.md."""

    digest: bytes
    key: bytes  # equal for the same words
    sketch: array[int]


def find_duplicates(
    skills: Iterable[CatalogSkill],
    policy: ScanPolicy,
    threshold: float = DEFAULT_THRESHOLD,
    run_step: RunStep = _run_in_order,
) -> DuplicateReport:
    """Find the skills that are copies of each other.

    `policy` decides which files belong to a skill. `threshold` is the minimum similarity, up
    to 1, of near and overlapping skills. `run_step` may use several cores.
    Raises: ValueError if the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold must be above 0 and at most 1, not {threshold}")
    listed = [*skills]
    locations = [_TextLocation(s.folder_handle, s.file, s.real_file) for s in listed]
    facts = [*run_step("reading skills", _read_facts, locations)]
    unreadable = [
        skill.location for skill, found in zip(listed, facts, strict=True) if found is None
    ]
    texts = _group_by_text(listed, facts)  # numbers of the skills with each text
    representatives = [numbers[0] for numbers in texts]
    candidates = find_candidate_pairs(
        [known.sketch if (known := facts[number]) else () for number in representatives]
    )
    clusters = _TextClusters(len(texts), threshold)
    # Most texts are joined with their best candidate, which makes other comparisons unnecessary.
    for pairs in (candidates.best_pairs, candidates.other_pairs):
        separate = [pair for pair in pairs if not clusters.is_joined(*pair)]
        compared = [tuple(locations[representatives[text]] for text in pair) for pair in separate]
        comparisons = run_step("comparing skills", _compare_texts, compared)
        for pair, comparison in zip(separate, comparisons, strict=True):
            clusters.add(pair, comparison)
    members = [
        _GroupMembers([listed[n] for n, _ in found], [similarity for _, similarity in found])
        for cluster in clusters.list_copies()
        if len(found := sorted((n, s) for text, s in cluster for n in texts[text])) > 1
    ]
    members += [
        _GroupMembers(
            [listed[representatives[text]] for text, _ in group],
            [containment for _, containment in group],
            is_overlap=True,
        )
        for group in clusters.list_overlaps()
    ]
    described = run_step("describing copies", partial(_describe_group, policy), members)
    return DuplicateReport(
        groups=tuple(sorted(filter(None, described), key=_rank_group)),
        compared=len(listed) - len(unreadable),
        unreadable=tuple(unreadable),
        common_phrases=candidates.common_phrases,
    )


class _GroupMembers(NamedTuple):
    """The skills of a group, before their differences are described."""

    skills: Sequence[CatalogSkill]
    similarities: Sequence[float | None]  # with the first one; 1 for the same text, if known
    is_overlap: bool = False


def _read_facts(location: _TextLocation) -> _TextFacts | None:
    data = location.read()
    if data is None:
        return None
    digest = blake2b(data, digest_size=KEY_SIZE).digest()
    return _TextFacts(digest, copy_key(data), array("Q", sketch_words(read_words(data))))


def _group_by_text(
    skills: Sequence[CatalogSkill], facts: Sequence[_TextFacts | None]
) -> list[list[int]]:
    """Group the numbers of skills with the same text; linked skills count once."""
    texts: dict[bytes, list[int]] = {}
    for number, found in enumerate(facts):
        if found is not None:
            # Without words, only equal files are copies.
            texts.setdefault(found.key or found.digest, []).append(number)
    for numbers in texts.values():
        if len(numbers) > 1:
            # Installers link one folder for several agents.
            by_path = {
                os.path.realpath(skills[number].location): number for number in numbers[::-1]
            }
            numbers[:] = sorted(by_path.values())
    return [*texts.values()]


@lru_cache(_TEXTS_IN_MEMORY)
def _load_phrases(location: _TextLocation) -> list[int]:
    return hash_phrases(read_words(location.read() or b""))


def _compare_texts(locations: tuple[_TextLocation, ...]) -> TextComparison:
    return compare_phrases(*map(_load_phrases, locations))


class _TextClusters:
    """Disjoint sets of near copies, and texts that are contained in others."""

    def __init__(self, count: int, threshold: float) -> None:
        self._threshold = threshold
        self._parents = [*range(count)]
        self._similarities: dict[tuple[int, int], float] = {}  # of joined pairs
        self._containers: dict[int, list[tuple[int, float]]] = {}

    def add(self, pair: tuple[int, int], comparison: TextComparison) -> None:
        """Join two texts that are near copies; else record if one contains the other."""
        if comparison.similarity >= self._threshold:
            self._similarities[pair] = min(comparison.similarity, _MAX_NEAR)
            first, second = sorted(map(self._find_root, pair))
            self._parents[second] = first
        elif comparison.containment >= self._threshold and comparison.shared >= _MIN_SHARED_WORDS:
            small, large = pair if comparison.words <= comparison.other_words else pair[::-1]
            self._containers.setdefault(small, []).append((large, comparison.containment))

    def is_joined(self, first: int, second: int) -> bool:
        """Whether two texts are in the same set."""
        return self._find_root(first) == self._find_root(second)

    def list_copies(self) -> list[list[tuple[int, float | None]]]:
        """Return the sets, each in order, with the similarity to the first text if known."""
        sets: dict[int, list[tuple[int, float | None]]] = {}
        for text in range(len(self._parents)):
            root = self._find_root(text)  # the first text of the set
            similarity = 1.0 if text == root else self._similarities.get((root, text))
            sets.setdefault(root, []).append((text, similarity))
        return [*sets.values()]

    def list_overlaps(self) -> Iterator[list[tuple[int, float]]]:
        """Yield each contained text with the texts that contain it, except its copies."""
        for small, containers in sorted(self._containers.items()):
            others = [found for found in containers if not self.is_joined(small, found[0])]
            if others:
                yield [(small, 1.0), *others]

    def _find_root(self, text: int) -> int:
        parents = self._parents
        while parents[text] != text:
            parents[text] = parents[parents[text]]
            text = parents[text]
        return text


class _LoadedSkill:
    """A skill of a group with its current files."""

    def __init__(self, skill: CatalogSkill, policy: ScanPolicy) -> None:
        """Read the SKILL.md. Raises: SkillhallError, OSError."""
        self.skill = skill
        self.data = read_skill_md(skill)
        bundle = open_skill_bundle(skill, policy)
        self.files = {file.path.text: file for file in bundle.resources()}

    @cached_property
    def fields(self) -> Mapping[str, object]:
        """The fields of its frontmatter."""
        return self.skill.frontmatter.fields

    def compare(self, other: _LoadedSkill) -> TextComparison:
        """Compare the texts of two skills."""
        return compare_phrases(self.phrases, other.phrases)

    @cached_property
    def phrases(self) -> list[int]:
        """Hashes of the phrases in its text."""
        return hash_phrases(read_words(self.data))

    @cached_property
    def lines(self) -> Counter[bytes]:
        """The non-blank lines of its body, stripped, with their counts."""
        block = find_frontmatter(self.data)
        start = block.body_start if isinstance(block, FrontmatterBlock) else 0
        lines = Counter(map(bytes.strip, self.data[start:].splitlines()))
        del lines[b""]
        return lines


def _describe_group(policy: ScanPolicy, members: _GroupMembers) -> DuplicateGroup | None:
    """Compare each skill with the first one; return `None` if the others are gone."""
    first: _LoadedSkill | None = None
    copies: list[SkillCopy] = []
    is_equal = True
    # Read one after the other: a group may have thousands of skills.
    for skill, known in zip(members.skills, members.similarities, strict=True):
        other = _load_skill(skill, policy)
        if other is None:
            continue
        if first is None:
            first = other
            copies.append(_to_copy(skill, 1.0, SkillDifferences()))
            continue
        differences = _find_differences(first, other)
        is_equal = is_equal and other.data == first.data and not differences.files
        # Texts that are joined by a third one are not compared yet.
        similarity = min(first.compare(other).similarity, _MAX_NEAR) if known is None else known
        copies.append(_to_copy(skill, similarity, differences))
    if len(copies) < 2:  # noqa: PLR2004 - a pair
        return None
    similarity = min(copy.similarity for copy in copies)
    kind = DuplicateKind.NEAR if similarity < 1 else DuplicateKind.SAME_TEXT
    kind = DuplicateKind.OVERLAPPING if members.is_overlap else kind
    kind = DuplicateKind.EQUAL if is_equal else kind
    return DuplicateGroup(kind=kind, similarity=similarity, skills=tuple(copies))


def _load_skill(skill: CatalogSkill, policy: ScanPolicy) -> _LoadedSkill | None:
    try:
        return _LoadedSkill(skill, policy)
    except (SkillhallError, OSError):  # removed since the catalog was loaded
        return None


def _to_copy(skill: CatalogSkill, similarity: float, differences: SkillDifferences) -> SkillCopy:
    return SkillCopy(
        name=skill.name, location=skill.location, similarity=similarity, differences=differences
    )


def _find_differences(first: _LoadedSkill, other: _LoadedSkill) -> SkillDifferences:
    fields: tuple[str, ...] = ()
    added = removed = 0
    if other.data != first.data:
        before, after = first.fields, other.fields
        names = {**before, **after}
        missing = object()
        fields = tuple(n for n in names if before.get(n, missing) != after.get(n, missing))
        lines, other_lines = first.lines, other.lines
        added, removed = (other_lines - lines).total(), (lines - other_lines).total()
    paths = sorted(first.files.keys() | other.files.keys())
    files = tuple(p for p in paths if not _is_same_file(first.files.get(p), other.files.get(p)))
    return SkillDifferences(fields=fields, added_lines=added, removed_lines=removed, files=files)


def _is_same_file(first: SkillFile | None, second: SkillFile | None) -> bool:
    if first is None or second is None or first.size != second.size:
        return False
    try:
        return first.read() == second.read()
    except (SkillhallError, OSError):
        return False


def _rank_group(group: DuplicateGroup) -> tuple[int, int, str]:
    return _KINDS.index(group.kind), -len(group.skills), group.skills[0].location
