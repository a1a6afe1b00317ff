from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.authoring.scaffold import DEFAULT_DESCRIPTION, create_skill
from skillhall._internal.authoring.validate import validate
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.settings import Settings
from skillhall.errors import Conflict, SkillRejected


def test_new_skill_follows_the_specification(tmp_path: Path) -> None:
    created = create_skill(str(tmp_path / "new"), "pdf-tools", "Use for: PDFs # all of them")
    settings = Settings(str(tmp_path), str(tmp_path), use_head_cache=False)
    (result,) = validate([created.path], SPECIFICATION, settings).results
    assert (result.findings, result.location) == ((), created.location)
    assert result.name == "pdf-tools"


def test_existing_folder_is_a_conflict_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "pdf-tools").mkdir()
    with pytest.raises(Conflict):
        create_skill(str(tmp_path), "pdf-tools")
    assert list((tmp_path / "pdf-tools").iterdir()) == []
    assert len(list(tmp_path.iterdir())) == 1


def test_broken_link_is_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "pdf-tools").symlink_to("gone")
    with pytest.raises(Conflict):
        create_skill(str(tmp_path), "pdf-tools")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PDF_Tools", "'pdf-tools'"),
        ("a--b", "'a-b'"),
        ("", "'skill'"),
        ("a/b", "give the folder separately"),
    ],
)
def test_invalid_name_is_rejected_with_a_suggestion(name: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(SkillRejected) as caught:
        create_skill(str(tmp_path), name)
    assert hint in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("description", ["", "x" * 1025, "\x1b[31m", "a\0b"])
def test_invalid_description_is_rejected(description: str, tmp_path: Path) -> None:
    with pytest.raises(SkillRejected):
        create_skill(str(tmp_path), "pdf-tools", description)
    assert list(tmp_path.iterdir()) == []


def test_default_description_has_a_valid_length() -> None:
    assert 0 < len(DEFAULT_DESCRIPTION) <= 1024


@given(st.text(max_size=30))
def test_no_name_creates_a_path_outside_of_the_folder(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp("names")
    try:
        created = create_skill(str(folder), name)
    except SkillRejected:
        assert list(folder.iterdir()) == []
    else:
        assert Path(created.path).parent == folder
