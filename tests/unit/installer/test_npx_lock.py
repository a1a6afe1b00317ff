"""The locks of `npx skills`; those in `support/npx_locks` were written by its version 1.5.18."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillhall._internal.installer.npx_hashes import HashedFile
from skillhall._internal.installer.npx_lock import (
    PROJECT_FORMAT,
    USER_FORMAT,
    NpxEntry,
    NpxLockPath,
    NpxLockResult,
    build_npx_entry,
    get_project_lock_path,
    get_user_lock_path,
    read_npx_lock,
    remove_entries,
    upsert_entries,
)
from skillhall._internal.sources.ref import parse_source_ref

THEIRS = Path(__file__).parents[2] / "support" / "npx_locks"
NOW = datetime(2027, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
NOTES = "---\nname: notes\ndescription: Keeps notes.\n---\nWrite it down.\n"
# What the skills held when the other tool wrote its locks.
FILES = {
    "notes": {"SKILL.md": HashedFile(NOTES.encode())},
    "Daily Notes": {"SKILL.md": HashedFile(NOTES.replace("notes", "Daily Notes", 1).encode())},
    "pdf-tools": {
        "SKILL.md": HashedFile(
            b"---\nname: pdf-tools\ndescription: Reads PDF files.\n---\n# Steps\n"
        ),
        "metadata.json": HashedFile(b"{}\n"),
        "references/Page.md": HashedFile(b"A page.\n"),
        "scripts/A.py": HashedFile(b"x = 3\n"),
        "scripts/a-b.py": HashedFile(b"x = 1\n"),
        "scripts/a_b.py": HashedFile(b"x = 2\n"),
        "scripts/run.sh": HashedFile(b"#!/bin/sh\necho ready\n", executable=True),
    },
}


def project(folder: Path, text: str | bytes | None = None) -> NpxLockPath:
    """The lock of a project: the one of the other tool, unless told otherwise."""
    theirs = (THEIRS / "skills-lock.json").read_bytes()
    data = theirs if text is None else text
    (folder / "skills-lock.json").write_bytes(data if isinstance(data, bytes) else data.encode())
    return get_project_lock_path(str(folder))


def user(home: Path) -> NpxLockPath:
    """The lock of a person, as the other tool wrote it."""
    (home / ".agents").mkdir()
    data = (THEIRS / "user-skill-lock.json").read_bytes()
    (home / ".agents" / ".skill-lock.json").write_bytes(data)
    return get_user_lock_path(str(home), {})


def bytes_at(place: NpxLockPath) -> bytes:
    return (Path(place.folder) / place.name).read_bytes()


def entry(name: str, text: str, folder: str, place: NpxLockPath) -> NpxEntry:
    found = build_npx_entry(name, parse_source_ref(text), folder, FILES[name], place.lock_format)
    assert found is not None
    return found


def reference(kind: str, source: str, url: str = "", ref: str = "", path: str = "") -> str | None:
    return NpxEntry("x", source, kind, url, ref, path).to_reference()


# Their locks


def test_a_project_lock_of_theirs_is_understood(tmp_path: Path) -> None:
    found = read_npx_lock(project(tmp_path))
    assert found.notes == ()
    assert {name: one.to_reference() for name, one in found.entries.items()} == {
        "Daily Notes": "/home/user/project/local-skills",
        "notes": "https://git.example.org/team/skills.git/skills/notes",
        "pdf-tools": "acme/skills/skills/pdf-tools@v1",
    }


def test_a_user_lock_of_theirs_is_understood(tmp_path: Path) -> None:
    found = read_npx_lock(user(tmp_path))
    assert found.notes == ()
    assert found.entries["pdf-tools"] == NpxEntry(
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
def test_a_project_entry_of_ours_is_the_one_that_they_write(
    name: str, text: str, tmp_path: Path
) -> None:
    place = project(tmp_path)
    ours = entry(name, text, f"skills/{name}", place)
    assert upsert_entries(place, [ours], NOW) == NpxLockResult(is_written=False)
    theirs = bytes_at(place)
    assert remove_entries(place, [name]) == NpxLockResult(is_written=True)
    assert name not in read_npx_lock(place).entries
    assert upsert_entries(place, [ours], NOW) == NpxLockResult(is_written=True)
    assert bytes_at(place) == theirs


@pytest.mark.parametrize(
    ("name", "text"),
    [("pdf-tools", "acme/skills"), ("notes", "https://git.example.org/team/skills.git")],
)
def test_a_user_entry_of_ours_is_theirs_at_another_time(
    name: str, text: str, tmp_path: Path
) -> None:
    place = user(tmp_path)
    theirs = json.loads(bytes_at(place))
    assert upsert_entries(place, [entry(name, text, f"skills/{name}", place)], NOW).is_written
    ours = json.loads(bytes_at(place))
    assert ours["skills"][name].pop("updatedAt") == "2027-01-02T03:04:05.678Z"
    theirs["skills"][name].pop("updatedAt")
    assert json.dumps(ours) == json.dumps(theirs)
    assert not bytes_at(place).endswith(b"\n")


def test_a_new_user_entry_follows_the_others_and_says_when(tmp_path: Path) -> None:
    place = user(tmp_path)
    new = NpxEntry("new", "a/b", "github", "https://github.com/a/b.git", "v2", "SKILL.md", "0")
    upsert_entries(place, [new], NOW)
    skills = json.loads(bytes_at(place))["skills"]
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
def test_a_source_that_they_have_no_words_for_is_not_noted(text: str) -> None:
    assert build_npx_entry("x", parse_source_ref(text), "", {}, PROJECT_FORMAT) is None


def test_a_repository_at_gitlab_is_noted_as_such() -> None:
    found = build_npx_entry(
        "x", parse_source_ref("https://gitlab.com/a/b.git"), "", {}, USER_FORMAT
    )
    assert found is not None
    assert (found.source_type, found.skill_path) == ("gitlab", "SKILL.md")


# References


@pytest.mark.parametrize(
    ("kind", "source", "url", "ref", "path", "text"),
    [
        ("github", "acme/skills", "", "", "", "acme/skills"),
        ("github", "acme/skills", "", "feat/x", "SKILL.md", "acme/skills@feat/x"),
        ("github", "acme/skills", "", "", "a b/skill.md", "acme/skills/a%20b"),
        ("gitlab", "g/r", "https://gitlab.com/g/s/r.git", "", "a/SKILL.md",
         "https://gitlab.com/g/s/r.git/a"),
        ("git", "git@example.org:a/b.git", "", "v1", "c/SKILL.md", "git@example.org:a/b.git/c@v1"),
        ("git", "https://example.org/a/b", "", "", "c/SKILL.md", "https://example.org/a/b.git/c"),
        ("git", "https://example.org/a/b", "", "", "", "https://example.org/a/b"),
        ("git", "https://github.com/a/b.git", "", "v1", "c/SKILL.md", "a/b/c@v1"),
        ("local", "./skills", "", "", "", "./skills"),
        ("local", "../skills", "", "", "", "../skills"),
    ],
)  # fmt: skip
def test_an_entry_names_its_source_in_our_words(  # noqa: PLR0913, PLR0917 - one for each field
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
        ("well-known", "example.org", "", ""),
        ("node_modules", "acme-skills", "", ""),
        ("nonsense", "acme/skills", "", ""),
        ("", "acme/skills", "", ""),
    ],
)
def test_an_entry_that_we_cannot_follow_names_nothing(
    kind: str, source: str, ref: str, path: str
) -> None:
    assert reference(kind, source, "", ref, path) is None


# Files that others touched


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1 is not JSON"),
        ("<<<<<<< HEAD\n", "line 1 is not JSON"),
        ("[]", "no skills by name"),
        ('{"version": 1}', "no skills by name"),
        ('{"version": 1, "skills": []}', "no skills by name"),
        (b'{"version": 1, "skills": {"\xff": {}}}', "not UTF-8"),
        ('{"version": 1, "skills": {"\\ud800": {}}}', "not UTF-8"),
        ('{"version": 2, "skills": {}}', "version is not 1"),
        ('{"version": "1", "skills": {}}', "version is not 1"),
        ('{"version": true, "skills": {}}', "version is not 1"),
        ('{"skills": {"a": {}}}', "version is not 1"),
        ('{"version": 1, "skills": {"a": {}, "a": {}}}', "stands there twice"),
        (" " * (4 * 1024 * 1024 + 1), "too large"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_lock_that_is_not_understood_stays_as_it_is(
    text: str | bytes, why: str, tmp_path: Path
) -> None:
    place = project(tmp_path, text)
    before = bytes_at(place)
    done = upsert_entries(place, [NpxEntry("x", "a/b", "github")], NOW, create=True)
    assert not done.is_written
    assert done.note.startswith("skills-lock.json is left as it is: ")
    assert why in done.note
    assert remove_entries(place, ["a"]) == done
    assert done.note in read_npx_lock(place).notes
    assert bytes_at(place) == before
    assert [path.name for path in tmp_path.iterdir()] == ["skills-lock.json"]


def test_a_lock_of_another_version_is_read_all_the_same(tmp_path: Path) -> None:
    text = '{"version": 9, "skills": {"x": {"source": "a/b", "sourceType": "github"}}}'
    assert list(read_npx_lock(project(tmp_path, text)).entries) == ["x"]


def test_a_lock_behind_a_link_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"version": 1, "skills": {}}', encoding="utf-8")
    (tmp_path / "skills-lock.json").symlink_to("elsewhere")
    done = upsert_entries(
        get_project_lock_path(str(tmp_path)), [NpxEntry("x", "a/b", "github")], NOW
    )
    assert "not a regular file" in done.note
    assert (tmp_path / "skills-lock.json").is_symlink()


def test_an_entry_that_is_not_understood_is_told_and_kept(tmp_path: Path) -> None:
    odd = {"a": 7, "b": {"source": 7, "sourceType": "github"}, "c": {"sourceType": "git"}}
    place = project(tmp_path, json.dumps({"version": 1, "skills": odd}))
    found = read_npx_lock(place)
    assert found.entries == {}
    assert [note.partition("the entry ")[2][:3] for note in found.notes] == ["'a'", "'b'", "'c'"]
    upsert_entries(place, [NpxEntry("x", "a/b", "github")], NOW)
    skills = json.loads(bytes_at(place))["skills"]
    assert {name: skills[name] for name in odd} == odd


def test_whatever_we_do_not_know_is_kept(tmp_path: Path) -> None:
    before = {
        "dismissed": {"tip": True},
        "version": 1,
        "later": [1.5, None],
        "skills": {
            "z": {"source": "z/z", "sourceType": "github", "computedHash": "1", "later": "y"},
            "x": {"later": "x", "source": "a/b", "ref": "old", "sourceType": "github"},
        },
    }
    place = project(tmp_path, json.dumps(before))
    upsert_entries(place, [NpxEntry("x", "a/b", "github", skill_path="SKILL.md", hash="2")], NOW)
    after = json.loads(bytes_at(place))
    assert list(after) == ["dismissed", "version", "later", "skills"]
    assert list(after["skills"]) == ["x", "z"]
    assert after["skills"]["z"] == {**before["skills"]["z"]}  # type: ignore[index]  # our own value
    assert list(after["skills"]["x"].items()) == [
        ("later", "x"),
        ("source", "a/b"),
        ("sourceType", "github"),
        ("skillPath", "SKILL.md"),
        ("computedHash", "2"),
    ]


def test_a_missing_lock_is_made_only_if_asked(tmp_path: Path) -> None:
    place = get_project_lock_path(str(tmp_path))
    new = entry("notes", "acme/skills", "notes", place)
    assert upsert_entries(place, [new], NOW) == NpxLockResult(is_written=False)
    assert remove_entries(place, ["notes"]) == NpxLockResult(is_written=False)
    assert list(tmp_path.iterdir()) == []
    assert not read_npx_lock(place).exists
    assert upsert_entries(place, [new], NOW, create=True) == NpxLockResult(is_written=True)
    assert read_npx_lock(place).entries["notes"].source == "acme/skills"


@pytest.mark.skipif(os.name != "posix", reason="permissions of other systems differ")
def test_a_lock_that_nobody_else_may_read_stays_so(tmp_path: Path) -> None:
    place = user(tmp_path)
    file = Path(place.folder) / place.name
    file.chmod(0o600)
    assert remove_entries(place, ["notes"]).is_written
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_missing_folder_is_no_lock(tmp_path: Path) -> None:
    place = get_user_lock_path(str(tmp_path), {"XDG_STATE_HOME": str(tmp_path / "state")})
    assert remove_entries(place, ["x"]) == NpxLockResult(is_written=False)
    assert read_npx_lock(place).entries == {}
    new = entry("notes", "acme/skills", "notes", place)
    assert upsert_entries(place, [new], NOW, create=True).is_written
    made = json.loads((tmp_path / "state" / "skills" / ".skill-lock.json").read_bytes())
    assert (made["version"], made["dismissed"]) == (3, {})


def test_removing_what_is_not_there_leaves_the_file_alone(tmp_path: Path) -> None:
    place = project(tmp_path, '{"version":1,"skills":{}}')
    assert remove_entries(place, ["x"]) == NpxLockResult(is_written=False)
    assert bytes_at(place) == b'{"version":1,"skills":{}}'


@pytest.mark.parametrize("state", ["", "relative"])
def test_the_users_lock_lies_at_home_unless_a_variable_moves_it(state: str, tmp_path: Path) -> None:
    place = get_user_lock_path(str(tmp_path), {"XDG_STATE_HOME": state})
    assert Path(place.folder) / place.name == tmp_path / ".agents" / ".skill-lock.json"
