"""Uploads in folders: validation, storage and eviction."""

from pathlib import Path

import pytest

from skillhall._internal.prompt_server.prompt_model import Upload, UploadedFile
from skillhall._internal.prompt_server.uploads.folder_uploads import FolderUploads
from skillhall.errors import SkillhallError, SourceUnknown, TooLarge, UploadRejected
from tests.support.actors import ACTOR
from tests.support.prompt_sources import make_upload
from tests.support.skills import make_skill_md

HELLO = make_skill_md("hello")


def read_files(uploads: FolderUploads, source: str = "team") -> dict[str, bytes]:
    return dict(uploads.read(source)[1].files)


def read_tree(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_evicted_upload_is_deleted_from_disk(tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path), max_sources=3)
    for name in ("a", "b", "c"):
        uploads.ingest(make_upload(name), actor=ACTOR)
    uploads.version("a")
    uploads.ingest(make_upload("d"), actor=ACTOR)
    assert len(list((tmp_path / "uploads").iterdir())) == 3


@pytest.mark.parametrize("name", ["../..", "/etc", "a/b", "C:\\x", "ä" * 200, "-rf", ".", "a b"])
def test_source_name_is_never_used_as_a_path(name: str, tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path / "data"))
    uploads.ingest(make_upload(name), actor=ACTOR)
    assert read_files(uploads, name) == {"hello.md": HELLO}
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


PATHS = [
    "../a.md",
    "/a.md",
    "a/../../b",
    "a\\b.md",
    "C:a",
    "a\0.md",
    "",
    ".",
    "nul.md",
    "~/a",
    "a//b",
]
CONTENTS = ["a", "YQ", "YQ=", "YR==", " YQ==", "YQ==\n", "Y_-=", "YQ==YQ==", "é", "YQ===", "="]


def hostile_uploads() -> dict[str, Upload]:
    fine = UploadedFile("a.md", "YQ==")
    cases = {f"path {p!r}": Upload("team", [fine, UploadedFile(p, "YQ==")]) for p in PATHS}
    cases |= {f"content {c!r}": Upload("team", [fine, UploadedFile("b", c)]) for c in CONTENTS}
    equal = [["A.md"], ["a.md"], ["a.md/b"], ["A.MD/b"], ["x/a", "X/b"], ["\u00e9", "e\u0301"]]
    for paths in equal:
        files = [fine, *(UploadedFile(path, "YQ==") for path in paths)]
        cases[f"together {paths}"] = Upload("team", files)
    cases["no files"] = Upload("team", [])
    cases["too many"] = Upload("team", [UploadedFile(f"{n}.md", "") for n in range(101)])
    cases["too large"] = make_upload(files={"a": b"x" * 200_000, "b": b"x" * 62_145})
    cases["far too large"] = Upload("team", [UploadedFile("a", "A" * 10_000_000)])
    cases["long part"] = Upload("team", [UploadedFile("ä" * 128, "")])
    cases["deep"] = Upload("team", [UploadedFile("a/" * 40 + "b", "")])
    cases["long hash"] = Upload("team", [fine], "x" * 201)
    names = ["", " ", "a\nb", "a\0", "x" * 201, "\ud800"]
    return cases | {f"name {name!r}": Upload(name, [fine]) for name in names}


@pytest.mark.parametrize("upload", hostile_uploads().values(), ids=hostile_uploads().keys())
def test_rejected_upload_changes_nothing(upload: Upload, tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path))
    uploads.ingest(make_upload(), actor=ACTOR)
    before = read_tree(tmp_path)
    with pytest.raises(SkillhallError) as error_info:
        uploads.ingest(upload, actor=ACTOR)
    assert isinstance(error_info.value, UploadRejected | TooLarge)
    assert read_tree(tmp_path) == before


@pytest.mark.parametrize(
    ("mode", "stored_mode"), [(None, 0o644), (0o4755, 0o755), (0, 0o600), (-1, 0o777)]
)
def test_only_permission_bits_of_a_mode_are_used(
    mode: int | None, stored_mode: int, tmp_path: Path
) -> None:
    FolderUploads(str(tmp_path)).ingest(
        Upload("team", [UploadedFile("a.md", "YQ==", mode)]), actor=ACTOR
    )
    (path,) = tmp_path.rglob("a.md")
    assert path.stat().st_mode & 0o7777 == stored_mode


def test_leftovers_of_killed_uploads_are_deleted(tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path))
    uploads.ingest(make_upload(), actor=ACTOR)
    leftover = tmp_path / "uploads" / ".skillhall-0123456789abcdef"
    leftover.mkdir()
    (leftover / "half").write_bytes(b"x")
    assert read_files(uploads) == {"hello.md": HELLO}
    assert not leftover.exists()


def test_damaged_manifest_makes_the_source_unknown(tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path))
    uploads.ingest(make_upload(), actor=ACTOR)
    (manifest,) = tmp_path.rglob("manifest.json")
    manifest.write_bytes(b"[]")
    with pytest.raises(SourceUnknown):
        uploads.version("team")
    assert uploads.ingest(make_upload(content_hash="1"), actor=ACTOR).status == "ingested"
