from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.workspace import BlockContent, SessionBudgets, SkillOrigin, Zone
from skillhall._internal.workspace.block_types import BLOCK_TYPES
from skillhall._internal.workspace.export import export_session
from skillhall._internal.workspace.validation import build_content
from tests.support.memory_store import MemoryStore
from tests.support.workspaces import make_workspace

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=40)
NAMES = st.text(st.characters(categories=["L", "N", "S"]), min_size=1, max_size=20)
BUDGETS = st.none() | st.integers(0, 10_000)


@st.composite
def contents(draw: st.DrawFn) -> BlockContent:
    skill = draw(st.none() | st.builds(SkillOrigin, TEXTS, TEXTS, TEXTS, TEXTS))
    kind, zone = draw(st.sampled_from([*BLOCK_TYPES])), draw(st.sampled_from([*Zone]))
    return build_content(kind, zone, draw(TEXTS), skill)


@given(
    NAMES,
    st.builds(SessionBudgets, BUDGETS, BUDGETS, BUDGETS, BUDGETS),
    st.lists(contents(), max_size=6),
)
def test_exported_session_round_trips(
    name: str, budgets: SessionBudgets, block_contents: list[BlockContent]
) -> None:
    workspace = make_workspace(MemoryStore())
    original = workspace.sessions.create(name, budgets, block_contents)
    exported = export_session(workspace.contexts.compile(original.id))
    imported = workspace.importer.create_session(exported.data, exported.name)
    assert (imported.name, imported.budgets) == (original.name, original.budgets)
    assert [block.content for block in workspace.blocks.list(imported.id)] == [
        block.content for block in workspace.blocks.list(original.id)
    ]
    assert export_session(workspace.contexts.compile(imported.id)) == exported
