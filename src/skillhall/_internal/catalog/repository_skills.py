"""Skills of the repositories that a server reads, with their origins."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill


class RepositoryOrigin(NamedTuple):
    """Repository and commit of a skill. The URL contains no credentials."""

    repository: str = ""
    commit: str = ""


class RepositorySkillSet(NamedTuple):
    """Skills of all repositories of a server, in order of precedence."""

    digest: str = ""  # changes whenever any repository changes
    skills: Sequence[CatalogSkill] = ()
    origins: Mapping[str, RepositoryOrigin] = MappingProxyType({})  # by root path
