"""Built-in prompts."""

from pathlib import Path

from skillhall._internal import prompt_server
from skillhall._internal.prompt_server.prompt_model import BUILT_IN
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parser import parse_skill

FOLDER = Path(prompt_server.__file__).parent / "built_in"


def test_built_in_prompts_are_served_without_findings() -> None:
    snapshot = PromptSnapshot(BUILT_IN)
    assert list(snapshot.names) == sorted(entry.stem for entry in FOLDER.iterdir())
    assert snapshot.findings == ()


def test_built_in_prompts_follow_the_specification() -> None:
    for path in FOLDER.rglob("*.md"):
        folder = path.parent.name if path.name == "SKILL.md" else path.stem
        findings = parse_skill(path.read_bytes(), folder).findings
        codes = [finding.code for finding in findings if finding.code is not Code.YAML_FLOW]
        assert codes == [], path.name


def test_built_in_prompts_have_no_arguments_and_no_placeholders() -> None:
    snapshot = PromptSnapshot(BUILT_IN)
    for name in snapshot.names:
        assert snapshot.summary(name).arguments == ()
        assert b"{{" not in snapshot.prompt_json(name)


def test_built_in_prompts_have_no_files() -> None:
    snapshot = PromptSnapshot(BUILT_IN)
    assert not any(snapshot.summary(name).has_files for name in snapshot.names)
