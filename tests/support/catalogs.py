"""Skills and catalogs in memory for searches, and short ways to look at what was found."""

import threading
from collections.abc import Iterable, Mapping

from skillhall._internal.catalog.catalog import Catalog, Skill
from skillhall._internal.catalog.search.background_index import THREAD_NAME
from skillhall._internal.catalog.search.fts import FtsEngine
from skillhall._internal.catalog.search.linear_scan import LinearScanEngine
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.sources.folder.root import Root

_DEADLINE = 120  # seconds; whatever takes longer hangs
ROOT = Root("/skills", "project")
ENGINES: list[type[FtsEngine | LinearScanEngine]] = [FtsEngine, LinearScanEngine]


def make_catalog_skill(
    name: str, description: str = "Does it.", folder: str = "", *, hidden: bool = False
) -> Skill:
    """A skill of a catalog that no disk holds."""
    fields = Frontmatter({}, name, description)
    return Skill(name, description, hidden, folder or name, "SKILL.md", ROOT, 0, fields)


def make_catalog(skills: Iterable[Skill]) -> Catalog:
    return Catalog(LENIENT, (ROOT,), skills)


def make_index(
    described: Mapping[str, str], engine: type[FtsEngine | LinearScanEngine]
) -> SearchIndex:
    """An index of skills by name, each with its description."""
    skills = [make_catalog_skill(name, description) for name, description in described.items()]
    return SearchIndex.build(make_catalog(skills), make_engine=engine)


def search_names(index: SearchIndex, text: str, limit: int = 20) -> list[str]:
    return [hit.skill.name for hit in index.search(text, limit).hits]


def wait_for_indexing() -> None:
    """Until every search of this process has read what it was to read."""
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(_DEADLINE)
            assert not thread.is_alive()
