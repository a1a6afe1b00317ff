"""Embedding texts of catalog skills."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_content import read_raw_body
from skillhall._internal.embeddings.embedding_job import EmbeddingInput
from skillhall._internal.embeddings.embedding_text import build_embedding_text, compute_text_digest
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillhall._internal.catalog.catalog import CatalogSkill


class EmbeddingTexts:
    """Digests of the embedding texts of skills; each version is read once.

    A catalog has a new object for each version of a skill, so objects identify versions.
    """

    def __init__(self) -> None:
        self._digests: dict[str, tuple[CatalogSkill, str]] = {}  # by location

    def list_inputs(self, skills: Iterable[CatalogSkill]) -> Iterator[EmbeddingInput]:
        """Yield the input of each skill that can be read."""
        listed: dict[str, tuple[CatalogSkill, str]] = {}
        for skill in skills:
            try:
                digest = self.get_digest(skill)
            except SkillhallError:
                continue
            listed[skill.location] = skill, digest
            yield EmbeddingInput(digest, partial(read_embedding_text, skill))
        self._digests = listed  # without skills that are gone

    def get_digest(self, skill: CatalogSkill) -> str:
        """Return the digest of a skill's text. Raises: same as `read_embedding_text`."""
        known = self._digests.get(skill.location)
        if known is None or known[0] is not skill:
            known = skill, compute_text_digest(read_embedding_text(skill))
            self._digests[skill.location] = known
        return known[1]


def read_embedding_text(skill: CatalogSkill) -> str:
    """Read the text to embed for a skill. Raises: same as `read_raw_body`."""
    return build_embedding_text(skill.name, skill.description, read_raw_body(skill))
