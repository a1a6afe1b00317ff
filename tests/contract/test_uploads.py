"""Contract of uploads in folders and in databases."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from skillhall._internal.prompt_server.prompt_model import IngestResult, Upload, UploadedFile
from skillhall._internal.prompt_server.uploads.database_uploads import DatabaseUploads
from skillhall._internal.prompt_server.uploads.folder_uploads import FolderUploads
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.upload_rows import SqlUploadTable
from skillhall.errors import SourceUnknown, TooLarge, UploadRejected
from tests.support.actors import ACTOR
from tests.support.prompt_sources import make_upload
from tests.support.skills import make_skill_md

HELLO = make_skill_md("hello")
BYE = make_skill_md("bye")
Uploads: TypeAlias = FolderUploads | DatabaseUploads
OpenUploads: TypeAlias = Callable[[], Uploads]


@pytest.fixture(params=["folders", "sqlite", "postgres"])
def open_uploads(
    request: pytest.FixtureRequest, open_database_of: Callable[[str], Database], tmp_path: Path
) -> OpenUploads:
    """Return a function that opens the same uploads, as several processes would."""
    if request.param == "folders":
        return lambda: FolderUploads(str(tmp_path), max_sources=3)
    store = SqlUploadTable(open_database_of(request.param))
    return lambda: DatabaseUploads(store, str(tmp_path), max_sources=3)


def read_files(uploads: Uploads, source: str = "team") -> dict[str, bytes]:
    return dict(uploads.read(source)[1].files)


def test_upload_can_be_read(open_uploads: OpenUploads) -> None:
    uploads = open_uploads()
    files = {"hello.md": HELLO, "pdf/SKILL.md": make_skill_md("pdf"), "pdf/a.bin": b"\x00\xff"}
    assert uploads.ingest(make_upload(files=files), actor=ACTOR) == IngestResult(
        "team", "", 3, "ingested"
    )
    assert read_files(uploads) == files
    assert read_files(open_uploads()) == files


def test_upload_with_an_equal_hash_is_unchanged(open_uploads: OpenUploads) -> None:
    uploads, other = open_uploads(), {"hello.md": make_skill_md("hello", "Other.")}
    uploads.ingest(make_upload(content_hash="1"), actor=ACTOR)
    before = uploads.version("team")
    assert (
        open_uploads().ingest(make_upload(files=other, content_hash="1"), actor=ACTOR).status
        == "unchanged"
    )
    assert uploads.version("team") == before
    assert (
        uploads.ingest(make_upload(files=other, content_hash="2"), actor=ACTOR).status == "ingested"
    )
    assert uploads.version("team") != before
    assert uploads.ingest(make_upload(files=other), actor=ACTOR).status == "ingested"
    assert uploads.ingest(make_upload(files=other), actor=ACTOR).status == "ingested"


def test_last_upload_of_a_source_wins(open_uploads: OpenUploads) -> None:
    first, second = open_uploads(), open_uploads()
    first.ingest(make_upload(), actor=ACTOR)
    second.ingest(make_upload(files={"bye.md": BYE}), actor=ACTOR)
    assert read_files(first) == read_files(second) == {"bye.md": BYE}


def test_invalid_prompt_is_reported_and_skipped(open_uploads: OpenUploads) -> None:
    uploads = open_uploads()
    uploads.ingest(make_upload(files={"hello.md": HELLO, "broken.md": b"# Nothing\n"}), actor=ACTOR)
    tree = uploads.read("team")[1]
    assert sorted(tree.files) == ["hello.md"]
    assert {finding.path for finding in tree.findings} == {"broken.md"}


def test_unknown_source_has_a_hint(open_uploads: OpenUploads) -> None:
    with pytest.raises(SourceUnknown, match="Unknown source: team") as error_info:
        open_uploads().version("team")
    assert error_info.value.kind == "source_unknown"
    with pytest.raises(SourceUnknown):
        open_uploads().read("team")


def test_least_recently_used_upload_is_evicted(open_uploads: OpenUploads) -> None:
    uploads = open_uploads()
    for name in ("a", "b", "c"):
        uploads.ingest(make_upload(name), actor=ACTOR)
    uploads.version("a")
    uploads.ingest(make_upload("d"), actor=ACTOR)
    with pytest.raises(SourceUnknown):
        uploads.version("b")
    assert all(open_uploads().version(name) for name in ("a", "c", "d"))


@pytest.mark.parametrize("name", ["../..", "/etc", "a/b", "ä" * 200, "-rf", "'; DROP TABLE x", "%"])
def test_source_name_is_never_used_as_a_path(name: str, open_uploads: OpenUploads) -> None:
    uploads = open_uploads()
    uploads.ingest(make_upload(name), actor=ACTOR)
    uploads.ingest(make_upload("other", {"bye.md": BYE}), actor=ACTOR)
    assert read_files(uploads, name) == {"hello.md": HELLO}


def test_upload_at_the_limits_is_accepted(open_uploads: OpenUploads) -> None:
    uploads = open_uploads()
    files = {f"a/{number}": b"x" * 2621 for number in range(98)}
    files |= {"a/SKILL.md": make_skill_md("a"), "a/empty": b""}
    files["a/0"] += b"x" * (256 * 1024 - sum(map(len, files.values())))
    assert uploads.ingest(make_upload(files=files), actor=ACTOR).file_count == 100
    assert read_files(uploads) == files


@pytest.mark.parametrize(
    "upload",
    [
        Upload("team", []),
        Upload("team", [UploadedFile("../a.md", "YQ==")]),
        Upload("team", [UploadedFile("a.md", "YQ")]),
        make_upload(files={"a": b"x" * 200_000, "b": b"x" * 62_145}),
    ],
)
def test_rejected_upload_changes_nothing(upload: Upload, open_uploads: OpenUploads) -> None:
    uploads = open_uploads()
    uploads.ingest(make_upload(), actor=ACTOR)
    before = uploads.version("team")
    with pytest.raises((UploadRejected, TooLarge)):
        uploads.ingest(upload, actor=ACTOR)
    assert (uploads.version("team"), read_files(uploads)) == (before, {"hello.md": HELLO})


SECRET = "t0ken"  # noqa: S105 - only for tests
NAMES_WITH_CREDENTIALS = [
    (f"https://me:{SECRET}@git.example.org/team/skills", "https://***@git.example.org/team/skills"),
    (f"https://{SECRET}@git.example.org/skills", "https://***@git.example.org/skills"),
    (f"https://git.example.org/skills?token={SECRET}", "https://git.example.org/skills?***"),
    (f"me:{SECRET}@git.example.org:team/skills", "***@git.example.org:team/skills"),
    (f" https://me:{SECRET}@h/x ", "https://***@h/x"),
]


@pytest.mark.parametrize(("name", "stored"), NAMES_WITH_CREDENTIALS)
def test_credentials_in_a_source_name_are_not_stored(
    open_uploads: OpenUploads, name: str, stored: str, tmp_path: Path
) -> None:
    uploads = open_uploads()
    assert uploads.ingest(make_upload(name), actor=ACTOR).source == stored
    assert read_files(uploads, name) == read_files(open_uploads(), stored) == {"hello.md": HELLO}
    paths = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in paths)
    assert not any(SECRET in str(path) for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("name", ["team", "alice@laptop", "local:me-skills", "git@host:org/repo"])
def test_source_name_without_credentials_is_unchanged(open_uploads: OpenUploads, name: str) -> None:
    assert open_uploads().ingest(make_upload(name), actor=ACTOR).source == name


def test_unknown_source_error_contains_no_credentials(open_uploads: OpenUploads) -> None:
    with pytest.raises(SourceUnknown) as error_info:
        open_uploads().version(f"https://me:{SECRET}@git.example.org/x")
    assert str(error_info.value) == "Unknown source: https://***@git.example.org/x"
    assert SECRET not in repr(vars(error_info.value))
