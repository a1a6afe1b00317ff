"""Uploads: a SKILL.md, an archive, or the files of a folder."""

import pytest

from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES
from skillhall._internal.sources.archive.upload import read_upload
from skillhall.errors import ArchiveRejected, SourceRejected, TooLarge
from tests.support.archives import zip_of
from tests.support.skills import make_skill_md

TEXT = make_skill_md("pdf")


@pytest.mark.parametrize(
    "files",
    [
        {"notes.md": TEXT},
        {"pdf.zip": zip_of({"pdf/SKILL.md": TEXT})},
        {"pdf/SKILL.md": TEXT},
        {"pdf/SKILL.md": TEXT, "pdf/data/x.bin": b"\0"},
        {"skills/pdf/SKILL.md": TEXT, "skills/README.md": b"x"},
    ],
)
def test_read_upload_accepts_skill_md_archive_and_folder(files: dict[str, bytes]) -> None:
    (bundle,) = read_upload([*files.items()])
    assert bundle.files["SKILL.md"].read() == TEXT


def test_upload_of_several_skills_returns_all() -> None:
    result = read_upload([(f"all/{name}/SKILL.md", make_skill_md(name)) for name in "ab"])
    assert [bundle.folder.rpartition("/")[2] for bundle in result] == ["a", "b"]


def test_upload_without_skill_or_with_unsafe_path_is_rejected() -> None:
    with pytest.raises(SourceRejected):
        read_upload([])
    for files in ({"x.zip": b"no zip"}, {"a/../../SKILL.md": TEXT}, {"a/x.md": b"x"}):
        with pytest.raises(ArchiveRejected):
            read_upload([*files.items()])


def test_uploaded_skill_md_beyond_size_limit_is_rejected() -> None:
    with pytest.raises(TooLarge, match=str(MAX_SKILL_MD_BYTES)):
        read_upload([("SKILL.md", b"x" * (MAX_SKILL_MD_BYTES + 1))])
