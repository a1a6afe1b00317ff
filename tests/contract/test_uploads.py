"""Uploads in folders and in databases: what is kept, and for how long."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from skillhall._internal.prompts.prompt_model import IngestResult, Upload, UploadedFile
from skillhall._internal.prompts.uploads.database_uploads import DatabaseUploads
from skillhall._internal.prompts.uploads.folder_uploads import FolderUploads, Uploads
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall.errors import SourceUnknown, TooLarge, UploadRejected
from tests.support.prompt_sources import make_upload
from tests.support.skills import make_skill_md

HELLO = make_skill_md("hello")
BYE = make_skill_md("bye")
Opens: TypeAlias = Callable[[], Uploads]


@pytest.fixture(params=["folders", "sqlite", "postgres"])
def opens(
    request: pytest.FixtureRequest, database_of: Callable[[str], Database], tmp_path: Path
) -> Opens:
    """Opens the uploads of one place, as several processes would."""
    if request.param == "folders":
        return lambda: FolderUploads(str(tmp_path), max_sources=3)
    store = SqlUploadTable(database_of(request.param))
    return lambda: DatabaseUploads(store, str(tmp_path), max_sources=3)


def files_of(uploads: Uploads, source: str = "team") -> dict[str, bytes]:
    return dict(uploads.read(source)[1].files)


def test_an_upload_is_read_back(opens: Opens) -> None:
    uploads = opens()
    files = {"hello.md": HELLO, "pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.bin": b"\x00\xff"}
    assert uploads.ingest(make_upload(files=files)) == IngestResult("team", "", 3, "ingested")
    assert files_of(uploads) == files
    assert files_of(opens()) == files


def test_the_same_hash_changes_nothing_and_an_empty_one_says_nothing(opens: Opens) -> None:
    uploads, other = opens(), {"hello.md": make_skill_md("hello", "Other.")}
    uploads.ingest(make_upload(content_hash="1"))
    before = uploads.version("team")
    assert opens().ingest(make_upload(files=other, content_hash="1")).status == "unchanged"
    assert uploads.version("team") == before
    assert uploads.ingest(make_upload(files=other, content_hash="2")).status == "ingested"
    assert uploads.version("team") != before
    assert uploads.ingest(make_upload(files=other)).status == "ingested"
    assert uploads.ingest(make_upload(files=other)).status == "ingested"


def test_the_last_upload_of_a_source_is_the_one_that_is_read(opens: Opens) -> None:
    one, other = opens(), opens()
    one.ingest(make_upload())
    other.ingest(make_upload(files={"bye.md": BYE}))
    assert files_of(one) == files_of(other) == {"bye.md": BYE}


def test_what_is_no_prompt_is_told_and_left_out(opens: Opens) -> None:
    uploads = opens()
    uploads.ingest(make_upload(files={"hello.md": HELLO, "broken.md": b"# Nothing\n"}))
    tree = uploads.read("team")[1]
    assert sorted(tree.files) == ["hello.md"]
    assert {finding.path for finding in tree.findings} == {"broken.md"}


def test_a_source_that_nobody_uploaded_says_how_to(opens: Opens) -> None:
    with pytest.raises(SourceUnknown, match="Unknown source: team") as raised:
        opens().version("team")
    assert raised.value.kind == "source_unknown"
    with pytest.raises(SourceUnknown):
        opens().read("team")


def test_the_one_that_was_not_used_longest_goes(opens: Opens) -> None:
    uploads = opens()
    for name in ("a", "b", "c"):
        uploads.ingest(make_upload(name))
    uploads.version("a")
    uploads.ingest(make_upload("d"))
    with pytest.raises(SourceUnknown):
        uploads.version("b")
    assert all(opens().version(name) for name in ("a", "c", "d"))


@pytest.mark.parametrize("name", ["../..", "/etc", "a/b", "ä" * 200, "-rf", "'; DROP TABLE x", "%"])
def test_a_name_is_a_key_and_nothing_else(name: str, opens: Opens) -> None:
    uploads = opens()
    uploads.ingest(make_upload(name))
    uploads.ingest(make_upload("other", {"bye.md": BYE}))
    assert files_of(uploads, name) == {"hello.md": HELLO}


def test_as_much_as_is_allowed_is_taken(opens: Opens) -> None:
    uploads = opens()
    files = {f"a/{number}": b"x" * 2621 for number in range(98)}
    files |= {"a/SKILL.md": make_skill_md("a"), "a/empty": b""}
    files["a/0"] += b"x" * (256 * 1024 - sum(map(len, files.values())))
    assert uploads.ingest(make_upload(files=files)).file_count == 100
    assert files_of(uploads) == files


@pytest.mark.parametrize(
    "upload",
    [
        Upload("team", []),
        Upload("team", [UploadedFile("../a.md", "YQ==")]),
        Upload("team", [UploadedFile("a.md", "YQ")]),
        make_upload(files={"a": b"x" * 200_000, "b": b"x" * 62_145}),
    ],
)
def test_a_refused_upload_leaves_everything_as_it_was(upload: Upload, opens: Opens) -> None:
    uploads = opens()
    uploads.ingest(make_upload())
    before = uploads.version("team")
    with pytest.raises((UploadRejected, TooLarge)):
        uploads.ingest(upload)
    assert (uploads.version("team"), files_of(uploads)) == (before, {"hello.md": HELLO})


SECRET = "t0ken"  # noqa: S105 - of tests alone
NAMED = [
    (f"https://me:{SECRET}@git.example.org/team/skills", "https://***@git.example.org/team/skills"),
    (f"https://{SECRET}@git.example.org/skills", "https://***@git.example.org/skills"),
    (f"https://git.example.org/skills?token={SECRET}", "https://git.example.org/skills?***"),
    (f"me:{SECRET}@git.example.org:team/skills", "***@git.example.org:team/skills"),
    (f" https://me:{SECRET}@h/x ", "https://***@h/x"),
]


@pytest.mark.parametrize(("given", "stored"), NAMED)
def test_credentials_in_the_name_of_a_source_are_never_stored(
    opens: Opens, given: str, stored: str, tmp_path: Path
) -> None:
    uploads = opens()
    assert uploads.ingest(make_upload(given)).source == stored
    assert files_of(uploads, given) == files_of(opens(), stored) == {"hello.md": HELLO}
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in kept)
    assert not any(SECRET in str(path) for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("name", ["team", "alice@laptop", "local:me-skills", "git@host:org/repo"])
def test_a_name_without_credentials_stays_as_it_is(opens: Opens, name: str) -> None:
    assert opens().ingest(make_upload(name)).source == name


def test_an_unknown_source_is_named_without_its_credentials(opens: Opens) -> None:
    with pytest.raises(SourceUnknown) as raised:
        opens().version(f"https://me:{SECRET}@git.example.org/x")
    assert str(raised.value) == "Unknown source: https://***@git.example.org/x"
    assert SECRET not in repr(vars(raised.value))
