"""Uploads: what is refused, what is kept, and for how long."""

from pathlib import Path

import pytest

from skillhall._internal.prompts.prompt_model import Upload, UploadedFile
from skillhall._internal.prompts.uploads.folder_uploads import FolderUploads
from skillhall.errors import SkillhallError, SourceUnknown, TooLarge, UploadRejected
from tests.support.prompt_sources import make_upload
from tests.support.skills import make_skill_md

HELLO = make_skill_md("hello")


def files_of(uploads: FolderUploads, source: str = "team") -> dict[str, bytes]:
    return dict(uploads.read(source)[1].files)


def everything_below(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_of_the_one_that_was_not_used_longest_nothing_stays(tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path), max_sources=3)
    for name in ("a", "b", "c"):
        uploads.ingest(make_upload(name))
    uploads.version("a")
    uploads.ingest(make_upload("d"))
    assert len(list((tmp_path / "uploads").iterdir())) == 3


@pytest.mark.parametrize("name", ["../..", "/etc", "a/b", "C:\\x", "ä" * 200, "-rf", ".", "a b"])
def test_a_name_is_a_key_and_no_path(name: str, tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path / "data"))
    uploads.ingest(make_upload(name))
    assert files_of(uploads, name) == {"hello.md": HELLO}
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


def hostile() -> dict[str, Upload]:
    fine = UploadedFile("a.md", "YQ==")
    found = {f"path {path!r}": Upload("team", [fine, UploadedFile(path, "YQ==")]) for path in PATHS}
    found |= {f"content {c!r}": Upload("team", [fine, UploadedFile("b", c)]) for c in CONTENTS}
    twice = [["A.md"], ["a.md"], ["a.md/b"], ["A.MD/b"], ["x/a", "X/b"], ["\u00e9", "e\u0301"]]
    for paths in twice:
        files = [fine, *(UploadedFile(path, "YQ==") for path in paths)]
        found[f"together {paths}"] = Upload("team", files)
    found["no files"] = Upload("team", [])
    found["too many"] = Upload("team", [UploadedFile(f"{n}.md", "") for n in range(101)])
    found["too large"] = make_upload(files={"a": b"x" * 200_000, "b": b"x" * 62_145})
    found["far too large"] = Upload("team", [UploadedFile("a", "A" * 10_000_000)])
    found["long part"] = Upload("team", [UploadedFile("ä" * 128, "")])
    found["deep"] = Upload("team", [UploadedFile("a/" * 40 + "b", "")])
    found["long hash"] = Upload("team", [fine], "x" * 201)
    names = ["", " ", "a\nb", "a\0", "x" * 201, "\ud800"]
    return found | {f"name {name!r}": Upload(name, [fine]) for name in names}


@pytest.mark.parametrize("upload", hostile().values(), ids=hostile().keys())
def test_a_refused_upload_leaves_everything_as_it_was(upload: Upload, tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path))
    uploads.ingest(make_upload())
    before = everything_below(tmp_path)
    with pytest.raises(SkillhallError) as raised:
        uploads.ingest(upload)
    assert isinstance(raised.value, UploadRejected | TooLarge)
    assert everything_below(tmp_path) == before


@pytest.mark.parametrize(
    ("mode", "kept"), [(None, 0o644), (0o4755, 0o755), (0, 0o600), (-1, 0o777)]
)
def test_of_a_mode_only_permissions_count(mode: int | None, kept: int, tmp_path: Path) -> None:
    FolderUploads(str(tmp_path)).ingest(Upload("team", [UploadedFile("a.md", "YQ==", mode)]))
    (place,) = tmp_path.rglob("a.md")
    assert place.stat().st_mode & 0o7777 == kept


def test_what_a_killed_upload_left_is_swept(tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path))
    uploads.ingest(make_upload())
    left = tmp_path / "uploads" / ".skillhall-0123456789abcdef"
    left.mkdir()
    (left / "half").write_bytes(b"x")
    assert files_of(uploads) == {"hello.md": HELLO}
    assert not left.exists()


def test_a_manifest_that_is_damaged_makes_the_source_unknown(tmp_path: Path) -> None:
    uploads = FolderUploads(str(tmp_path))
    uploads.ingest(make_upload())
    (manifest,) = tmp_path.rglob("manifest.json")
    manifest.write_bytes(b"[]")
    with pytest.raises(SourceUnknown):
        uploads.version("team")
    assert uploads.ingest(make_upload(content_hash="1")).status == "ingested"
