"""Contract of the workspace, run on every store."""

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
from tests.support.workspaces import import_upload, list_texts, make_workspace, skill_md


@pytest.fixture
def workspace(store: WorkspaceStore) -> Workspace:
    return make_workspace(store)


def notes(workspace: Workspace, session: str, *texts: str) -> list[str]:
    """Add notes to WORKING and return their ids."""
    return [workspace.blocks.add(session, "note", text).id for text in texts]


def event_kinds(workspace: Workspace, session: str) -> list[str]:
    return [event.kind for event in workspace.events(0, session)]


def test_created_session_is_found(workspace: Workspace) -> None:
    session = workspace.sessions.create("Research", SessionBudgets(stable=100, total=500))
    assert workspace.sessions.find(session.id) == session
    assert workspace.sessions.list() == [session]
    assert (session.name, session.budgets, session.version) == (
        "Research",
        SessionBudgets(None, 100, None, 500),
        1,
    )


def test_sessions_are_listed_in_pages(workspace: Workspace) -> None:
    sessions = [workspace.sessions.create(name) for name in ("a", "b", "c")]
    assert workspace.sessions.list(limit=2) == sessions[:2]
    assert workspace.sessions.list(after=sessions[1].id) == sessions[2:]


def test_edit_of_an_outdated_session_is_rejected(workspace: Workspace) -> None:
    session = workspace.sessions.create("one")
    second = workspace.sessions.edit(session.id, session.version, name="two", budgets=None)
    with pytest.raises(VersionConflict) as caught:
        workspace.sessions.edit(session.id, session.version, name="three", budgets=None)
    assert (caught.value.version, caught.value.current) == (second.version, second)
    assert workspace.sessions.find(session.id) == second


def test_deleting_a_session_deletes_its_blocks_and_snapshots(workspace: Workspace) -> None:
    session = workspace.sessions.create("one")
    notes(workspace, session.id, "a")
    workspace.snapshots.save(session.id, "s")
    workspace.sessions.delete(session.id, session.version)
    with pytest.raises(RecordNotFound):
        workspace.blocks.list(session.id)
    assert workspace.unit_of_work.store.read(lambda read: read.blocks(session.id)) in ([], ())
    assert event_kinds(workspace, session.id)[-1] == "session-deleted"


def test_copied_session_has_equal_blocks_with_new_ids(workspace: Workspace) -> None:
    session = workspace.sessions.create("one", SessionBudgets(total=9))
    notes(workspace, session.id, "a", "b")
    copy = workspace.sessions.duplicate(session.id)
    assert (copy.name, copy.budgets) == ("one (copy)", SessionBudgets(total=9))
    assert list_texts(workspace, copy.id) == ["a", "b"]
    own = {block.id for block in workspace.blocks.list(session.id)}
    assert own.isdisjoint(block.id for block in workspace.blocks.list(copy.id))


def test_new_block_goes_to_the_zone_of_its_type(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    for kind in ("note", "system_prompt", "document"):
        workspace.blocks.add(session, kind, kind)
    assert list_texts(workspace, session) == ["system_prompt", "document", "note"]


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (BlockPlacement(), ["a", "b", "c", "x"]),
        (BlockPlacement(first=True), ["x", "a", "b", "c"]),
        (BlockPlacement(after="id000003"), ["a", "b", "x", "c"]),
        (BlockPlacement(before="id000003"), ["a", "x", "b", "c"]),
    ],
)
def test_new_block_is_placed_as_requested(
    workspace: Workspace, placement: BlockPlacement, expected: list[str]
) -> None:
    session = workspace.sessions.create("one").id
    notes(workspace, session, "a", "b", "c")
    workspace.blocks.add(session, "note", "x", placement=placement)
    assert list_texts(workspace, session) == expected


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (BlockPlacement(), ["b", "c", "a"]),
        (BlockPlacement(first=True), ["a", "b", "c"]),
        (BlockPlacement(after="id000003"), ["b", "a", "c"]),
        (BlockPlacement(before="id000004"), ["b", "a", "c"]),
        (BlockPlacement(after="id000004"), ["b", "c", "a"]),
    ],
)
def test_block_is_moved_within_its_zone(
    workspace: Workspace, placement: BlockPlacement, expected: list[str]
) -> None:
    session = workspace.sessions.create("one").id
    first, *_ = notes(workspace, session, "a", "b", "c")
    version = workspace.blocks.find(session, first).version
    moved = workspace.blocks.move(session, first, version, None, placement)
    assert list_texts(workspace, session) == expected
    assert moved == workspace.blocks.find(session, first)
    assert moved.version > version


