"""Templates of the messages and hints that the pages can show, read from the source code."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import skillhall
from skillhall import errors

ROOT = Path(skillhall.__file__).parent
# Packages below a page. Those of the command line, of agents and of evals report to their users.
PACKAGES = (
    "errors.py",
    "_internal/catalog",
    "_internal/fs",
    "_internal/hints.py",
    "_internal/http",
    "_internal/net",
    "_internal/policy",
    "_internal/prompt_server",
    "_internal/skill",
    "_internal/skill_store",
    "_internal/sources",
    "_internal/storage/accounts",
    "_internal/storage/runtime_settings.py",
    "_internal/web",
    "_internal/workspace",
)
# Modules whose messages go to programs, operators or the command line.
NOT_SHOWN = (
    "_internal/catalog/cache_file",
    "_internal/catalog/catalog",
    "_internal/catalog/duplicates/duplicate_",
    "_internal/catalog/live_catalog",
    "_internal/catalog/manifests",
    "_internal/catalog/search",
    "_internal/catalog/trust/policy_loader",
    "_internal/catalog/trust/trust_summary",
    "_internal/fs/folder_watch",
    "_internal/fs/handles",
    "_internal/http/errors",
    "_internal/http/metrics",
    "_internal/http/streaming",
    "_internal/policy/readable_files",
    "_internal/policy/selection",
    "_internal/policy/profiles",
    "_internal/policy/trust/policy_file",
    "_internal/policy/trust/checklist_rows",
    "_internal/policy/trust/revocations",
    "_internal/policy/trust/security_checklist",
    "_internal/prompt_server/generate",
    "_internal/prompt_server/source_settings",
    "_internal/prompt_server/uploads",
    "_internal/skill/approved_files",
    "_internal/skill/autofix",
    "_internal/skill/evals/eval_assertion",
    "_internal/skill/evals/eval_draft",
    "_internal/skill/signatures",
    "_internal/skill/skill_uri",
    "_internal/skill_store/skill_analysis",
    "_internal/skill_store/trust",
    "_internal/skill_store/versions/reviewed_folder_store",
    "_internal/sources/git/object_store",
    "_internal/sources/mcp",
    "_internal/sources/server_api",
)
NAMES = {
    "cause",
    "description",
    "detail",
    "form",
    "hint",
    "message",
    "problem",
    "reason",
    "text",
    "why",
}
# Strings that are returned or passed as messages are, but are something else.
NOT_MESSAGES = {
    "Arguments must be text, numbers or booleans: {}",
    "The context of the session {}. Use when the user asks for it.",
    "deleted block",
    "do anything now",
    "followed repository",
    "hooks can only be installed for Claude Code{}",
    "keep this",
    "module {} has no attribute {}",
    "no longer bound",
    "returned error: 301",
    "skillhall.errors.{} is now called {}",
    "use --overwrite, or choose another name",
    "write networks as 10.1.0.0/16, separated by spaces",
    "{} names no action; add @needs(…)",
    "{}={}; Path=/; Max-Age={}; HttpOnly; SameSite={}{}",
    '<span class="invisible-char">U+{}</span>',
}
REPORTERS = {"Finding", "RiskRule", "RuleHit", "_add", "reject"}
SENTENCE = re.compile(r"[A-Za-z']{2,}.* .*[a-z]{2,}")


@cache
def find_message_templates() -> dict[str, str]:
    """Return the templates, with `{}` for each value, and the module of each."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(PACKAGES) and not name.startswith(NOT_SHOWN):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in _find_messages(tree):
                for text in _format_template(node):
                    if SENTENCE.search(text) and text not in NOT_MESSAGES:
                        found.setdefault(text, name)
    name = "_internal/policy/portability/clients.toml"
    for trait in tomllib.loads((ROOT / name).read_text(encoding="utf-8"))["traits"].values():
        found.update(dict.fromkeys(trait.values(), name))
    return found


@cache
def read_sources() -> str:
    """Return the code of the package."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py")))


def _find_messages(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the expressions that become messages: of findings, errors, hints and problems."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _reports(node.func):
            yield from node.args
            yield from (one.value for one in node.keywords if one.arg in NAMES)
        elif isinstance(node, ast.Call):
            yield from (one.value for one in node.keywords if one.arg in NAMES - {"text"})
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_holds_messages(ast.unparse(target)) for target in targets):
                yield node.value
        elif isinstance(node, ast.Return | ast.Yield) and node.value:
            yield node.value


def _reports(function: ast.expr) -> bool:
    name = ast.unparse(function).rpartition(".")[2]
    is_exception = name in dir(errors) or name.endswith(("Error", "Problem"))
    return is_exception or name in REPORTERS


def _holds_messages(target: str) -> bool:
    words = set(target.lower().replace(".", "_").replace(",", " ").strip("()_").split("_"))
    words |= set(" ".join(words).split())
    plural = {"problems", "hints", "descriptions", "messages", "reasons", "template"}
    return bool(words & (NAMES | plural))


def _format_template(node: ast.expr) -> Iterator[str]:
    """Yield the templates in an expression, such as both branches of a condition."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield _blank_fields(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    elif isinstance(node, ast.IfExp):
        yield from _format_template(node.body)
        yield from _format_template(node.orelse)
    elif isinstance(node, ast.BoolOp | ast.Tuple | ast.List):
        for part in node.values if isinstance(node, ast.BoolOp) else node.elts:
            yield from _format_template(part)
    elif isinstance(node, ast.Dict):
        for part in node.values:
            yield from _format_template(part)


def _blank_fields(text: str) -> str:
    """Replace the named fields of a template by `{}`."""
    try:
        return "".join(
            literal + ("" if name is None else "{}")
            for literal, name, _, _ in Formatter().parse(text)
        )
    except ValueError:
        return text
