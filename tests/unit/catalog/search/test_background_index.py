from threading import Event

from skillhall._internal.catalog.catalog import Skill
from skillhall._internal.catalog.search.background_index import Searching, State
from skillhall.errors import SkillFileNotFound
from tests.support.catalogs import make_catalog, make_found, wait_for_bodies

DEADLINE = 120  # seconds; whatever takes longer hangs
CATALOG = make_catalog([make_found("pdf", "Reads files."), make_found("notes", "Takes notes.")])
BODIES = {"pdf": "how tides work", "notes": "nothing of interest"}


def body(skill: Skill) -> str:
    return BODIES[skill.name]


def found(searching: Searching, state: State, text: str) -> list[str]:
    return [skill.name for skill in searching.index(state).find(text)[0]]


def test_bodies_are_found_after_names_and_descriptions() -> None:
    searching, state = Searching(body), State("1", CATALOG)
    searching.prepare(state)
    wait_for_bodies()
    assert found(searching, state, "tides") == ["pdf"]
    assert found(searching, state, "notes of interest") == ["notes"]


def test_until_the_bodies_are_read_names_and_descriptions_answer() -> None:
    may_go_on = Event()

    def slow(skill: Skill) -> str:
        assert may_go_on.wait(DEADLINE)
        return body(skill)

    searching, state = Searching(slow), State("1", CATALOG)
    searching.prepare(state)
    assert found(searching, state, "tides") == []
    assert found(searching, state, "reads") == ["pdf"]
    may_go_on.set()
    wait_for_bodies()
    assert found(searching, state, "tides") == ["pdf"]


def test_what_is_read_for_a_former_state_is_given_up() -> None:
    began, may_go_on, read = Event(), Event(), list[str]()

    def noted(skill: Skill) -> str:
        read.append(skill.name)
        began.set()
        assert may_go_on.wait(DEADLINE)
        return "tides"

    searching, later = Searching(noted), State("2", make_catalog([make_found("late")]))
    searching.prepare(State("1", CATALOG))
    assert began.wait(DEADLINE)
    searching.prepare(later)
    may_go_on.set()
    wait_for_bodies()
    assert read == ["notes", "late"]
    assert found(searching, later, "tides") == ["late"]


def test_the_former_state_does_not_answer_for_the_next_one() -> None:
    searching = Searching(body)
    searching.prepare(State("1", CATALOG))
    wait_for_bodies()
    assert found(searching, State("2", make_catalog([make_found("late")])), "tides") == []


def test_only_so_much_text_is_kept_in_memory() -> None:
    searching, state = Searching(lambda _: "tides", at_most=1), State("1", CATALOG)
    searching.prepare(state)
    wait_for_bodies()
    assert found(searching, state, "tides") == ["notes"]


def test_a_body_that_cannot_be_read_hides_no_other() -> None:
    def failing(skill: Skill) -> str:
        if skill.name == "notes":
            raise SkillFileNotFound("SKILL.md")
        return body(skill)

    searching, state = Searching(failing), State("1", CATALOG)
    searching.prepare(state)
    wait_for_bodies()
    assert found(searching, state, "tides") == ["pdf"]
    assert found(searching, state, "notes") == ["notes"]


def test_every_further_state_is_read_too() -> None:
    searching = Searching(body)
    for revision in ("1", "2"):
        state = State(revision, CATALOG)
        searching.prepare(state)
        wait_for_bodies()
        assert found(searching, state, "tides") == ["pdf"]
