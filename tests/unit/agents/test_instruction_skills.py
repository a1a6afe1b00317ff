import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from skillhall._internal.agents.instruction_skills import InstructionSkills, InstructionSource
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.selection import Globs
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code, Finding
from tests.support.skills import make_skill, make_skill_md

EVERYTHING = Globs()
INLINE = Globs(None, ("*",))


def instructions(
    folder: Path, *sources: InstructionSource, watch: bool = True
) -> InstructionSkills:
    settings = Settings(working_directory=str(folder), cache_directory=str(folder / "cache"))
    return InstructionSkills(sources, settings, watch=watch)


def warnings_of(skills: InstructionSkills) -> list[Finding]:
    return [finding for finding, effect in skills.findings if effect is not Effect.ACCEPT]


def codes_of(skills: InstructionSkills) -> Sequence[Code]:
    return [finding.code for finding in warnings_of(skills)]


def test_relative_root_starts_at_the_working_directory(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    skills = instructions(tmp_path, InstructionSource("skills"))
    assert f"<location>{tmp_path}/skills/pdf/SKILL.md</location>" in skills.text


def test_base_replaces_the_working_directory(tmp_path: Path) -> None:
    make_skill(tmp_path / "other" / "skills", "pdf")
    skills = instructions(
        tmp_path, InstructionSource("skills", EVERYTHING, str(tmp_path / "other"))
    )
    assert f"{tmp_path}/other/skills/pdf/SKILL.md" in skills.text


def test_tilde_expands_to_the_home_folder(tmp_path: Path) -> None:
    make_skill(Path.home() / "skills", "pdf")
    assert (
        f"{Path.home()}/skills/pdf/" in instructions(tmp_path, InstructionSource("~/skills")).text
    )


def test_no_sources_give_empty_text_and_no_findings(tmp_path: Path) -> None:
    skills = instructions(tmp_path)
    assert (skills.text, skills.findings) == ("", ())


def test_special_characters_in_a_folder_name_are_escaped(tmp_path: Path) -> None:
    make_skill(tmp_path / "a&b <\"c\"> 'd'", "pdf")
    text = instructions(tmp_path, InstructionSource(".")).text
    assert "/a&amp;b &lt;&quot;c&quot;&gt; &apos;d&apos;/pdf/SKILL.md</location>" in text


def test_linked_skill_is_listed_once(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    (tmp_path / "skills" / "again").symlink_to(tmp_path / "skills" / "pdf")
    (tmp_path / "skills" / "loop").symlink_to(tmp_path / "skills")
    skills = instructions(tmp_path, InstructionSource("skills"))
    assert skills.text.count("<skill>") == 1
    assert Code.SHADOWED not in codes_of(skills)


def test_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    make_skill(tmp_path / "one", "pdf")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "linked").symlink_to(tmp_path / "one" / "pdf")
    skills = instructions(tmp_path, InstructionSource("one"), InstructionSource("two"))
    assert skills.text.count("<skill>") == 1
    assert codes_of(skills) == [Code.LINK_OUTSIDE]


def test_hidden_folders_and_node_modules_are_not_searched(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills" / "node_modules", "pdf")
    make_skill(tmp_path / "skills" / ".hidden", "csv")
    assert instructions(tmp_path, InstructionSource("skills")).text == ""


def test_missing_root_is_a_finding(tmp_path: Path) -> None:
    (finding,) = warnings_of(instructions(tmp_path, InstructionSource("nowhere")))
    assert (finding.code, finding.path) == (Code.ROOT_MISSING, str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (make_skill_md("pdf", None), Code.DESCRIPTION_MISSING),
        (make_skill_md("pdf", "  "), Code.DESCRIPTION_MISSING),
        (b"---\nname: pdf\ndescription: a: b\n---\n", Code.YAML_REPAIRED),
        (b"---\nname: [pdf\n  x\n---\n", Code.DESCRIPTION_MISSING),
        (b"# no frontmatter\n", Code.NO_FRONTMATTER),
    ],
)
def test_invalid_skill_is_omitted_with_a_finding(tmp_path: Path, data: bytes, code: Code) -> None:
    make_skill(tmp_path / "skills", "pdf", data=data)
    skills = instructions(tmp_path, InstructionSource("skills"))
    assert skills.text == ""
    assert code in codes_of(skills)


def test_name_different_from_folder_is_only_a_warning(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "folder", data=make_skill_md("pdf"))
    skills = instructions(tmp_path, InstructionSource("skills"))
    assert "<name>pdf</name>" in skills.text
    assert codes_of(skills) == [Code.NAME_NOT_FOLDER]


def test_equal_names_in_a_root_are_a_finding_with_both_paths(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills" / "a", "pdf")
    make_skill(tmp_path / "skills" / "b", "pdf")
    (finding,) = warnings_of(instructions(tmp_path, InstructionSource("skills")))
    assert (finding.code, finding.path) == (Code.SHADOWED, f"{tmp_path}/skills/b/pdf/SKILL.md")
    assert f"{tmp_path}/skills/a/pdf/SKILL.md" in finding.message


def test_equal_names_across_sources_are_a_finding_with_both_paths(tmp_path: Path) -> None:
    make_skill(tmp_path / "one", "pdf")
    make_skill(tmp_path / "two", "pdf")
    skills = instructions(tmp_path, InstructionSource("one"), InstructionSource("two", INLINE))
    (finding,) = warnings_of(skills)
    assert (finding.code, finding.path) == (Code.SAME_NAME, f"{tmp_path}/two/pdf/SKILL.md")
    assert f"{tmp_path}/one/pdf/SKILL.md" in finding.message
    assert skills.text.count("pdf/SKILL.md") == 2


def test_equal_names_with_one_selected_give_no_finding(tmp_path: Path) -> None:
    make_skill(tmp_path / "one", "pdf")
    make_skill(tmp_path / "two", "pdf")
    nothing = InstructionSource("two", Globs((), ()))
    assert codes_of(instructions(tmp_path, InstructionSource("one"), nothing)) == []


def test_skill_both_listed_and_inlined_is_a_finding(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    source = InstructionSource("skills", Globs(("*",), ("p*",)))
    assert codes_of(instructions(tmp_path, source)) == [Code.INLINE_WINS]


def test_pattern_without_a_match_is_a_finding(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf")
    source = InstructionSource("skills", Globs(("pdf", "cvs"), None))
    (finding,) = warnings_of(instructions(tmp_path, source))
    assert (finding.code, finding.path) == (Code.PATTERN_UNMATCHED, str(tmp_path / "skills"))


def test_binary_body_is_not_inlined(tmp_path: Path) -> None:
    make_skill(tmp_path / "skills", "pdf", data=make_skill_md("pdf") + b"\xff")
    skills = instructions(tmp_path, InstructionSource("skills", INLINE))
    assert skills.text == ""
    assert codes_of(skills) == [Code.NOT_UTF8, Code.PATTERN_UNMATCHED]


def test_warnings_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_skill(tmp_path / "skills" / ".hidden", "csv")
    instructions(tmp_path, InstructionSource("nowhere"), InstructionSource("skills"))
    (record,) = [r for r in caplog.records if r.name == "skillhall.agents"]
    assert record.levelno == logging.WARNING
    assert str(tmp_path / "nowhere") in record.getMessage()


def test_text_is_unchanged_until_refreshed(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skills", "pdf")
    skills = instructions(tmp_path, InstructionSource("skills"))
    before = skills.text
    (skill / "SKILL.md").write_bytes(make_skill_md("pdf", "Changed."))
    assert skills.text == before
    skills.refresh()
    assert "Changed." in skills.text


def test_edited_skill_is_noticed(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skills", "pdf", data=make_skill_md("pdf", body="one"))
    skills = instructions(tmp_path, InstructionSource("skills", INLINE))
    (skill / "SKILL.md").write_bytes(make_skill_md("pdf", body="two"))
    assert "two" in skills.current()


def test_new_nested_skill_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "skills" / "a" / "b").mkdir(parents=True)
    skills = instructions(tmp_path, InstructionSource("skills"))
    make_skill(tmp_path / "skills" / "a" / "b", "pdf")
    assert "<name>pdf</name>" in skills.current()


def test_new_root_is_noticed(tmp_path: Path) -> None:
    skills = instructions(tmp_path, InstructionSource("skills"))
    make_skill(tmp_path / "skills", "pdf")
    assert "<name>pdf</name>" in skills.current()


def test_changes_are_ignored_without_watch(tmp_path: Path) -> None:
    skills = instructions(tmp_path, InstructionSource("skills"), watch=False)
    make_skill(tmp_path / "skills", "pdf")
    assert skills.current() == ""


def test_warning_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    skills = instructions(tmp_path, InstructionSource("nowhere"))
    skills.refresh()
    assert len(caplog.records) == 1
