from threading import Event

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.search.background_index import BackgroundIndex, IndexInput
from skillhall.errors import SkillFileNotFound
from tests.support.catalogs import make_catalog, make_catalog_skill, wait_for_indexing

DEADLINE = 120  # seconds
CATALOG = make_catalog(
    [make_catalog_skill("pdf", "Reads files."), make_catalog_skill("notes", "Takes notes.")]
)
TEXTS = {"pdf": b"how tides work", "notes": b"nothing of interest"}


def read_text(skill: CatalogSkill) -> bytes:
    return TEXTS[skill.name]


def find(index: BackgroundIndex, state: IndexInput, text: str) -> list[str]:
    return [skill.name for skill, *_ in index.get_index(state).find(text)[0]]


def test_texts_of_few_skills_are_read_at_once() -> None:
    assert find(BackgroundIndex(None, read_text), IndexInput("1", CATALOG), "tides") == ["pdf"]


def test_texts_are_searched_after_indexing() -> None:
    index, state = BackgroundIndex(None, read_text, 0), IndexInput("1", CATALOG)
    index.schedule(state)
    wait_for_indexing()
    assert find(index, state, "tides") == ["pdf"]


def test_heads_are_searched_while_texts_are_read() -> None:
    may_continue = Event()

    def slow(skill: CatalogSkill) -> bytes:
        assert may_continue.wait(DEADLINE)
        return read_text(skill)

    index, state = BackgroundIndex(None, slow, 0), IndexInput("1", CATALOG)
    index.schedule(state)
    assert find(index, state, "tides") == []
    assert find(index, state, "takes") == ["notes"]
    may_continue.set()
    wait_for_indexing()
    assert find(index, state, "tides") == ["pdf"]


def test_text_of_a_skill_that_changed_while_it_was_read_is_not_used() -> None:
    started, may_continue = Event(), Event()

    def read(skill: CatalogSkill) -> bytes:
        started.set()
        assert may_continue.wait(DEADLINE)
        return b"tides" if skill.description == "Old." else b"moon"

    index = BackgroundIndex(None, read, 0)
    index.schedule(IndexInput("1", make_catalog([make_catalog_skill("a", "Old.")])))
    assert started.wait(DEADLINE)
    later = IndexInput("2", make_catalog([make_catalog_skill("a", "New.")]))
    index.get_index(later)
    may_continue.set()
    wait_for_indexing()
    assert find(index, later, "tides") == []
    assert find(index, later, "moon") == ["a"]


def test_skills_of_an_old_revision_are_not_found() -> None:
    index = BackgroundIndex(None, read_text, 0)
    index.schedule(IndexInput("1", CATALOG))
    wait_for_indexing()
    later = IndexInput("2", make_catalog([CATALOG.skills[1]]))
    assert find(index, later, "tides") == []
    assert find(index, later, "interest") == ["notes"]


def test_only_texts_of_new_skills_are_read() -> None:
    read = []

    def record(skill: CatalogSkill) -> bytes:
        read.append(skill.name)
        return b"tides"

    index = BackgroundIndex(None, record)
    index.get_index(IndexInput("1", CATALOG))
    new = make_catalog_skill("late")
    index.get_index(IndexInput("2", make_catalog([*CATALOG, new])))
    assert sorted(read) == ["late", "notes", "pdf"]


def test_unreadable_text_does_not_affect_other_skills() -> None:
    def failing(skill: CatalogSkill) -> bytes:
        if skill.name == "notes":
            raise SkillFileNotFound("SKILL.md")
        return read_text(skill)

    index, state = BackgroundIndex(None, failing), IndexInput("1", CATALOG)
    assert find(index, state, "tides") == ["pdf"]
    assert find(index, state, "notes") == ["notes"]


def test_closed_index_stops_its_thread() -> None:
    index = BackgroundIndex(None, read_text, 0)
    index.schedule(IndexInput("1", CATALOG))
    index.close()
    index.close()
    wait_for_indexing()
