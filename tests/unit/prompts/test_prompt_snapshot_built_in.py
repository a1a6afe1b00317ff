"""The prompts that come with Skillhall."""

from pathlib import Path

from skillhall._internal import prompts
from skillhall._internal.prompts.prompt_model import BUILT_IN
from skillhall._internal.prompts.prompt_snapshot import PromptContents
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parser import parse_skill

FOLDER = Path(prompts.__file__).parent / "built_in"


def test_every_built_in_prompt_is_handed_out_and_nothing_is_wrong_with_it() -> None:
    contents = PromptContents(BUILT_IN)
    assert list(contents.names) == sorted(entry.stem for entry in FOLDER.iterdir())
    assert contents.findings == ()


def test_the_specification_has_nothing_against_them() -> None:
    for path in FOLDER.rglob("*.md"):
        folder = path.parent.name if path.name == "SKILL.md" else path.stem
        found = parse_skill(path.read_bytes(), folder).findings
        loud = [item.code for item in found if item.code is not Code.YAML_FLOW]
        assert loud == [], path.name


def test_they_can_be_rendered_without_arguments_and_leave_no_placeholder() -> None:
    contents = PromptContents(BUILT_IN)
    for name in contents.names:
        assert contents.summary(name).arguments == ()
        assert b"{{" not in contents.prompt_json(name)


def test_none_of_them_needs_files() -> None:
    contents = PromptContents(BUILT_IN)
    assert not any(contents.summary(name).has_files for name in contents.names)
