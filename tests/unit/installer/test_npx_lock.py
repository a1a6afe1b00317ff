"""Npx locks; the files in `support/npx_locks` are from `npx skills` 1.5.18."""

import hashlib
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.installer.npx_lock import (
    PROJECT_FORMAT,
    USER_FORMAT,
    NpxEntry,
    NpxLockPath,
    NpxLockResult,
    build_npx_entry,
    compute_git_tree_id,
    compute_npx_hash,
    edit_npx_lock,
    has_portable_order,
    read_npx_lock,
)
from skillhall._internal.installer.project import Project
from skillhall._internal.settings import Settings
from skillhall._internal.skill.merge import FileState
from skillhall._internal.sources.opener import parse_source_ref

THEIRS = Path(__file__).parents[2] / "support" / "npx_locks"
NOW = datetime(2027, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
NOTES = "---\nname: notes\ndescription: Keeps notes.\n---\nWrite it down.\n"
# Files of the skills when `npx skills` wrote its lock files.
FILES = {
    "notes": {"SKILL.md": FileState(NOTES.encode())},
    "Daily Notes": {"SKILL.md": FileState(NOTES.replace("notes", "Daily Notes", 1).encode())},
    "pdf-tools": {
        "SKILL.md": FileState(
            b"---\nname: pdf-tools\ndescription: Reads PDF files.\n---\n# Steps\n"
        ),
        "metadata.json": FileState(b"{}\n"),
        "references/Page.md": FileState(b"A page.\n"),
        "scripts/A.py": FileState(b"x = 3\n"),
        "scripts/a-b.py": FileState(b"x = 1\n"),
        "scripts/a_b.py": FileState(b"x = 2\n"),
        "scripts/run.sh": FileState(b"#!/bin/sh\necho ready\n", executable=True),
    },
}


def get_project_lock_path(root: str) -> NpxLockPath:
    return Project(root, is_user=False, settings=Settings(root, root)).npx_lock_path


def get_user_lock_path(home: str, variables: dict[str, str]) -> NpxLockPath:
    settings = Settings(home, home, variables=variables)
    return Project(home, is_user=True, settings=settings).npx_lock_path


def project(folder: Path, text: str | bytes | None = None) -> NpxLockPath:
    """Write the lock file of a project; by default the one of `npx skills`."""
    theirs = (THEIRS / "skills-lock.json").read_bytes()
    data = theirs if text is None else text
    (folder / "skills-lock.json").write_bytes(data if isinstance(data, bytes) else data.encode())
    return get_project_lock_path(str(folder))


def user(home: Path) -> NpxLockPath:
    """Write the user's lock file of `npx skills`."""
    (home / ".agents").mkdir()
    data = (THEIRS / "user-skill-lock.json").read_bytes()
    (home / ".agents" / ".skill-lock.json").write_bytes(data)
    return get_user_lock_path(str(home), {})


def bytes_at(path: NpxLockPath) -> bytes:
    return (Path(path.folder) / path.name).read_bytes()


def entry(name: str, text: str, folder: str, path: NpxLockPath) -> NpxEntry:
    built = build_npx_entry(name, parse_source_ref(text), folder, FILES[name], path.lock_format)
    assert built is not None
    return built


def reference(kind: str, source: str, url: str = "", ref: str = "", path: str = "") -> str | None:
    return NpxEntry("x", source, kind, url, ref, path).to_reference()


def test_project_lock_is_parsed(tmp_path: Path) -> None:
    entries = read_npx_lock(project(tmp_path))
    assert {name: entry.to_reference() for name, entry in entries.items()} == {
        "Daily Notes": "/home/user/project/local-skills",
        "notes": "https://git.example.org/team/skills.git/skills/notes",
        "pdf-tools": "acme/skills/skills/pdf-tools@v1",
    }


def test_user_lock_is_parsed(tmp_path: Path) -> None:
    assert read_npx_lock(user(tmp_path))["pdf-tools"] == NpxEntry(
        "pdf-tools",
        "acme/skills",
        "github",
        "https://github.com/acme/skills.git",
        skill_path="skills/pdf-tools/SKILL.md",
        hash="3d15f1221f1ecac360128afed3dc352022f8794d",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pdf-tools", "acme/skills@v1"),
        ("notes", "https://git.example.org/team/skills.git"),
        ("Daily Notes", "/home/user/project/local-skills"),
    ],
)
def test_project_entry_equals_that_of_npx(name: str, text: str, tmp_path: Path) -> None:
    path = project(tmp_path)
    ours = entry(name, text, f"skills/{name}", path)
    assert edit_npx_lock(path, {name: ours}, NOW) == NpxLockResult(is_written=False)
    theirs = bytes_at(path)
    assert edit_npx_lock(path, {name: None}, NOW) == NpxLockResult(is_written=True)
    assert name not in read_npx_lock(path)
    assert edit_npx_lock(path, {name: ours}, NOW) == NpxLockResult(is_written=True)
    assert bytes_at(path) == theirs


