"""Diagnostics from findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    Diagnostic,
    DiagnosticSeverity,
    Position,
    Range,
    RenameFile,
    WorkspaceEdit,
)

from skillhall._internal.authoring.fix import fix_all, propose_fixes
from skillhall._internal.authoring.open_document import OpenDocument
from skillhall._internal.authoring.portability import PortabilityProblem
from skillhall._internal.lsp.positions import TextLines
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.portability.client_rules import Outcome
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD

SOURCE = "skillhall"
_SEVERITIES = {
    Effect.REJECT: DiagnosticSeverity.Error,
    Effect.WARN: DiagnosticSeverity.Warning,
    Effect.ACCEPT: DiagnosticSeverity.Information,
}
_PORTABILITY_SEVERITIES = {
    Outcome.DROPPED: DiagnosticSeverity.Warning,
    Outcome.LOSS: DiagnosticSeverity.Information,
}


def build_diagnostics(
    findings: Iterable[JudgedFinding], path: str, lines: TextLines | None = None
) -> list[Diagnostic]:
    """Return the diagnostics of a SKILL.md.

    Findings about other files are on its first line. Without `lines`, which are those of an open
    document, a diagnostic covers the start of its line.
    """
    found = []
    for finding, effect in findings:
        is_here = not finding.path or finding.path == path
        number = (finding.line or 1) - 1 if is_here else 0
        where = Range(Position(number, 0), Position(number, 1))
        text = finding.message
        if not is_here:
            text = f"{_describe_place(finding, path)}{text}"
        found.append(
            Diagnostic(
                range=where if lines is None else lines.line_range(number),
                message=f"{text}\nhint: {finding.hint}" if finding.hint else text,
                severity=_SEVERITIES[effect],
                code=finding.code.value,
                source=SOURCE,
            )
        )
    return found


def build_portability_diagnostics(
    problems: Iterable[PortabilityProblem], find_line: Callable[[str], int], lines: TextLines
) -> list[Diagnostic]:
    """Return a diagnostic for each problem, on the line of its field."""
    return [
        Diagnostic(
            range=lines.line_range(find_line(problem.field)),
            message=_describe_problem(problem),
            severity=_PORTABILITY_SEVERITIES[problem.outcome],
            code="portability",
            source=SOURCE,
        )
        for problem in problems
    ]


def _describe_problem(problem: PortabilityProblem) -> str:
    effect = f"{problem.field or 'a field'} is lost in"
    if problem.outcome is Outcome.DROPPED:
        effect = "the skill is dropped by"
    return f"{effect} {', '.join(problem.clients)}: {problem.text}\nhint: {problem.repair}"


def _describe_place(finding: Finding, path: str) -> str:
    """Return the other file that a finding is about; "" for the folder of the skill."""
    file, folder = Path(finding.path), Path(path).parent
    if file == folder:
        return ""
    name = file.relative_to(folder) if file.is_relative_to(folder) else file
    return f"{name}:{finding.line}: " if finding.line else f"{name}: "


def build_code_actions(
    document: OpenDocument,
    uri: str,
    lines: TextLines,
    profile: Profile,
    diagnostics: Iterable[Diagnostic],
) -> list[CodeAction]:
    """Return an action for each safe fix, and one for all of them."""
    known = [*diagnostics]
    data = document.data
    actions = [
        CodeAction(
            title=_to_imperative(fix.change),
            kind=CodeActionKind.QuickFix,
            diagnostics=[one for one in known if one.code in {str(code) for code in fix.codes}],
            edit=_build_edit(uri, lines, fix.data),
        )
        for fix in propose_fixes(document.path, data, profile)
    ]
    fixed = fix_all(document.path, data, profile)
    if fixed != data:
        actions.append(
            CodeAction(
                title="Fix all problems that are safe to fix",
                kind=CodeActionKind.SourceFixAll,
                edit=_build_edit(uri, lines, fixed),
            )
        )
    name = Path(document.path).name
    if name != SKILL_MD:
        new_uri = f"{uri.rpartition('/')[0]}/{SKILL_MD}"
        actions.append(
            CodeAction(
                title=f"Rename {name!r} to {SKILL_MD!r}",
                kind=CodeActionKind.QuickFix,
                diagnostics=[one for one in known if one.code == Code.CASE_VARIANT.value],
                edit=WorkspaceEdit(document_changes=[RenameFile(old_uri=uri, new_uri=new_uri)]),
            )
        )
    return actions


def _build_edit(uri: str, lines: TextLines, data: bytes) -> WorkspaceEdit:
    return WorkspaceEdit(changes={uri: [lines.build_edit(data.decode("utf-8", "surrogatepass"))]})


def _to_imperative(change: str) -> str:
    """Return "Quote the value…" for "quoted the value…"."""
    verb, _, rest = change.partition(" ")
    verbs = {"quoted": "Quote", "removed": "Remove", "renamed": "Rename"}
    verbs |= {"changed": "Change", "separated": "Separate"}
    return f"{verbs.get(verb, verb)} {rest}"
