"""What a browser sends: a SKILL.md, an archive, or the files of a folder."""

import pytest

from skillhall._internal.skill.frontmatter import MAX_SKILL_MD_BYTES
from skillhall._internal.sources.opener import read_upload
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
def test_the_skill_is_found_in_whatever_is_sent(files: dict[str, bytes]) -> None:
    (bundle,) = read_upload([*files.items()])
    assert bundle.files["SKILL.md"].read() == TEXT


def test_a_folder_of_several_skills_gives_all_of_them() -> None:
    found = read_upload([(f"all/{name}/SKILL.md", make_skill_md(name)) for name in "ab"])
    assert [bundle.folder.rpartition("/")[2] for bundle in found] == ["a", "b"]


def test_what_holds_no_skill_or_leaves_its_folder_is_refused() -> None:
    with pytest.raises(SourceRejected):
        read_upload([])
    for files in ({"x.zip": b"no zip"}, {"a/../../SKILL.md": TEXT}, {"a/x.md": b"x"}):
        with pytest.raises(ArchiveRejected):
            read_upload([*files.items()])


def test_a_skill_md_alone_is_limited_to_the_size_a_skill_md_may_have() -> None:
    with pytest.raises(TooLarge, match=str(MAX_SKILL_MD_BYTES)):
        read_upload([("SKILL.md", b"x" * (MAX_SKILL_MD_BYTES + 1))])