@pytest.mark.parametrize(
    ("name", "text"),
    [("pdf-tools", "acme/skills"), ("notes", "https://git.example.org/team/skills.git")],
)
def test_user_entry_equals_that_of_npx_except_for_the_time(
    name: str, text: str, tmp_path: Path
) -> None:
    path = user(tmp_path)
    theirs = json.loads(bytes_at(path))
    new = entry(name, text, f"skills/{name}", path)
    assert edit_npx_lock(path, {name: new}, NOW).is_written
    ours = json.loads(bytes_at(path))
    assert ours["skills"][name].pop("updatedAt") == "2027-01-02T03:04:05.678Z"
    theirs["skills"][name].pop("updatedAt")
    assert json.dumps(ours) == json.dumps(theirs)
    assert not bytes_at(path).endswith(b"\n")


def test_new_user_entry_is_appended_with_timestamps(tmp_path: Path) -> None:
    path = user(tmp_path)
    new = NpxEntry("new", "a/b", "github", "https://github.com/a/b.git", "v2", "SKILL.md", "0")
    edit_npx_lock(path, {"new": new}, NOW)
    skills = json.loads(bytes_at(path))["skills"]
    assert list(skills) == ["pdf-tools", "notes", "new"]
    assert list(skills["new"].items()) == [
        ("source", "a/b"),
        ("sourceType", "github"),
        ("sourceUrl", "https://github.com/a/b.git"),
        ("ref", "v2"),
        ("skillPath", "SKILL.md"),
        ("skillFolderHash", "0"),
        ("installedAt", "2027-01-02T03:04:05.678Z"),
        ("updatedAt", "2027-01-02T03:04:05.678Z"),
    ]


@pytest.mark.parametrize("text", ["https://example.org/SKILL.md", "./skills.zip", "python:acme"])
def test_unsupported_source_gives_no_entry(text: str) -> None:
    assert build_npx_entry("x", parse_source_ref(text), "", {}, PROJECT_FORMAT) is None


def test_site_has_the_fields_that_npx_writes() -> None:
    reference = parse_source_ref("https://www.a.example/#pdf")
    url = "https://www.a.example/.well-known/agent-skills/index.json"
    for lock_format, npx_hash in ((USER_FORMAT, ""), (PROJECT_FORMAT, compute_npx_hash({}))):
        built = build_npx_entry("pdf", reference, "", {}, lock_format)
        assert built == NpxEntry("pdf", "a.example", "well-known", url, hash=npx_hash)
    static = parse_source_ref("https://a.example/x/index.json#pdf")
    assert build_npx_entry("pdf", static, "", {}, USER_FORMAT) is None


def test_gitlab_repository_has_its_own_source_type() -> None:
    reference = parse_source_ref("https://gitlab.com/a/b.git")
    built = build_npx_entry("x", reference, "", {}, USER_FORMAT)
    assert built is not None
    assert (built.source_type, built.skill_path) == ("gitlab", "SKILL.md")


