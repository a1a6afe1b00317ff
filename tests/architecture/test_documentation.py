"""What the documentation says is what the code does."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import skillhall
from skillhall import errors
from skillhall._internal.cli.app import COMMANDS
from skillhall._internal.cli.errors import EXIT_CODES
from skillhall._internal.hints import DOCS_URL
from skillhall._internal.http.errors import ERROR_STATUSES
from skillhall._internal.mcp.server import METHOD_ACTIONS, TOOL_ACTIONS
from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.skill.finding import Code
from tests.support.library_reference import MODULES, build_reference
from tools.command_reference import build_command_reference
from tools.decision_index import build_decision_index
from tools.error_reference import CODES, build_error_reference
from tools.finding_reference import build_finding_reference
from tools.route_reference import build_document, build_route_reference

ROOT = Path(__file__).resolve().parents[2]
GENERATED: dict[str, Callable[[], str]] = {
    "decisions/index.md": build_decision_index,
    "reference/commands.md": build_command_reference,
    "reference/errors.md": build_error_reference,
    "reference/findings.md": build_finding_reference,
    "reference/library.md": build_reference,
    "reference/routes.md": build_route_reference,
}


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_what_the_code_does(name: str) -> None:
    page, expected = ROOT / "docs" / name, GENERATED[name]()
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(expected, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == expected, "run python3 dev.py golden"


def test_every_code_has_a_meaning() -> None:
    assert set(CODE_DESCRIPTIONS) == set(Code)


def test_every_setting_is_documented() -> None:
    settings = (ROOT / "src/skillhall/_internal/settings.py").read_text(encoding="utf-8")
    table = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    for name in re.findall(r'"(SKILLHALL_[A-Z_]+)"', settings):
        assert f"`{name}`" in table


def test_every_method_and_tool_of_mcp_is_documented() -> None:
    page = (ROOT / "docs/reference/mcp.md").read_text(encoding="utf-8")
    assert {name for name in (*METHOD_ACTIONS, *TOOL_ACTIONS) if f"`{name}`" not in page} == set()


def test_every_route_is_in_the_reference_of_rest() -> None:
    page = (ROOT / "docs/reference/routes.md").read_text(encoding="utf-8")
    operations = [
        f"{method.upper()} {path}"
        for path, item in build_document()["paths"].items()
        for method in item
    ]
    assert [name for name in operations if f"## {name}\n" not in page] == []


def test_every_command_has_a_section_in_the_reference() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"\n### skillhall {name}\n" not in page] == []


def test_every_public_name_has_a_section_or_a_row_in_the_reference() -> None:
    page = (ROOT / "docs/reference/library.md").read_text(encoding="utf-8")
    modules = [skillhall, *(import_module(f"skillhall.{name}") for name in ("errors", *MODULES))]
    names = {name for module in modules for name in module.__all__}
    documented = {*re.findall(r"`(\w+)`", page), *re.findall(r"^#+ (\w+)$", page, re.MULTILINE)}
    assert names - documented == set()


def split_sections(page: str) -> dict[str, str]:
    """Return the sections of a page whose headings are codes."""
    parts = re.split(r"^#+ `([\w-]+)`\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_error_and_finding_code_has_a_section_with_its_fix() -> None:
    errors_page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    sections = split_sections(errors_page)
    kinds = {getattr(errors, name).kind for name in errors.__all__} - {"internal"}
    assert {kind for kind in kinds if "**Fix" not in sections.get(kind, "")} == set()
    assert {kind for kind in kinds if "**Example" not in sections.get(kind, "")} == set()
    classes = {getattr(errors, name).code for name in errors.__all__}
    codes = {*EXIT_CODES, *ERROR_STATUSES}
    assert codes - classes - set(CODES) == set()
    assert {code for code in codes if f"### Code `{code}`\n" not in errors_page} == set()
    findings_page = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8")
    sections = split_sections(findings_page)
    assert {code for code in Code if "**Example" not in sections.get(code, "")} == set()


def test_documentation_url_of_errors_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Documentation"] == DOCS_URL
    assert f"site_url: {DOCS_URL}/" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


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
