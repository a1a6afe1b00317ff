"""What the documentation says is what the code does."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skillhall
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.skill.finding import Code
from tests.support.library_reference import build_reference

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = ROOT / "docs" / "reference" / "findings.md"
SHORT = {"accept": "·", "warn": "warn", "reject": "**reject**"}


def findings_reference() -> str:
    """The reference of finding codes, made from the code."""
    names = list(PROFILES)
    lines = [
        "# Finding codes",
        "",
        "What each finding means, and what each profile makes of it: `·` accepts without a word.",
        "",
        f"| Code | Meaning | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for code in Code:
        effects = [SHORT[PROFILES[name].load_policy.get_effect(code)] for name in names]
        lines.append(f"| `{code}` | {CODE_DESCRIPTIONS[code]} | {' | '.join(effects)} |")
    return "\n".join(lines) + "\n"


def test_the_reference_of_findings_is_what_the_profiles_do() -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        FINDINGS.write_text(findings_reference(), encoding="utf-8")
    assert FINDINGS.read_text(encoding="utf-8") == findings_reference()


def test_every_code_has_a_meaning() -> None:
    assert set(CODE_DESCRIPTIONS) == set(Code)


def test_every_setting_is_documented() -> None:
    settings = (ROOT / "src/skillhall/_internal/settings.py").read_text(encoding="utf-8")
    table = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    for name in re.findall(r'"(SKILLHALL_[A-Z_]+)"', settings):
        assert f"`{name}`" in table


def test_the_reference_of_the_library_is_what_signatures_and_docstrings_say() -> None:
    page = ROOT / "docs" / "reference" / "library.md"
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(build_reference(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == build_reference()


def test_every_public_name_can_be_imported() -> None:
    for name in skillhall.__all__:
        assert getattr(skillhall, name) is not None
    assert dir(skillhall) == sorted(skillhall.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        skillhall.nonsense  # noqa: B018 - the access is the test


def test_type_checkers_and_the_interpreter_see_the_same_public_names() -> None:
    tree = ast.parse((ROOT / "src/skillhall/__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed | {"__version__"} == set(skillhall.__all__)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_every_example_runs(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, example], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert "<available_skills>" in done.stdout


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_action_of_the_audit_log_is_in_its_guide() -> None:
    guide = (ROOT / "docs" / "guides" / "audit.md").read_text(encoding="utf-8")
    groups = "audit|backup|inventory|session|skill|snapshot|source|template|token|user|version"
    literal = re.compile(rf'"((?:{groups})\.(?!zip)[a-z]+)"')
    actions = {
        action
        for folder in ("backup", "prompt_server", "skill_store", "storage", "workspace")
        for path in (ROOT / "src/skillhall/_internal" / folder).rglob("*.py")
        if "audit" in (text := path.read_text(encoding="utf-8")).lower()
        for action in literal.findall(text)
    }
    assert "skill.edit" in actions
    assert {action for action in actions if f"`{action}`" not in guide} == set()


def test_named_tests_of_the_trust_checks_exist() -> None:
    text = (ROOT / "docs/reference/trust-checks.md").read_text(encoding="utf-8")
    file = ""
    names = re.findall(r"`((?:[a-z_]+/)*(?:test_\w+\.py)?)(?:::(test_\w+))?`", text)
    assert len(names) > 40
    for path, test in names:
        file = path or file
        source = ROOT / "tests" / file
        assert source.exists(), path
        assert not test or f"def {test}(" in source.read_text(encoding="utf-8"), test