@pytest.mark.parametrize(
    ("kind", "source", "url", "ref", "path", "text"),
    [
        ("github", "acme/skills", "", "", "", "acme/skills"),
        ("github", "acme/skills", "", "feat/x", "SKILL.md", "acme/skills@feat/x"),
        ("github", "acme/skills", "", "", "a b/skill.md", "acme/skills/a%20b"),
        ("github", "acme/skills", "https://github.com/acme/skills.git", "v2", "a/SKILL.md",
         "acme/skills/a@v2"),
        ("github", "acme/skills", "https://ghe.example/acme/skills.git", "v2", "a/SKILL.md",
         "https://ghe.example/acme/skills.git/a@v2"),
        ("github", "acme/skills", "https://evil.example/other/skills.git", "", "", "acme/skills"),
        ("gitlab", "g/r", "https://gitlab.com/g/s/r.git", "", "a/SKILL.md",
         "https://gitlab.com/g/s/r.git/a"),
        ("git", "git@example.org:a/b.git", "", "v1", "c/SKILL.md", "git@example.org:a/b.git/c@v1"),
        ("git", "https://example.org/a/b", "", "", "c/SKILL.md", "https://example.org/a/b.git/c"),
        ("git", "https://example.org/a/b", "", "", "", "https://example.org/a/b"),
        ("git", "https://github.com/a/b.git", "", "v1", "c/SKILL.md", "a/b/c@v1"),
        ("local", "./skills", "", "", "", "./skills"),
        ("local", "../skills", "", "", "", "../skills"),
        ("well-known", "a.example", "", "", "", "https://a.example/.well-known/#x"),
        ("well-known", "a.example", "https://a.example/d/.well-known/skills/x/SKILL.md", "", "",
         "https://a.example/d/.well-known/#x"),
    ],
)  # fmt: skip
def test_entry_is_converted_to_a_source_reference(  # noqa: PLR0913, PLR0917 - one for each field
    kind: str, source: str, url: str, ref: str, path: str, text: str
) -> None:
    assert reference(kind, source, url, ref, path) == text
    assert parse_source_ref(text).text == text


