from threading import Event

from skillhall._internal.catalog.catalog import Skill
from skillhall._internal.catalog.search.background_index import BackgroundIndex, IndexInput
from skillhall.errors import SkillFileNotFound
from tests.support.catalogs import make_catalog, make_catalog_skill, wait_for_indexing

DEADLINE = 120  # seconds; whatever takes longer hangs
CATALOG = make_catalog(
    [make_catalog_skill("pdf", "Reads files."), make_catalog_skill("notes", "Takes notes.")]
)
BODIES = {"pdf": "how tides work", "notes": "nothing of interest"}


def body(skill: Skill) -> str:
    return BODIES[skill.name]


def found(searching: BackgroundIndex, state: IndexInput, text: str) -> list[str]:
    return [skill.name for skill in searching.get_index(state).find(text)[0]]


def test_bodies_are_found_after_names_and_descriptions() -> None:
    searching, state = BackgroundIndex(body), IndexInput("1", CATALOG)
    searching.schedule(state)
    wait_for_indexing()
    assert found(searching, state, "tides") == ["pdf"]
    assert found(searching, state, "notes of interest") == ["notes"]


def test_until_the_bodies_are_read_names_and_descriptions_answer() -> None:
    may_go_on = Event()

    def slow(skill: Skill) -> str:
        assert may_go_on.wait(DEADLINE)
        return body(skill)

    searching, state = BackgroundIndex(slow), IndexInput("1", CATALOG)
    searching.schedule(state)
    assert found(searching, state, "tides") == []
    assert found(searching, state, "reads") == ["pdf"]
    may_go_on.set()
    wait_for_indexing()
    assert found(searching, state, "tides") == ["pdf"]


def test_what_is_read_for_a_former_state_is_given_up() -> None:
    began, may_go_on, read = Event(), Event(), list[str]()

    def noted(skill: Skill) -> str:
        read.append(skill.name)
        began.set()
        assert may_go_on.wait(DEADLINE)
        return "tides"

    searching, later = (
        BackgroundIndex(noted),
        IndexInput("2", make_catalog([make_catalog_skill("late")])),
    )
    searching.schedule(IndexInput("1", CATALOG))
    assert began.wait(DEADLINE)
    searching.schedule(later)
    may_go_on.set()
    wait_for_indexing()
    assert read == ["notes", "late"]
    assert found(searching, later, "tides") == ["late"]


def test_the_former_state_does_not_answer_for_the_next_one() -> None:
    searching = BackgroundIndex(body)
    searching.schedule(IndexInput("1", CATALOG))
    wait_for_indexing()
    assert (
        found(searching, IndexInput("2", make_catalog([make_catalog_skill("late")])), "tides") == []
    )


def test_only_so_much_text_is_kept_in_memory() -> None:
    searching, state = BackgroundIndex(lambda _: "tides", max_chars=1), IndexInput("1", CATALOG)
    searching.schedule(state)
    wait_for_indexing()
    assert found(searching, state, "tides") == ["notes"]


def test_a_body_that_cannot_be_read_hides_no_other() -> None:
    def failing(skill: Skill) -> str:
        if skill.name == "notes":
            raise SkillFileNotFound("SKILL.md")
        return body(skill)

    searching, state = BackgroundIndex(failing), IndexInput("1", CATALOG)
    searching.schedule(state)
    wait_for_indexing()
    assert found(searching, state, "tides") == ["pdf"]
    assert found(searching, state, "notes") == ["notes"]


def test_every_further_state_is_read_too() -> None:
    searching = BackgroundIndex(body)
    for revision in ("1", "2"):
        state = IndexInput(revision, CATALOG)
        searching.schedule(state)
        wait_for_indexing()
        assert found(searching, state, "tides") == ["pdf"]
