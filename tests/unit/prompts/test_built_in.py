"""The prompts that come with Skillhall."""

from pathlib import Path

from skillhall import prompts
from skillhall.prompts.arguments import render_arguments
from skillhall.prompts.model import BUILT_IN
from skillhall.prompts.snapshot import Contents
from skillhall.skill.finding import Code
from skillhall.skill.parse import parse_skill

FOLDER = Path(prompts.__file__).parent / "built_in"
EXTRA = {Code.UNKNOWN_FIELD}  # `arguments` is not in the specification


def test_every_built_in_prompt_is_handed_out_and_nothing_is_wrong_with_it() -> None:
    contents = Contents(BUILT_IN)
    assert list(contents.names) == sorted(entry.stem for entry in FOLDER.iterdir())
    assert contents.findings == ()


def test_the_specification_has_nothing_against_them() -> None:
    for path in FOLDER.rglob("*.md"):
        folder = path.parent.name if path.name == "SKILL.md" else path.stem
        found = parse_skill(path.read_bytes(), folder).findings
        loud = [one.code for one in found if one.code not in EXTRA | {Code.YAML_FLOW}]
        assert loud == [], path.name


def test_every_placeholder_is_declared_and_every_argument_used() -> None:
    contents = Contents(BUILT_IN)
    for name in contents.names:
        prompt = contents.summary(name)
        filled = render_arguments(
            prompt.body, dict.fromkeys((a.name for a in prompt.arguments), "!")
        )
        assert "{{" not in filled
        assert all(f"{{{{{argument.name}}}}}" in prompt.body for argument in prompt.arguments)
        assert all(argument.description for argument in prompt.arguments)


def test_none_of_them_needs_files() -> None:
    contents = Contents(BUILT_IN)
    assert not any(contents.summary(name).has_files for name in contents.names)