@pytest.mark.parametrize(
    ("kind", "source", "ref", "path"),
    [
        ("github", "acme/skills", "--upload-pack=x", ""),
        ("github", "acme/skills", "a..b", ""),
        ("github", "acme/skills", "", "../../x/SKILL.md"),
        ("github", "acme/skills", "", ".git/hooks/SKILL.md"),
        ("github", "acme/skills", "", "a/run.sh"),
        ("github", "https://evil.example/a/b.git", "", ""),
        ("github", "../x", "", ""),
        ("git", "acme/skills", "", ""),
        ("git", "https://example.org/a/b.git/c@v1", "", ""),
        ("git", "ext::sh -c x", "", ""),
        ("git", "file:///etc", "", ""),
        ("git", "http://example.org/a/b.git", "", ""),
        ("git", "https://user:secret@example.org/a/b.git", "", ""),
        ("local", "acme/skills", "", ""),
        ("local", "https://example.org/a.zip", "", ""),
        ("well-known", "../x", "", ""),
        ("well-known", "github.com", "", ""),
        ("node_modules", "acme-skills", "", ""),
        ("nonsense", "acme/skills", "", ""),
        ("", "acme/skills", "", ""),
    ],
)
def test_unsafe_or_unsupported_entry_has_no_reference(
    kind: str, source: str, ref: str, path: str
) -> None:
    assert reference(kind, source, "", ref, path) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1 is not JSON"),
        ("<<<<<<< HEAD\n", "line 1 is not JSON"),
        ("[]", "'skills' is not an object"),
        ('{"version": 1}', "'skills' is not an object"),
        ('{"version": 1, "skills": []}', "'skills' is not an object"),
        (b'{"version": 1, "skills": {"\xff": {}}}', "not UTF-8"),
        ('{"version": 1, "skills": {"\\ud800": {}}}', "not UTF-8"),
        ('{"version": 2, "skills": {}}', "'version' is not 1"),
        ('{"version": "1", "skills": {}}', "'version' is not 1"),
        ('{"version": true, "skills": {}}', "'version' is not 1"),
        ('{"skills": {"a": {}}}', "'version' is not 1"),
        ('{"version": 1, "skills": {"a": {}, "a": {}}}', "duplicate key"),
        (" " * (4 * 1024 * 1024 + 1), "too large"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_invalid_lock_is_left_unchanged(text: str | bytes, reason: str, tmp_path: Path) -> None:
    path = project(tmp_path, text)
    before = bytes_at(path)
    result = edit_npx_lock(path, {"x": NpxEntry("x", "a/b", "github")}, NOW)
    assert not result.is_written
    assert result.note.startswith("skills-lock.json is left unchanged: ")
    assert reason in result.note
    assert edit_npx_lock(path, {"a": None}, NOW) == result
    assert bytes_at(path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["skills-lock.json"]


def test_lock_of_another_version_is_read(tmp_path: Path) -> None:
    text = '{"version": 9, "skills": {"x": {"source": "a/b", "sourceType": "github"}}}'
    assert list(read_npx_lock(project(tmp_path, text))) == ["x"]


def test_lock_behind_a_link_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"version": 1, "skills": {}}', encoding="utf-8")
    (tmp_path / "skills-lock.json").symlink_to("elsewhere")
    path = get_project_lock_path(str(tmp_path))
    result = edit_npx_lock(path, {"x": NpxEntry("x", "a/b", "github")}, NOW)
    assert "not a regular file" in result.note
    assert (tmp_path / "skills-lock.json").is_symlink()


def test_invalid_entry_is_skipped_and_preserved(tmp_path: Path) -> None:
    invalid = {"a": 7, "b": {"source": 7, "sourceType": "github"}, "c": {"sourceType": "git"}}
    path = project(tmp_path, json.dumps({"version": 1, "skills": invalid}))
    assert read_npx_lock(path) == {}
    edit_npx_lock(path, {"x": NpxEntry("x", "a/b", "github")}, NOW)
    skills = json.loads(bytes_at(path))["skills"]
    assert {name: skills[name] for name in invalid} == invalid


def test_unknown_fields_are_preserved(tmp_path: Path) -> None:
    before = {
        "dismissed": {"tip": True},
        "version": 1,
        "later": [1.5, None],
        "skills": {
            "z": {"source": "z/z", "sourceType": "github", "computedHash": "1", "later": "y"},
            "x": {"later": "x", "source": "a/b", "ref": "old", "sourceType": "github"},
        },
    }
    path = project(tmp_path, json.dumps(before))
    edit_npx_lock(path, {"x": NpxEntry("x", "a/b", "github", skill_path="SKILL.md", hash="2")}, NOW)
    after = json.loads(bytes_at(path))
    assert list(after) == ["dismissed", "version", "later", "skills"]
    assert list(after["skills"]) == ["x", "z"]
    assert after["skills"]["z"] == before["skills"]["z"]  # type: ignore[index]  # typed as object
    assert list(after["skills"]["x"].items()) == [
        ("later", "x"),
        ("source", "a/b"),
        ("sourceType", "github"),
        ("skillPath", "SKILL.md"),
        ("computedHash", "2"),
    ]


GH_ENTRY = {  # as `gh skill install acme/skills notes --pin v2` writes it
    "source": "acme/skills",
    "sourceType": "github",
    "sourceUrl": "https://github.com/acme/skills.git",
    "skillPath": "skills/notes/SKILL.md",
    "skillFolderHash": "1",
    "installedAt": "2026-01-01T00:00:00Z",
    "updatedAt": "2026-01-01T00:00:00Z",
    "pinnedRef": "v2",
}


def test_entry_of_gh_skill_is_read_with_its_pinned_ref(tmp_path: Path) -> None:
    path = user(tmp_path)
    text = json.dumps({"version": 3, "skills": {"notes": GH_ENTRY}})
    (tmp_path / ".agents/.skill-lock.json").write_text(text, encoding="utf-8")
    assert read_npx_lock(path)["notes"].to_reference() == "acme/skills/skills/notes@v2"


@pytest.mark.parametrize(("text", "ref"), [("acme/skills@v3", "v3"), ("acme/skills", None)])
def test_pinned_ref_of_gh_skill_follows_the_installed_ref(
    tmp_path: Path, text: str, ref: str | None
) -> None:
    path = user(tmp_path)
    document = json.dumps({"version": 3, "skills": {"notes": GH_ENTRY}})
    (tmp_path / ".agents/.skill-lock.json").write_text(document, encoding="utf-8")
    edit_npx_lock(path, {"notes": entry("notes", text, "skills/notes", path)}, NOW)
    after = json.loads(bytes_at(path))["skills"]["notes"]
    assert (after.get("pinnedRef"), after.get("ref")) == (ref, ref)
    assert after["installedAt"] == GH_ENTRY["installedAt"]


def test_missing_lock_is_created_for_a_new_entry_only(tmp_path: Path) -> None:
    path = get_project_lock_path(str(tmp_path))
    new = entry("notes", "acme/skills", "notes", path)
    assert edit_npx_lock(path, {"notes": None}, NOW) == NpxLockResult(is_written=False)
    assert list(tmp_path.iterdir()) == []
    assert read_npx_lock(path) == {}
    assert edit_npx_lock(path, {"notes": new}, NOW) == NpxLockResult(is_written=True)
    assert read_npx_lock(path)["notes"].source == "acme/skills"


@pytest.mark.skipif(os.name != "posix", reason="permissions of other systems differ")
def test_write_preserves_the_file_mode(tmp_path: Path) -> None:
    path = user(tmp_path)
    file = Path(path.folder) / path.name
    file.chmod(0o600)
    assert edit_npx_lock(path, {"notes": None}, NOW).is_written
    assert file.stat().st_mode & 0o777 == 0o600


def test_missing_folder_is_an_empty_lock(tmp_path: Path) -> None:
    path = get_user_lock_path(str(tmp_path), {"XDG_STATE_HOME": str(tmp_path / "state")})
    assert edit_npx_lock(path, {"x": None}, NOW) == NpxLockResult(is_written=False)
    assert read_npx_lock(path) == {}
    new = entry("notes", "acme/skills", "notes", path)
    assert edit_npx_lock(path, {"notes": new}, NOW).is_written
    created = json.loads((tmp_path / "state" / "skills" / ".skill-lock.json").read_bytes())
    assert (created["version"], created["dismissed"]) == (3, {})


def test_removing_a_missing_entry_does_not_write(tmp_path: Path) -> None:
    path = project(tmp_path, '{"version":1,"skills":{}}')
    assert edit_npx_lock(path, {"x": None}, NOW) == NpxLockResult(is_written=False)
    assert bytes_at(path) == b'{"version":1,"skills":{}}'


@pytest.mark.parametrize("state", ["", "relative"])
def test_relative_state_home_is_ignored(state: str, tmp_path: Path) -> None:
    path = get_user_lock_path(str(tmp_path), {"XDG_STATE_HOME": state})
    assert Path(path.folder) / path.name == tmp_path / ".agents" / ".skill-lock.json"


TREES = [
    {},
    {"SKILL.md": FileState(b"x")},
    {
        "a/b": FileState(b"1"),
        "a.b": FileState(b"2"),
        "a-b": FileState(b"3"),
        "a0": FileState(b"4"),
    },
    {"run.sh": FileState(b"#!/bin/sh\n", executable=True), "run": FileState(b"")},
    {"größe/ä.md": FileState("ü".encode()), "deep/er/and/deeper": FileState(bytes(range(256)))},
]


@pytest.mark.parametrize("files", TREES, ids=",".join)
def test_git_tree_id_equals_that_of_git(files: dict[str, FileState], tmp_path: Path) -> None:
    def git(*args: str) -> str:
        result = subprocess.run(["git", *args], cwd=tmp_path, check=True, capture_output=True)
        return result.stdout.decode().strip()

    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content.data)
        (tmp_path / path).chmod(0o755 if content.executable else 0o644)
    git("init", "-q")
    git("-c", "core.autocrlf=false", "add", "-A")
    assert compute_git_tree_id(files) == git("write-tree")


