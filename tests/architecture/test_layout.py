"""Folders, module names and class names: small, unique, and mirrored by the unit tests."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "skillhall"
INTERNAL = PACKAGE / "_internal"
UNIT = ROOT / "tests" / "unit"
MAX_FILES = 18  # Python files in one folder, with its __init__
# Imports inside functions outside `cli`, see docs/decisions/0061. The number may only shrink.
MAX_LATE_IMPORTS = 45

# Stems that occur in several folders, always with the same meaning. The list may only shrink.
COMMANDS = {"backup", "blocks", "chat", "install", "prompts", "remove"}
COMMANDS |= {"templates", "update", "validate"}  # a command and the operation it runs
SURFACE_PARTS = {"app", "errors", "import_pages", "requests", "responses", "serializers"}
SOURCE_PARTS = {"client", "source"}  # one per kind of source
BUILDERS = {"catalog", "workspace"}  # in `wiring`, next to what they build
ADAPTERS = {"anthropic", "google_adk", "json_schema", "langchain", "openai_agents", "pydantic_ai"}
ADAPTERS |= {"claude_agent_sdk", "deepagents", "smolagents"}
ADAPTERS |= {"agent_framework", "haystack", "llama_index"}
SHARED_STEMS = COMMANDS | SURFACE_PARTS | SOURCE_PARTS | BUILDERS | ADAPTERS
# Each framework's users expect this name.
SHARED_CLASSES = {"SkillsToolset"}


def modules() -> list[Path]:
    """The modules of the package, without `__init__` and `__main__`."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not path.stem.startswith("__")]


def test_folders_have_few_modules() -> None:
    sizes = {
        folder.relative_to(PACKAGE).as_posix(): len([*folder.glob("*.py")])
        for folder in PACKAGE.rglob("*")
        if folder.is_dir()
    }
    assert {name: size for name, size in sizes.items() if size > MAX_FILES} == {}


def test_module_names_have_one_meaning() -> None:
    folders = defaultdict(list)
    for path in modules():
        folders[path.stem].append(path.parent)
    assert {stem for stem, parents in folders.items() if len(parents) > 1} == SHARED_STEMS


def test_public_class_names_are_unique() -> None:
    homes = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    assert {name for name, paths in homes.items() if len(paths) > 1} == SHARED_CLASSES


def names_a_module(test: Path) -> bool:
    """Whether a test file is called `test_<module>` or `test_<module>_<aspect>`."""
    folder = INTERNAL / test.parent.relative_to(UNIT)
    if test.stem == "test_errors":  # public, not below `_internal`
        return True
    words = test.stem.removeprefix("test_").split("_")
    stems = ("_".join(words[:end]) for end in range(len(words), 0, -1))
    return any((folder / f"{stem}.py").exists() or (folder / stem).is_dir() for stem in stems)


def test_unit_tests_mirror_the_package() -> None:
    assert [path for path in sorted(UNIT.rglob("test_*.py")) if not names_a_module(path)] == []


def count_late_imports(module: Path) -> int:
    """Return the number of import statements inside functions."""
    functions = (
        node
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    late = {
        node.lineno
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(late)


def test_imports_inside_functions_do_not_grow() -> None:
    outside = [path for path in modules() if INTERNAL / "cli" not in path.parents]
    assert sum(map(count_late_imports, outside)) <= MAX_LATE_IMPORTS


def test_only_the_gates_make_cleared_skills() -> None:
    made = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # Such as `ClearedSkill(…)`, `map(ClearedSkill, …)` or `cast("ClearedSkill", …)`.
            if isinstance(node, ast.Call):
                named = ast.unparse(node.func), *map(ast.unparse, node.args)
                if any("ClearedSkill" in text for text in named):
                    made.add(path.relative_to(INTERNAL).as_posix())
    gates = ("cached_gate", "gate", "trust_gate")
    assert made == {f"catalog/trust/{name}.py" for name in gates}
