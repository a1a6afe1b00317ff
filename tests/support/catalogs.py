"""Skills and catalogs in memory, for tests of the search."""

import threading
from collections.abc import Iterable, Mapping

from skillhall._internal.catalog.catalog import Catalog, CatalogRoot, CatalogSkill
from skillhall._internal.catalog.search.background_index import THREAD_NAME
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.sources.folder.root import Root

_DEADLINE = 120  # seconds
ROOT = Root("/skills", "project")


def make_catalog_skill(
    name: str, description: str = "Does it.", folder: str = "", *, hidden: bool = False
) -> CatalogSkill:
    """Create a catalog skill that does not exist on disk."""
    fields = Frontmatter({}, name, description)
    root = CatalogRoot(ROOT)
    return CatalogSkill(name, description, hidden, folder or name, "SKILL.md", root, fields)


def make_catalog(skills: Iterable[CatalogSkill]) -> Catalog:
    return Catalog(LENIENT, (ROOT,), skills)


def make_index(descriptions: Mapping[str, str]) -> SearchIndex:
    """Build the index of skills with these names and descriptions, and empty bodies."""
    skills = [make_catalog_skill(name, description) for name, description in descriptions.items()]
    return SearchIndex.build(skills, read_head)


def read_head(skill: CatalogSkill) -> bytes:
    """Return the text of a SKILL.md without a body."""
    text = f"---\nname: {skill.name}\ndescription: {skill.description}\n---\n"
    return text.encode("utf-8", "surrogatepass")


def search_names(index: SearchIndex, text: str, limit: int = 20) -> list[str]:
    return [hit.skill.name for hit in index.search(text, limit).hits]


def wait_for_indexing() -> None:
    """Wait until all background indexes are complete."""
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(_DEADLINE)
            assert not thread.is_alive()
