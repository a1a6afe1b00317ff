import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.hints import find_hint
from skillhall._internal.installer.lock import (
    MAX_LOCK_SIZE,
    PROJECT_LOCK,
    USER_LOCK,
    Lock,
    LockedFile,
    LockEdit,
    LockEntry,
    LockTarget,
    compute_files_digest,
    edit_lock,
    get_user_lock_folder,
    parse_lock,
    read_lock,
    render_lock,
    to_locked_files,
)
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall._internal.sources.opener import parse_source_ref
from skillhall.errors import LockInvalid
from tests.support.skills import make_skill

KEY = ".agents/skills/pdf"
FILES = (
    LockedFile("SKILL.md", "a" * 64, 120, "100644"),
    LockedFile("scripts/run.sh", "b" * 64, 20, "100755"),
)
ENTRY = LockEntry(
    source="acme/skills@v1",
    path="skills/pdf",
    commit="c" * 40,
    digest=compute_files_digest(FILES),
    files=FILES,
    targets=(LockTarget(".claude/skills/pdf", "link"),),
)
LOCK = Lock({KEY: ENTRY})


def with_entry(**changes: object) -> bytes:
    """Render the lock file with changes in its entry; `None` removes a field."""
    lock = json.loads(render_lock(LOCK))
    entry = {**lock["skills"][KEY], **changes}
    fields = {name: value for name, value in entry.items() if value is not None}
    return json.dumps({**lock, "skills": {KEY: fields}}).encode()


def with_key(key: str) -> bytes:
    lock = json.loads(render_lock(LOCK))
    return json.dumps({**lock, "skills": {key: lock["skills"][KEY]}}).encode()


def with_file(**changes: object) -> bytes:
    file = {"path": "SKILL.md", "sha256": "a" * 64, "size": 120, "mode": "100644"}
    return with_entry(files=[{**file, **changes}])


def problem_of(data: bytes) -> str:
    with pytest.raises(LockInvalid) as caught:
        parse_lock(data)
    assert caught.value.code == "invalid_config"
    assert str(caught.value).startswith("skillhall-lock.json: ")
    assert find_hint(caught.value, {})
    return caught.value.problem


def test_lock_file_round_trip() -> None:
    assert parse_lock(render_lock(LOCK)) == LOCK


def test_lock_file_is_indented_and_not_escaped() -> None:
    text = render_lock(Lock({KEY: replace(ENTRY, source="./größe")})).decode()
    assert text.startswith('{\n  "skills": {\n    ".agents/skills/pdf": {\n      "commit": "')
    assert '"source": "./größe"' in text
    assert text.endswith('  "version": 1\n}\n')


def test_order_of_entries_does_not_change_the_lock_file() -> None:
    other = replace(ENTRY, files=FILES[::-1])
    expected = render_lock(Lock({KEY: ENTRY, "a": ENTRY}))
    assert render_lock(Lock({"a": other, KEY: other})) == expected


