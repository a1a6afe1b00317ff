import json
from functools import partial

import pytest

from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.workspace import BlockContent, Zone, session_archive
from skillhall._internal.workspace.compiled_context import Context
from skillhall._internal.workspace.export import export_session
from skillhall._internal.workspace.session_archive import (
    MANIFEST,
    pack_session,
    read_portable_session,
)
from skillhall._internal.workspace.validation import build_content
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import FieldRefused, SkillRejected, TooLarge
from tests.support.memory_store import MemoryStore
from tests.support.workspaces import make_workspace


def notes(number: int, text: str) -> list[BlockContent]:
    return [build_content("note", Zone.WORKING, f"{n} {text}") for n in range(number)]


def compile_context(workspace: Workspace, contents: list[BlockContent]) -> Context:
    return workspace.contexts.compile(workspace.sessions.create("One", contents=contents).id)


def with_file(bundle: Bundle, path: str, data: bytes | None) -> Bundle:
    files = {key: file for key, file in bundle.files.items() if key != path}
    if data is not None:
        read = partial(bytes, data)
        files[path] = SkillFile(RelativePath.parse(path), len(data), executable=False, read=read)
    return Bundle(bundle.folder, files)


@pytest.fixture
def workspace() -> Workspace:
    return make_workspace(MemoryStore())


def test_small_session_fits_into_skill_md(workspace: Workspace) -> None:
    bundle = pack_session(compile_context(workspace, notes(2, "x")))
    assert sorted(bundle.files) == ["SKILL.md", "blocks/1.json", "session.json"]
    assert bundle.files["SKILL.md"].read().endswith(b"0 x\n\n1 x\n")


def test_large_session_is_split_into_files_and_imported_again(
    workspace: Workspace,
) -> None:
    contents = notes(60, "the same words again and again " * 3000)
    out = export_session(compile_context(workspace, contents))
    bundle = pack_session(compile_context(workspace, contents))
    assert "context/working.md" in bundle.files
    assert "blocks/3.json" in bundle.files
    assert len(bundle.files["SKILL.md"].read()) < 1000
    session = workspace.importer.create_session(out.data, out.name)
    assert [block.content for block in workspace.blocks.list(session.id)] == contents


def test_session_over_the_archive_limit_is_rejected(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_archive, "_MAX_TOTAL_BYTES", 1000)
    with pytest.raises(TooLarge):
        pack_session(compile_context(workspace, notes(1, "x" * 2000)))


def test_foreign_session_json_is_ignored(workspace: Workspace) -> None:
    bundle = pack_session(compile_context(workspace, notes(1, "x")))
    assert read_portable_session(with_file(bundle, MANIFEST, b'{"format": "other"}')) is None
    assert read_portable_session(with_file(bundle, MANIFEST, b"[")) is None
    assert read_portable_session(with_file(bundle, MANIFEST, None)) is None


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("blocks/1.json", None),
        ("blocks/1.json", b"{}"),
        ("blocks/1.json", b"["),
        ("blocks/1.json", b'[{"type": "note", "zone": "NOWHERE", "content": "x"}]'),
        ("blocks/1.json", b'[{"type": "poem", "zone": "STABLE", "content": "x"}]'),
        ("blocks/1.json", b'[{"type": "note", "zone": "STABLE", "content": 1}]'),
        ("blocks/1.json", b'[{"type": "note", "zone": "STABLE", "content": "\\u0000"}]'),
        ("blocks/1.json", b'[{"type": "note", "zone": "STABLE", "content": "\\ud800"}]'),
        ("blocks/1.json", b'["x"]'),
    ],
)
def test_damaged_blocks_are_rejected(workspace: Workspace, path: str, data: bytes | None) -> None:
    bundle = pack_session(compile_context(workspace, notes(1, "x")))
    with pytest.raises(FieldRefused, match="damaged"):
        read_portable_session(with_file(bundle, path, data))


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("name", 3), ("parts", "x"), ("budgets", {"total": -1}), ("budgets", [])],
)
def test_damaged_manifest_is_rejected(workspace: Workspace, field: str, value: object) -> None:
    bundle = pack_session(compile_context(workspace, notes(1, "x")))
    manifest = {**json.loads(bundle.files[MANIFEST].read()), field: value}
    with pytest.raises(FieldRefused):
        read_portable_session(with_file(bundle, MANIFEST, json.dumps(manifest).encode()))


def test_archive_without_skills_creates_no_session(workspace: Workspace) -> None:
    with pytest.raises(SkillRejected):
        workspace.importer.create_session(b"no frontmatter", "x.md")
    assert workspace.sessions.list() == []
