from threading import Event

from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.search.background_index import BackgroundIndex, IndexInput
from skillhall.errors import SkillFileNotFound
from tests.support.catalogs import make_catalog, make_catalog_skill, wait_for_indexing

DEADLINE = 120  # seconds
CATALOG = make_catalog(
    [make_catalog_skill("pdf", "Reads files."), make_catalog_skill("notes", "Takes notes.")]
)
BODIES = {"pdf": "how tides work", "notes": "nothing of interest"}


def read_body(skill: CatalogSkill) -> str:
    return BODIES[skill.name]


def find(index: BackgroundIndex, state: IndexInput, text: str) -> list[str]:
    return [skill.name for skill in index.get_index(state).find(text)[0]]


def test_bodies_are_searched_after_indexing() -> None:
    index, state = BackgroundIndex(read_body), IndexInput("1", CATALOG)
    index.schedule(state)
    wait_for_indexing()
    assert find(index, state, "tides") == ["pdf"]
    assert find(index, state, "notes of interest") == ["notes"]


def test_heads_are_searched_while_bodies_are_read() -> None:
    may_continue = Event()

    def slow(skill: CatalogSkill) -> str:
        assert may_continue.wait(DEADLINE)
        return read_body(skill)

    index, state = BackgroundIndex(slow), IndexInput("1", CATALOG)
    index.schedule(state)
    assert find(index, state, "tides") == []
    assert find(index, state, "reads") == ["pdf"]
    may_continue.set()
    wait_for_indexing()
    assert find(index, state, "tides") == ["pdf"]


def test_indexing_stops_when_a_newer_state_is_pending() -> None:
    started, may_continue, read = Event(), Event(), list[str]()

    def record(skill: CatalogSkill) -> str:
        read.append(skill.name)
        started.set()
        assert may_continue.wait(DEADLINE)
        return "tides"

    index = BackgroundIndex(record)
    later = IndexInput("2", make_catalog([make_catalog_skill("late")]))
    index.schedule(IndexInput("1", CATALOG))
    assert started.wait(DEADLINE)
    index.schedule(later)
    may_continue.set()
    wait_for_indexing()
    assert read == ["notes", "late"]
    assert find(index, later, "tides") == ["late"]


def test_index_of_an_old_revision_is_not_used() -> None:
    index = BackgroundIndex(read_body)
    index.schedule(IndexInput("1", CATALOG))
    wait_for_indexing()
    later = IndexInput("2", make_catalog([make_catalog_skill("late")]))
    assert find(index, later, "tides") == []


def test_total_size_of_bodies_is_limited() -> None:
    index, state = BackgroundIndex(lambda _: "tides", max_chars=1), IndexInput("1", CATALOG)
    index.schedule(state)
    wait_for_indexing()
    assert find(index, state, "tides") == ["notes"]


def test_unreadable_body_does_not_affect_other_skills() -> None:
    def failing(skill: CatalogSkill) -> str:
        if skill.name == "notes":
            raise SkillFileNotFound("SKILL.md")
        return read_body(skill)

    index, state = BackgroundIndex(failing), IndexInput("1", CATALOG)
    index.schedule(state)
    wait_for_indexing()
    assert find(index, state, "tides") == ["pdf"]
    assert find(index, state, "notes") == ["notes"]


def test_later_states_are_indexed() -> None:
    index = BackgroundIndex(read_body)
    for revision in ("1", "2"):
        state = IndexInput(revision, CATALOG)
        index.schedule(state)
        wait_for_indexing()
        assert find(index, state, "tides") == ["pdf"]