def test_unknown_fields_are_written_back() -> None:
    lock = json.loads(render_lock(LOCK))
    entry = lock["skills"][KEY]
    for fields in (lock, entry, entry["files"][0], entry["targets"][0]):
        fields["later"] = {"b": [1, None], "a": "x"}
    data = json.dumps(lock).encode()
    assert json.loads(render_lock(parse_lock(data))) == lock


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "line 1 is not JSON"),
        (b"<<<<<<< HEAD\n{}", "line 1 is not JSON"),
        (b"[]", "top level is not an object"),
        (b"\xff{}", "not UTF-8"),
        (b'{"version": 1}', "'skills' is missing"),
        (b'{"skills": {}}', "'version' is missing"),
        (b'{"version": true, "skills": {}}', "'version' is not a non-negative integer"),
        (b'{"version": 1.0, "skills": {}}', "'version' is not a non-negative integer"),
        (b'{"version": 0, "skills": {}}', "'version' is 0, not 1"),
        (b'{"version": 1, "skills": []}', "'skills' is not an object"),
        (b'{"version": 1, "skills": {}, "skills": {}}', "duplicate key 'skills'"),
        (b'{"version": 1, "skills": {"a": []}}', "skills['a'] is not an object"),
        (b'{"version": 1, "skills": {}, "x": NaN}', "NaN is not JSON"),
        (b'{"version": 1, "skills": {}, "x": "\\ud800"}', "not UTF-8"),
        (b'{"version": 1, "skills": {}, "x": 1e999}', "nested too deeply, or a number"),
        (b"[" * 100_000, "nested too deeply, or a number"),
        (b'{"version": ' + b"1" * 5000 + b"}", "nested too deeply, or a number"),
        (b" " * (MAX_LOCK_SIZE + 1), "larger than"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_malformed_lock_file_is_rejected(data: bytes, problem: str) -> None:
    assert problem_of(data).startswith(problem)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"source": None}, ".source is missing"),
        ({"source": 7}, ".source is not a string"),
        ({"source": "--upload-pack=x"}, ".source is not a valid source"),
        ({"source": "ext::sh -c x"}, ".source is not a valid source"),
        ({"source": "https://user:secret@example.org/a/b.git"}, ".source is not a valid source"),
        ({"path": "../x"}, ".path is not a valid path"),
        ({"path": "a/./b"}, ".path is not a normalized path"),
        ({"commit": "main"}, ".commit is malformed: 'main'"),
        ({"commit": "C" * 40}, ".commit is malformed"),
        ({"digest": "a" * 64}, ".digest is malformed"),
        ({"digest": f"sha256:{'0' * 64}"}, ".digest does not match the files"),
        ({"pinned": 1}, ".pinned is not a boolean"),
        ({"files": {}}, ".files is not a list"),
        ({"files": ["SKILL.md"]}, ".files[0] is not an object"),
        ({"targets": [{"path": "/etc", "kind": "copy"}]}, ".targets[0].path is not a valid path"),
        ({"targets": [{"path": "x", "kind": "mount"}]}, ".targets[0].kind is not one of copy"),
        ({"targets": [{"path": KEY, "kind": "copy"}]}, ".targets contains a duplicate path"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_field_is_rejected_by_name(changes: Mapping[str, object], problem: str) -> None:
    assert problem_of(with_entry(**changes)).startswith(f"skills['{KEY}']{problem}")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"path": "../../.bashrc"}, "path is not a valid path: it points outside its folder"),
        ({"path": "C:\\x"}, "path is not a valid path"),
        ({"path": "a\x1b[31m"}, "path is not a valid path: it contains control characters"),
        ({"sha256": "g" * 64}, "sha256 is malformed"),
        ({"size": -1}, "size is not a non-negative integer"),
        ({"size": True}, "size is not a non-negative integer"),
        ({"mode": "104755"}, "mode is not one of 100644, 100755"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_file_is_rejected_by_index(changes: Mapping[str, object], problem: str) -> None:
    assert f".files[0].{problem}" in problem_of(with_file(**changes))


@pytest.mark.parametrize("key", ["../x", "/etc/x", "~/x", "", "a//b", "x" * 2000, "a\nb"])
def test_key_outside_the_root_is_rejected(key: str) -> None:
    assert problem_of(with_key(key)).startswith(f"skills[{key[:100]!r}] is not a valid path")


def test_newer_lock_file_version_is_rejected_with_a_hint() -> None:
    with pytest.raises(LockInvalid, match="'version' is 2, not 1") as caught:
        parse_lock(b'{"version": 2, "entries": []}')
    assert "update" in caught.value.hint


VALUES: list[object] = [None, True, 1, -1, 1.5, "", "a/b", "../x", [], {}, [[]], [{}]]
ANY_VALUE = st.sampled_from(VALUES)
NAMES = st.sampled_from(["source", "path", "commit", "files", "targets", "pinned"])


@given(ANY_VALUE, st.dictionaries(NAMES, ANY_VALUE, max_size=4), st.binary(max_size=20))
def test_corrupt_lock_file_only_raises_lock_invalid(
    version: object, changes: dict[str, object], data: bytes
) -> None:
    corrupt = json.dumps({"version": version, "skills": {"a": changes}}).encode()
    for content in (data, corrupt, with_entry(**{**changes, "digest": 7})):
        with pytest.raises(LockInvalid):
            parse_lock(content)


def test_missing_lock_file_is_empty(tmp_path: Path) -> None:
    assert read_lock(str(tmp_path)) == Lock()
    assert read_lock(str(tmp_path / "missing"), USER_LOCK) == Lock()


def test_lock_file_behind_a_link_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(render_lock(LOCK))
    (tmp_path / PROJECT_LOCK).symlink_to("elsewhere")
    with pytest.raises(LockInvalid, match="not a regular file"):
        read_lock(str(tmp_path))
    with pytest.raises(LockInvalid), edit_lock(str(tmp_path)) as edit:
        edit.entries[KEY] = ENTRY


def test_large_lock_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / PROJECT_LOCK).touch()
    os.truncate(tmp_path / PROJECT_LOCK, MAX_LOCK_SIZE + 1)
    with pytest.raises(LockInvalid, match="larger than"):
        read_lock(str(tmp_path))


