"""One workspace, the same on every store."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from skillhall._internal.storage.ports import WorkspaceStore, WorkspaceWriter
from skillhall._internal.workspace import BlockContent, SessionBudgets, Zone
from skillhall._internal.workspace.blocks import BlockFilter
from skillhall._internal.workspace.export import export_session
from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
from skillhall._internal.workspace.ordering import MAX_POSITION_LENGTH, BlockPlacement
from skillhall._internal.workspace.templates import ApplyMode
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import (
    BlockMovedError,
    Conflict,
    RecordNotFound,
    SkillNotFound,
    SkillRejected,
    VersionConflict,
)
from tests.support.archives import ZipEntry, make_zip
from tests.support.workspaces import list_texts, make_workspace, skill_md


@pytest.fixture
def workspace(store: WorkspaceStore) -> Workspace:
    return make_workspace(store)


def notes(workspace: Workspace, session: str, *said: str) -> list[str]:
    """Blocks in WORKING, in order; their ids."""
    return [workspace.blocks.add(session, "note", text).id for text in said]


def kinds(workspace: Workspace, session: str) -> list[str]:
    return [event.kind for event in workspace.events(0, session)]


def test_a_session_is_found_as_it_was_made(workspace: Workspace) -> None:
    made = workspace.sessions.create("Research", SessionBudgets(stable=100, total=500))
    assert workspace.sessions.find(made.id) == made
    assert workspace.sessions.list() == [made]
    assert (made.name, made.budgets, made.version) == (
        "Research",
        SessionBudgets(None, 100, None, 500),
        1,
    )


def test_sessions_are_listed_page_by_page(workspace: Workspace) -> None:
    made = [workspace.sessions.create(name) for name in ("a", "b", "c")]
    assert workspace.sessions.list(limit=2) == made[:2]
    assert workspace.sessions.list(after=made[1].id) == made[2:]


def test_a_session_that_was_changed_meanwhile_is_not_changed(workspace: Workspace) -> None:
    made = workspace.sessions.create("one")
    second = workspace.sessions.edit(made.id, made.version, name="two", budgets=None)
    with pytest.raises(VersionConflict) as caught:
        workspace.sessions.edit(made.id, made.version, name="three", budgets=None)
    assert (caught.value.version, caught.value.current) == (second.version, second)
    assert workspace.sessions.find(made.id) == second


def test_a_deleted_session_takes_everything_with_it(workspace: Workspace) -> None:
    made = workspace.sessions.create("one")
    notes(workspace, made.id, "a")
    workspace.snapshots.save(made.id, "s")
    workspace.sessions.delete(made.id, made.version)
    with pytest.raises(RecordNotFound):
        workspace.blocks.list(made.id)
    assert workspace.unit_of_work.store.read(lambda read: read.blocks(made.id)) in ([], ())
    assert kinds(workspace, made.id)[-1] == "session-deleted"


def test_a_copy_has_the_same_blocks_under_other_ids(workspace: Workspace) -> None:
    made = workspace.sessions.create("one", SessionBudgets(total=9))
    notes(workspace, made.id, "a", "b")
    copy = workspace.sessions.duplicate(made.id)
    assert (copy.name, copy.budgets) == ("one (copy)", SessionBudgets(total=9))
    assert list_texts(workspace, copy.id) == ["a", "b"]
    own = {block.id for block in workspace.blocks.list(made.id)}
    assert own.isdisjoint(block.id for block in workspace.blocks.list(copy.id))


def test_a_block_goes_where_its_type_belongs(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    for kind in ("note", "system_prompt", "document"):
        workspace.blocks.add(session, kind, kind)
    assert list_texts(workspace, session) == ["system_prompt", "document", "note"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (BlockPlacement(), ["a", "b", "c", "x"]),
        (BlockPlacement(first=True), ["x", "a", "b", "c"]),
        (BlockPlacement(after="id000003"), ["a", "b", "x", "c"]),
        (BlockPlacement(before="id000003"), ["a", "x", "b", "c"]),
    ],
)
def test_a_block_is_put_where_it_should_stand(
    workspace: Workspace, place: BlockPlacement, expected: list[str]
) -> None:
    session = workspace.sessions.create("one").id
    notes(workspace, session, "a", "b", "c")
    workspace.blocks.add(session, "note", "x", placement=place)
    assert list_texts(workspace, session) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (BlockPlacement(), ["b", "c", "a"]),
        (BlockPlacement(first=True), ["a", "b", "c"]),
        (BlockPlacement(after="id000003"), ["b", "a", "c"]),
        (BlockPlacement(before="id000004"), ["b", "a", "c"]),
        (BlockPlacement(after="id000004"), ["b", "c", "a"]),
    ],
)
def test_a_block_is_moved_within_its_zone(
    workspace: Workspace, place: BlockPlacement, expected: list[str]
) -> None:
    session = workspace.sessions.create("one").id
    first, *_ = notes(workspace, session, "a", "b", "c")
    version = workspace.blocks.find(session, first).version
    moved = workspace.blocks.move(session, first, version, None, place)
    assert list_texts(workspace, session) == expected
    assert moved == workspace.blocks.find(session, first)
    assert moved.version > version


def test_a_block_is_moved_into_another_zone(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    first, second = notes(workspace, session, "a", "b")
    version = workspace.blocks.find(session, second).version
    workspace.blocks.move(session, second, version, Zone.PERMANENT)
    assert list_texts(workspace, session) == ["b", "a"]
    with pytest.raises(BlockMovedError):
        workspace.blocks.add(session, "note", "c", placement=BlockPlacement(after=second))
    assert list_texts(workspace, session) == ["b", "a"]
    assert workspace.blocks.find(session, first).zone is Zone.WORKING


def test_a_block_that_was_changed_meanwhile_is_not_changed(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    [one] = notes(workspace, session, "a")
    old = workspace.blocks.find(session, one)
    new = workspace.blocks.edit(session, one, old.version, text="b")
    changes: list[Callable[[], object]] = [
        lambda: workspace.blocks.edit(session, one, old.version, text="c"),
        lambda: workspace.blocks.move(session, one, old.version, Zone.STABLE),
        lambda: workspace.blocks.delete(session, one, old.version),
    ]
    for change in changes:
        with pytest.raises(VersionConflict) as caught:
            change()
        assert caught.value.current == new
    assert workspace.blocks.find(session, one) == new


def test_an_edit_changes_what_a_block_says_and_counts_its_tokens(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    [one] = notes(workspace, session, "a")
    block = workspace.blocks.find(session, one)
    edited = workspace.blocks.edit(session, one, block.version, text="word " * 100, kind="code")
    assert edited.content.type == "code"
    assert edited.content.tokens > 50
    assert (
        workspace.sessions.overview(session).zone_sizes[Zone.WORKING].tokens
        == edited.content.tokens
    )


def test_a_deleted_block_comes_back_where_it_was(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    _, second, _ = notes(workspace, session, "a", "b", "c")
    workspace.blocks.delete(session, second, workspace.blocks.find(session, second).version)
    assert list_texts(workspace, session) == ["a", "c"]
    with pytest.raises(RecordNotFound):
        workspace.blocks.find(session, second)
    assert [block.id for block in workspace.blocks.list_deleted(session)] == [second]
    workspace.blocks.restore(session, second)
    assert list_texts(workspace, session) == ["a", "b", "c"]
    with pytest.raises(RecordNotFound):
        workspace.blocks.restore(session, second)


def test_a_deleted_block_comes_back_beside_the_one_that_took_its_place(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create("one").id
    first, second, _ = notes(workspace, session, "a", "b", "c")
    workspace.blocks.delete(session, second, workspace.blocks.find(session, second).version)
    taken = workspace.blocks.add(session, "note", "x", placement=BlockPlacement(after=first))
    old = workspace.unit_of_work.store.read(lambda read: read.block(session, second))
    assert old is not None
    clashing = replace(workspace.blocks.find(session, taken.id), position=old.position)
    workspace.unit_of_work.store.write(lambda write: write.save_block(clashing))
    workspace.blocks.restore(session, second)
    assert list_texts(workspace, session) == ["a", "x", "b", "c"]


def test_only_the_last_deleted_blocks_are_kept(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    made = notes(workspace, session, "a", "b", "c", "d")
    for one in made[:3]:
        workspace.blocks.delete(session, one, workspace.blocks.find(session, one).version)
    workspace.unit_of_work.store.write(lambda write: write.prune_deleted_blocks(session, 2))
    assert [block.id for block in workspace.blocks.list_deleted(session)] == [made[2], made[1]]
    assert list_texts(workspace, session) == ["d"]


def test_blocks_of_another_session_are_not_there(workspace: Workspace) -> None:
    mine, theirs = (workspace.sessions.create(name).id for name in ("mine", "theirs"))
    [foreign] = notes(workspace, theirs, "a")
    saved = workspace.snapshots.save(theirs, "s")
    with pytest.raises(RecordNotFound):
        workspace.blocks.edit(mine, foreign, 2, text="b")
    with pytest.raises(BlockMovedError):
        workspace.blocks.add(mine, "note", "c", placement=BlockPlacement(after=foreign))
    with pytest.raises(RecordNotFound):
        workspace.snapshots.restore(mine, saved.id)
    assert list_texts(workspace, mine) == []
    assert list_texts(workspace, theirs) == ["a"]


def test_a_crowded_place_gets_more_room_and_keeps_its_order(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    first, _ = notes(workspace, session, "first", "last")
    for number in range(130):
        workspace.blocks.add(session, "note", str(number), placement=BlockPlacement(after=first))
    blocks = workspace.blocks.list(session)
    assert [block.content.text for block in blocks] == [
        "first",
        *map(str, range(129, -1, -1)),
        "last",
    ]
    assert max(len(block.position) for block in blocks) <= MAX_POSITION_LENGTH


def test_blocks_are_found_by_type_zone_and_text(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    workspace.blocks.add(session, "note", "100% GRÜN")
    workspace.blocks.add(session, "code", "grün_", Zone.STABLE)
    wanted = [
        (BlockFilter(type="code"), ["grün_"]),
        (BlockFilter(zone=Zone.WORKING), ["100% GRÜN"]),
        (BlockFilter(text="Grün"), ["grün_", "100% GRÜN"]),
        (BlockFilter(text="0%"), ["100% GRÜN"]),
        (BlockFilter(text="n_"), ["grün_"]),
    ]
    for one, expected in wanted:
        found = workspace.blocks.list(session, one)
        assert [block.content.text for block in found] == expected


def test_a_skill_becomes_a_block_with_its_origin(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    done = workspace.importer.import_upload(session, skill_md("pdf", "# Steps"), "pdf.md")
    [block] = done.blocks
    assert (block.content.type, block.zone, block.content.text) == ("skill", Zone.STABLE, "# Steps")
    skill = block.content.skill
    assert skill is not None
    assert (skill.name, skill.description) == ("pdf", "Does one thing.")
    assert (skill.source_type, skill.source_ref) == ("upload", "pdf.md")
    assert workspace.blocks.list(session) == [block]


def test_a_skill_of_the_same_name_replaces_the_block_where_it_stands(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create("one").id
    imports = workspace.importer
    [old] = imports.import_upload(session, skill_md("pdf", "old"), "pdf.md").blocks
    imports.import_upload(session, skill_md("other", "other"), "o.md")
    workspace.blocks.move(session, old.id, old.version, Zone.PERMANENT)
    with pytest.raises(Conflict):
        imports.import_upload(session, skill_md("pdf", "new"), "pdf.md")
    assert list_texts(workspace, session) == ["old", "other"]
    wish = ImportOptions(on_conflict=ImportConflict.REPLACE)
    done = imports.import_upload(session, skill_md("pdf", "new"), "pdf.md", wish)
    assert done.replaced == ("pdf",)
    assert [block.id for block in done.blocks] == [old.id]
    assert list_texts(workspace, session) == ["new", "other"]
    imports.import_upload(
        session, skill_md("pdf", "2nd"), "pdf.md", ImportOptions(on_conflict=ImportConflict.KEEP)
    )
    assert list_texts(workspace, session) == ["new", "other", "2nd"]


def test_skills_of_an_archive_are_chosen_by_name(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    data = make_zip(*(ZipEntry(f"{name}/SKILL.md", skill_md(name, name)) for name in "abc"))
    found = workspace.importer.list_upload_candidates(data, "skills.zip")
    assert [(one.id, one.name, one.reasons) for one in found] == [
        (name, name, []) for name in ("a", "b", "c")
    ]
    with pytest.raises(SkillNotFound):
        workspace.importer.import_upload(session, data, "s.zip", ImportOptions(names=("a", "z")))
    workspace.importer.import_upload(session, data, "s.zip", ImportOptions(names=("c", "a")))
    assert list_texts(workspace, session) == ["a", "c"]


def test_one_broken_skill_does_not_spoil_the_others(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    data = make_zip(ZipEntry("a/SKILL.md", skill_md("a", "a")), ZipEntry("b/SKILL.md", b"no"))
    done = workspace.importer.import_upload(session, data, "s.zip")
    assert list_texts(workspace, session) == ["a"]
    assert [one.reasons for one in done.skipped] == [["Not a valid SKILL.md: missing frontmatter"]]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text", "Not a valid SKILL.md: missing frontmatter"),
        (
            b"---\ndescription: d\n---\nx",
            "Not a valid SKILL.md: missing required 'name' field",
        ),
    ],
)
def test_what_is_no_skill_changes_nothing(workspace: Workspace, data: bytes, reason: str) -> None:
    session = workspace.sessions.create("one").id
    before = workspace.sessions.find(session)
    with pytest.raises(SkillRejected) as caught:
        workspace.importer.import_upload(session, data, "x.md")
    assert caught.value.reasons == (reason,)
    assert workspace.sessions.find(session) == before


def test_a_template_keeps_blocks_and_starts_sessions(workspace: Workspace) -> None:
    session = workspace.sessions.create("one", SessionBudgets(total=7)).id
    workspace.importer.import_upload(session, skill_md("pdf", "skill"), "pdf.md")
    notes(workspace, session, "a", "b")
    template = workspace.templates.save(session, "Start", "for research")
    again = workspace.templates.create_session("Start", "two")
    assert again.budgets == SessionBudgets(total=7)
    assert [b.content for b in workspace.blocks.list(again.id)] == [
        b.content for b in workspace.blocks.list(session)
    ]
    assert workspace.templates.list() == [template]
    with pytest.raises(Conflict):
        workspace.templates.save(session, "Start")


def test_a_template_is_appended_or_replaces(workspace: Workspace) -> None:
    first = workspace.sessions.create("one").id
    notes(workspace, first, "a", "b")
    template = workspace.templates.save(first, "T")
    second = workspace.sessions.create("two").id
    notes(workspace, second, "x")
    done = workspace.templates.apply(second, template.id, ApplyMode.APPEND)
    assert (done.block_count, done.before) == (2, None)
    assert list_texts(workspace, second) == ["x", "a", "b"]
    done = workspace.templates.apply(second, template.id, ApplyMode.REPLACE)
    assert list_texts(workspace, second) == ["a", "b"]
    assert done.before is not None
    workspace.snapshots.restore(second, done.before.id)
    assert list_texts(workspace, second) == ["x", "a", "b"]


def test_a_template_is_updated_only_against_its_version(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    template = workspace.templates.save(session, "T")
    notes(workspace, session, "a")
    newer = workspace.templates.edit(template.id, template.version, name="U", session=session)
    with pytest.raises(VersionConflict):
        workspace.templates.edit(template.id, template.version, name="V")
    with pytest.raises(VersionConflict):
        workspace.templates.delete(template.id, template.version)
    found = workspace.templates.find(template.id)
    assert found.template == newer
    assert [content.text for content in found.contents] == ["a"]
    workspace.templates.delete(template.id, newer.version)
    assert workspace.templates.list() == []


def test_two_templates_never_have_one_name(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    workspace.templates.save(session, "T")
    other = workspace.templates.save(session, "U")
    with pytest.raises(Conflict):
        workspace.templates.edit(other.id, other.version, name="T")
    taken = replace(other, name="T")

    def straight(write: WorkspaceWriter) -> None:
        write.save_template(taken, None)

    with pytest.raises(Conflict):
        workspace.unit_of_work.store.write(straight)
    assert [one.name for one in workspace.templates.list()] == ["T", "U"]


def test_a_restored_session_is_as_it_was_and_can_be_undone(workspace: Workspace) -> None:
    session = workspace.sessions.create("one", SessionBudgets(total=1)).id
    first, _ = notes(workspace, session, "a", "b")
    saved = workspace.snapshots.save(session, "s")
    was = workspace.blocks.find(session, first)
    edited = workspace.blocks.edit(session, first, was.version, text="changed")
    version = workspace.sessions.find(session).version
    workspace.sessions.edit(session, version, name=None, budgets=SessionBudgets(total=2))
    done = workspace.snapshots.restore(session, saved.id)
    assert list_texts(workspace, session) == ["a", "b"]
    assert workspace.sessions.find(session).budgets == SessionBudgets(total=1)
    back = workspace.blocks.find(session, first)
    assert back.version > edited.version, "an old version must not be taken for the new one"
    workspace.snapshots.restore(session, done.before.id)
    assert list_texts(workspace, session) == ["changed", "b"]


def test_a_restore_may_ask_that_nothing_has_changed(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    saved = workspace.snapshots.save(session, "s")
    revision = workspace.sessions.find(session).revision
    notes(workspace, session, "new")
    with pytest.raises(VersionConflict):
        workspace.snapshots.restore(session, saved.id, revision)
    assert list_texts(workspace, session) == ["new"]
    workspace.snapshots.restore(session, saved.id, revision + 1)
    assert list_texts(workspace, session) == []


def test_snapshots_of_ours_make_room_but_those_of_a_person_stay(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    saved = workspace.snapshots.save(session, "mine")
    made = [workspace.snapshots.restore(session, saved.id).before for _ in range(4)]
    spared = made[0].id
    workspace.unit_of_work.store.write(
        lambda write: write.prune_automatic_snapshots(session, 2, spared)
    )
    left = [one.id for one in workspace.snapshots.list(session)]
    assert left == [made[3].id, made[2].id, spared, saved.id]
    workspace.snapshots.delete(session, saved.id)
    assert saved not in workspace.snapshots.list(session)


def test_the_context_reads_the_zones_in_order_and_counts_against_budgets(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create("one", SessionBudgets(working=1, total=10_000)).id
    workspace.blocks.add(session, "note", "work " * 20)
    workspace.blocks.add(session, "guideline", "rules\n")
    workspace.blocks.add(session, "note", " \n")
    context = workspace.contexts.compile(session)
    assert context.text == "rules\n\n" + "work " * 20 + "\n"
    assert [zone.zone for zone in context.zones] == [*Zone]
    assert [zone.spending.is_over for zone in context.zones] == [False, False, True]
    assert context.total.tokens == sum(zone.spending.tokens for zone in context.zones)
    assert not context.total.is_over


def test_an_exported_session_comes_back_with_equal_blocks_and_bytes(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create("My Research: 1", SessionBudgets(stable=5)).id
    workspace.importer.import_upload(session, skill_md("pdf", "# Steps"), "pdf.md")
    notes(workspace, session, "  spaces \r\n", "é\t🙂\x1b", "", '---\nname: "x"\n---')
    out = export_session(workspace.contexts.compile(session))
    assert out.name == "my-research-1.zip"
    again = workspace.importer.create_session(out.data, out.name)
    assert (again.name, again.budgets) == ("My Research: 1", SessionBudgets(stable=5))

    def contents(of: str) -> list[BlockContent]:
        return [block.content for block in workspace.blocks.list(of)]

    assert contents(again.id) == contents(session)
    assert export_session(workspace.contexts.compile(again.id)) == out
    other = workspace.sessions.create("other").id
    workspace.importer.import_upload(other, out.data, out.name)
    assert contents(other) == contents(session)


def test_every_change_is_one_event_or_more_in_order(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    first, second = notes(workspace, session, "a", "b")
    version = workspace.blocks.find(session, second).version
    workspace.blocks.move(session, second, version, None, BlockPlacement(first=True))
    with pytest.raises(VersionConflict):
        workspace.blocks.delete(session, second, version)
    events = workspace.events(0, session)
    assert [event.kind for event in events] == [
        "session-created",
        "block-added",
        "block-added",
        "block-moved",
    ]
    assert [event.revision for event in events] == [1, 2, 3, 4]
    assert dict(events[2].data) == {"zone": "WORKING", "after": first}
    assert dict(events[3].data) == {"zone": "WORKING", "after": ""}
    assert workspace.event_range() == (events[0].seq, events[-1].seq)
    assert workspace.events(events[1].seq, session) == events[2:]


def test_work_that_fails_leaves_nothing_behind(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    notes(workspace, session, "a")
    before = workspace.contexts.compile(session), workspace.event_range()

    def half(write: WorkspaceWriter) -> None:
        write.delete_blocks(session)
        raise KeyError(session)

    with pytest.raises(KeyError):
        workspace.unit_of_work.store.write(half)
    assert (workspace.contexts.compile(session), workspace.event_range()) == before
