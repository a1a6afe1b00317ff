"""Reading many SKILL.md files: the fast way returns the same as the careful one."""

from pathlib import Path

import pytest

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.skill_content import SkillReader, read_skill_md
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillhallError
from tests.support.skills import make_skill_md

LARGE = "x" * 100_000


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    for path, body in (("a/tea", "Brew."), ("a/soup", LARGE), ("b/c/milk", "Warm."), ("egg", "")):
        file = tmp_path / "skills" / path / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_bytes(make_skill_md(file.parent.name, "Makes it.", body))
    settings = Settings(str(tmp_path), str(tmp_path), use_head_cache=False)
    return load_catalog([str(tmp_path / "skills")], settings=settings)


def test_reader_returns_the_bytes_and_the_stat_of_each_file(catalog: Catalog) -> None:
    with SkillReader() as reader:
        texts = {skill.name: (skill, reader.read(skill)) for skill in catalog}
    assert texts.keys() == {"tea", "soup", "milk", "egg"}
    for skill, text in texts.values():
        assert text.data == read_skill_md(skill)
        assert text.status is not None
        assert text.status.st_size == len(text.data)
        assert text.status.st_ino == Path(skill.location).stat().st_ino


def test_reader_never_follows_a_link_that_replaced_a_file(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("token")
    skills = {skill.name: skill for skill in catalog}
    for name, link in (("tea", skills["tea"].location), ("milk", skills["milk"].directory)):
        Path(link).rename(f"{link}.old")
        Path(link).symlink_to(tmp_path / "secret" if name == "tea" else f"{link}.old")
        with SkillReader() as reader, pytest.raises(SkillhallError):
            reader.read(skills[name])


def test_reader_reports_a_file_that_was_deleted(catalog: Catalog) -> None:
    skill = next(skill for skill in catalog if skill.name == "egg")
    Path(skill.location).unlink()
    with SkillReader() as reader, pytest.raises(SkillhallError):
        reader.read(skill)