def test_edit_is_saved_when_the_block_ends(tmp_path: Path) -> None:
    folder = get_user_lock_folder(str(tmp_path))
    with edit_lock(folder, USER_LOCK) as edit:
        edit.entries[KEY] = ENTRY
    assert read_lock(folder, USER_LOCK) == LOCK
    assert [path.name for path in Path(folder).iterdir()] == [".skillhall-lock.json"]
    with edit_lock(folder, USER_LOCK) as edit:
        del edit.entries[KEY]
    assert read_lock(folder, USER_LOCK) == Lock()


def test_edit_preserves_unknown_fields(tmp_path: Path) -> None:
    lock = {**json.loads(render_lock(LOCK)), "later": 1}
    (tmp_path / PROJECT_LOCK).write_text(json.dumps(lock), encoding="utf-8")
    with edit_lock(str(tmp_path)) as edit:
        edit.entries["a"] = ENTRY
    assert read_lock(str(tmp_path)) == Lock({KEY: ENTRY, "a": ENTRY}, {"later": 1})


def test_edit_without_changes_does_not_write(tmp_path: Path) -> None:
    file = tmp_path / PROJECT_LOCK
    file.write_bytes(json.dumps(json.loads(render_lock(LOCK))).encode())
    before = file.read_bytes(), file.stat().st_ino
    with edit_lock(str(tmp_path)) as edit:
        edit.entries[KEY] = ENTRY
    assert (file.read_bytes(), file.stat().st_ino) == before


@pytest.mark.skipif(os.name != "posix", reason="permissions of other systems differ")
def test_edit_preserves_the_file_mode(tmp_path: Path) -> None:
    file = tmp_path / PROJECT_LOCK
    file.write_bytes(render_lock(LOCK))
    file.chmod(0o600)
    with edit_lock(str(tmp_path)) as edit:
        del edit.entries[KEY]
    assert file.stat().st_mode & 0o777 == 0o600


def change_and_fail(edit: LockEdit) -> None:
    edit.entries[KEY] = ENTRY
    raise ZeroDivisionError


def test_edit_that_raises_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), edit_lock(str(tmp_path)) as edit:
        change_and_fail(edit)
    assert list(tmp_path.iterdir()) == []


def test_invalid_entry_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(LockInvalid, match="outside its folder"), edit_lock(str(tmp_path)) as e:
        e.entries["../x"] = ENTRY
    assert list(tmp_path.iterdir()) == []


def test_locked_files_of_a_bundle_have_its_digest(tmp_path: Path) -> None:
    skill = make_skill(
        tmp_path, "pdf", files={"scripts/run.sh": b"#!/bin/sh\n", "a-b": b"", "a": b""}
    )
    (skill / "scripts" / "run.sh").chmod(0o755)
    bundle = open_bundle(FolderHandle(str(skill)), LENIENT.scan_policy)
    files = to_locked_files(bundle)
    assert [file.path for file in files] == ["SKILL.md", "a", "a-b", "scripts/run.sh"]
    assert files[3].size == 10
    assert files[3].mode == ("100755" if os.name == "posix" else "100644")
    assert compute_files_digest(files) == bundle.digest()


@pytest.mark.parametrize(
    ("text", "portable"),
    [
        ("acme/skills/pdf@v1", "acme/skills/pdf@v1"),
        ("python:acme", "python:acme"),
        ("./skills", "./docs/skills"),
        ("../skills", "./skills"),
        ("../../shared", "../shared"),
        ("../../shared/skills.zip", "../shared/skills.zip"),
        ("..", "."),
        ("~/skills", "~/skills"),
        ("/opt/skills", "/opt/skills"),
        ("/home/ada/project/.agents/x", ".agents/x"),
        ("/home/ada/project/in/it", "./in/it"),
        ("/home/ada/project-2/x", "/home/ada/project-2/x"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="paths of other systems begin otherwise")
def test_local_source_is_relative_to_the_lock_file_if_possible(text: str, portable: str) -> None:
    root = "/home/ada/project"
    source = parse_source_ref(text).to_portable_text(root, f"{root}/docs")
    assert source == portable
    assert parse_source_ref(source).text == source


def test_recovery_keeps_the_lock_file(tmp_path: Path) -> None:
    with edit_lock(str(tmp_path), USER_LOCK) as edit:
        edit.entries[KEY] = ENTRY
    (tmp_path / ".skillhall-0123456789abcdef").write_bytes(b"half")
    (tmp_path / ".skillhall-old-pdf").mkdir()
    (tmp_path / "pdf").mkdir()
    with WritableFolder(str(tmp_path)) as folder:
        folder.recover()
    assert sorted(path.name for path in tmp_path.iterdir()) == [USER_LOCK, "pdf"]