def test_block_is_moved_to_another_zone(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    first, second = notes(workspace, session, "a", "b")
    version = workspace.blocks.find(session, second).version
    workspace.blocks.move(session, second, version, Zone.PERMANENT)
    assert list_texts(workspace, session) == ["b", "a"]
    with pytest.raises(BlockMovedError):
        workspace.blocks.add(session, "note", "c", placement=BlockPlacement(after=second))
    assert list_texts(workspace, session) == ["b", "a"]
    assert workspace.blocks.find(session, first).zone is Zone.WORKING


def test_change_of_an_outdated_block_is_rejected(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    [note] = notes(workspace, session, "a")
    old = workspace.blocks.find(session, note)
    new = workspace.blocks.edit(session, note, old.version, text="b")
    changes: list[Callable[[], object]] = [
        lambda: workspace.blocks.edit(session, note, old.version, text="c"),
        lambda: workspace.blocks.move(session, note, old.version, Zone.STABLE),
        lambda: workspace.blocks.delete(session, note, old.version),
    ]
    for change in changes:
        with pytest.raises(VersionConflict) as caught:
            change()
        assert caught.value.current == new
    assert workspace.blocks.find(session, note) == new


def test_editing_a_block_updates_its_tokens(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    [note] = notes(workspace, session, "a")
    block = workspace.blocks.find(session, note)
    edited = workspace.blocks.edit(session, note, block.version, text="word " * 100, kind="code")
    assert edited.content.type == "code"
    assert edited.content.tokens > 50
    assert (
        workspace.sessions.overview(session).zone_sizes[Zone.WORKING].tokens
        == edited.content.tokens
    )


def test_deleted_block_is_restored_to_its_position(workspace: Workspace) -> None:
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


def test_deleted_block_is_restored_after_one_at_its_position(
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


def test_only_the_last_deleted_blocks_can_be_restored(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    ids = notes(workspace, session, "a", "b", "c", "d")
    for block_id in ids[:3]:
        workspace.blocks.delete(session, block_id, workspace.blocks.find(session, block_id).version)
    workspace.unit_of_work.store.write(lambda write: write.prune_deleted_blocks(session, 2))
    assert [block.id for block in workspace.blocks.list_deleted(session)] == [ids[2], ids[1]]
    assert list_texts(workspace, session) == ["d"]


def test_records_of_another_session_are_not_found(workspace: Workspace) -> None:
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


def test_many_inserts_at_one_place_keep_order_and_short_positions(workspace: Workspace) -> None:
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


def test_blocks_are_filtered_by_type_zone_and_text(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    workspace.blocks.add(session, "note", "100% GRÜN")
    workspace.blocks.add(session, "code", "grün_", Zone.STABLE)
    cases = [
        (BlockFilter(type="code"), ["grün_"]),
        (BlockFilter(zone=Zone.WORKING), ["100% GRÜN"]),
        (BlockFilter(text="Grün"), ["grün_", "100% GRÜN"]),
        (BlockFilter(text="0%"), ["100% GRÜN"]),
        (BlockFilter(text="n_"), ["grün_"]),
    ]
    for block_filter, expected in cases:
        found = workspace.blocks.list(session, block_filter)
        assert [block.content.text for block in found] == expected


def test_imported_skill_becomes_a_block_with_its_origin(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    result = import_upload(workspace.importer, session, skill_md("pdf", "# Steps"), "pdf.md")
    [block] = result.blocks
    assert (block.content.type, block.zone, block.content.text) == ("skill", Zone.STABLE, "# Steps")
    skill = block.content.skill
    assert skill is not None
    assert (skill.name, skill.description) == ("pdf", "Does one thing.")
    assert (skill.source_type, skill.source_ref) == ("upload", "pdf.md")
    assert workspace.blocks.list(session) == [block]


def test_skill_of_the_same_name_replaces_the_block_in_place(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create("one").id
    importer = workspace.importer
    [old] = import_upload(importer, session, skill_md("pdf", "old"), "pdf.md").blocks
    import_upload(importer, session, skill_md("other", "other"), "o.md")
    workspace.blocks.move(session, old.id, old.version, Zone.PERMANENT)
    with pytest.raises(Conflict):
        import_upload(importer, session, skill_md("pdf", "new"), "pdf.md")
    assert list_texts(workspace, session) == ["old", "other"]
    options = ImportOptions(on_conflict=ImportConflict.REPLACE)
    result = import_upload(importer, session, skill_md("pdf", "new"), "pdf.md", options)
    assert result.replaced == ("pdf",)
    assert [block.id for block in result.blocks] == [old.id]
    assert list_texts(workspace, session) == ["new", "other"]
    import_upload(
        importer,
        session,
        skill_md("pdf", "2nd"),
        "pdf.md",
        ImportOptions(on_conflict=ImportConflict.KEEP),
    )
    assert list_texts(workspace, session) == ["new", "other", "2nd"]


def test_skills_of_an_archive_are_selected_by_name(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    data = make_zip(*(ZipEntry(f"{name}/SKILL.md", skill_md(name, name)) for name in "abc"))
    candidates = workspace.importer.read_upload(data, "skills.zip").candidates
    assert [(candidate.id, candidate.name, candidate.reasons) for candidate in candidates] == [
        (name, name, []) for name in ("a", "b", "c")
    ]
    with pytest.raises(SkillNotFound):
        import_upload(workspace.importer, session, data, "s.zip", ImportOptions(names=("a", "z")))
    import_upload(workspace.importer, session, data, "s.zip", ImportOptions(names=("c", "a")))
    assert list_texts(workspace, session) == ["a", "c"]


def test_broken_skill_is_skipped_and_others_are_imported(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    data = make_zip(ZipEntry("a/SKILL.md", skill_md("a", "a")), ZipEntry("b/SKILL.md", b"no"))
    result = import_upload(workspace.importer, session, data, "s.zip")
    assert list_texts(workspace, session) == ["a"]
    assert [skipped.reasons for skipped in result.skipped] == [
        ["Not a valid SKILL.md: missing frontmatter"]
    ]


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
def test_importing_an_invalid_skill_changes_nothing(
    workspace: Workspace, data: bytes, reason: str
) -> None:
    session = workspace.sessions.create("one").id
    before = workspace.sessions.find(session)
    with pytest.raises(SkillRejected) as caught:
        import_upload(workspace.importer, session, data, "x.md")
    assert caught.value.reasons == (reason,)
    assert workspace.sessions.find(session) == before


def test_session_from_a_template_has_equal_blocks(workspace: Workspace) -> None:
    session = workspace.sessions.create("one", SessionBudgets(total=7)).id
    import_upload(workspace.importer, session, skill_md("pdf", "skill"), "pdf.md")
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


def test_applying_a_template_appends_or_replaces(workspace: Workspace) -> None:
    first = workspace.sessions.create("one").id
    notes(workspace, first, "a", "b")
    template = workspace.templates.save(first, "T")
    second = workspace.sessions.create("two").id
    notes(workspace, second, "x")
    result = workspace.templates.apply(second, template.id, ApplyMode.APPEND)
    assert (result.block_count, result.before) == (2, None)
    assert list_texts(workspace, second) == ["x", "a", "b"]
    result = workspace.templates.apply(second, template.id, ApplyMode.REPLACE)
    assert list_texts(workspace, second) == ["a", "b"]
    assert result.before is not None
    workspace.snapshots.restore(second, result.before.id)
    assert list_texts(workspace, second) == ["x", "a", "b"]


def test_change_of_an_outdated_template_is_rejected(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    template = workspace.templates.save(session, "T")
    notes(workspace, session, "a")
    newer = workspace.templates.edit(template.id, template.version, name="U", session=session)
    with pytest.raises(VersionConflict):
        workspace.templates.edit(template.id, template.version, name="V")
    with pytest.raises(VersionConflict):
        workspace.templates.delete(template.id, template.version)
    detail = workspace.templates.find(template.id)
    assert detail.template == newer
    assert [content.text for content in detail.contents] == ["a"]
    workspace.templates.delete(template.id, newer.version)
    assert workspace.templates.list() == []


def test_template_names_are_unique(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    workspace.templates.save(session, "T")
    other = workspace.templates.save(session, "U")
    with pytest.raises(Conflict):
        workspace.templates.edit(other.id, other.version, name="T")
    taken = replace(other, name="T")

    def save_directly(write: WorkspaceWriter) -> None:
        write.save_template(taken, None)

    with pytest.raises(Conflict):
        workspace.unit_of_work.store.write(save_directly)
    assert [one.name for one in workspace.templates.list()] == ["T", "U"]


def test_restoring_a_snapshot_can_be_undone(workspace: Workspace) -> None:
    session = workspace.sessions.create("one", SessionBudgets(total=1)).id
    first, _ = notes(workspace, session, "a", "b")
    saved = workspace.snapshots.save(session, "s")
    original = workspace.blocks.find(session, first)
    edited = workspace.blocks.edit(session, first, original.version, text="changed")
    version = workspace.sessions.find(session).version
    workspace.sessions.edit(session, version, name=None, budgets=SessionBudgets(total=2))
    result = workspace.snapshots.restore(session, saved.id)
    assert list_texts(workspace, session) == ["a", "b"]
    assert workspace.sessions.find(session).budgets == SessionBudgets(total=1)
    restored = workspace.blocks.find(session, first)
    assert restored.version > edited.version, "an old version must not be taken for the new one"
    workspace.snapshots.restore(session, result.before.id)
    assert list_texts(workspace, session) == ["changed", "b"]


def test_restore_with_an_outdated_revision_is_rejected(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    saved = workspace.snapshots.save(session, "s")
    revision = workspace.sessions.find(session).revision
    notes(workspace, session, "new")
    with pytest.raises(VersionConflict):
        workspace.snapshots.restore(session, saved.id, revision)
    assert list_texts(workspace, session) == ["new"]
    workspace.snapshots.restore(session, saved.id, revision + 1)
    assert list_texts(workspace, session) == []


def test_pruning_deletes_only_automatic_snapshots(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    saved = workspace.snapshots.save(session, "mine")
    automatic = [workspace.snapshots.restore(session, saved.id).before for _ in range(4)]
    kept_id = automatic[0].id
    workspace.unit_of_work.store.write(
        lambda write: write.prune_automatic_snapshots(session, 2, kept_id)
    )
    remaining = [snapshot.id for snapshot in workspace.snapshots.list(session)]
    assert remaining == [automatic[3].id, automatic[2].id, kept_id, saved.id]
    workspace.snapshots.delete(session, saved.id)
    assert saved not in workspace.snapshots.list(session)


def test_context_orders_zones_and_checks_budgets(
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


def test_exported_session_is_imported_with_equal_blocks_and_bytes(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create("My Research: 1", SessionBudgets(stable=5)).id
    import_upload(workspace.importer, session, skill_md("pdf", "# Steps"), "pdf.md")
    notes(workspace, session, "  spaces \r\n", "é\t🙂\x1b", "", '---\nname: "x"\n---')
    out = export_session(workspace.contexts.compile(session))
    assert out.name == "my-research-1.zip"
    again = workspace.importer.create_session(out.data, out.name)
    assert (again.name, again.budgets) == ("My Research: 1", SessionBudgets(stable=5))

    def contents(session_id: str) -> list[BlockContent]:
        return [block.content for block in workspace.blocks.list(session_id)]

    assert contents(again.id) == contents(session)
    assert export_session(workspace.contexts.compile(again.id)) == out
    other = workspace.sessions.create("other").id
    import_upload(workspace.importer, other, out.data, out.name)
    assert contents(other) == contents(session)


def test_every_change_records_events_in_order(workspace: Workspace) -> None:
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


def test_failed_transaction_changes_nothing(workspace: Workspace) -> None:
    session = workspace.sessions.create("one").id
    notes(workspace, session, "a")
    before = workspace.contexts.compile(session), workspace.event_range()

    def fail_halfway(write: WorkspaceWriter) -> None:
        write.delete_blocks(session)
        raise KeyError(session)

    with pytest.raises(KeyError):
        workspace.unit_of_work.store.write(fail_halfway)
    assert (workspace.contexts.compile(session), workspace.event_range()) == before