def test_npx_hash_uses_the_order_of_javascript() -> None:
    # The order of `sort((a, b) => a.localeCompare(b))`.
    names = ["_a", "-a", ".a", "a", "A", "a b", "a_b", "a-b", "a.md", "a/b", "a/B", "A/b", "a1"]
    names += ["a10", "a2", "ab", "aB", "Ab", "AB", "ab.md", "b", "B", "references/a.md"]
    names += ["Scripts/run", "scripts/run.py", "SKILL.md", "skill.txt"]
    expected = hashlib.sha256("".join(f"{name}\n" for name in names).encode()).hexdigest()
    assert compute_npx_hash(dict.fromkeys(sorted(names), b"\n")) == expected


def test_git_and_npm_folders_are_not_hashed() -> None:
    files = {"SKILL.md": b"x", "node_modules": b"a file", "lib/.git": b"a file"}
    ignored = {".git/HEAD": b"", "node_modules/a/b": b"", "lib/node_modules/c": b""}
    assert compute_npx_hash({**files, **ignored}) == compute_npx_hash(files)
    assert compute_npx_hash(files) != compute_npx_hash({"SKILL.md": b"x"})


def test_only_ascii_paths_have_a_portable_order() -> None:
    assert has_portable_order({"SKILL.md": b"", "a b/c": b""})
    assert not has_portable_order({"SKILL.md": b"", "größe.md": b""})


@given(st.dictionaries(st.text("ab/é😀", min_size=1), st.binary(max_size=3)))
def test_npx_hash_does_not_depend_on_file_order(files: dict[str, bytes]) -> None:
    assert compute_npx_hash(files) == compute_npx_hash(dict(reversed(files.items())))
