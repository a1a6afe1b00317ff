"""`skillhall show`, `read` and `why`: the commands on one skill."""

import json
from collections.abc import Iterator

import click

from skillhall._internal.authoring.skill_examination import SkillExamination, examine_skill
from skillhall._internal.catalog.catalog import Catalog, CatalogSkill, Explanation
from skillhall._internal.catalog.skill_content import activate, read_skill_file
from skillhall._internal.cli.catalog_loader import find_skill, load_with_progress
from skillhall._internal.cli.command_result import CommandResult, FileContent, is_json
from skillhall._internal.cli.commands.browse.list_output import find_trust_states, serialize_skill
from skillhall._internal.cli.commands.eval_overview import find_evals
from skillhall._internal.cli.commands.trust_question import (
    TrustOptions,
    clear_for_model,
    open_command_gate,
    print_warnings,
    trust_options,
)
from skillhall._internal.cli.json_output import serialize_finding
from skillhall._internal.cli.options import json_command, skill_search_options
from skillhall._internal.cli.param_types import complete_skill
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import sanitize_line
from skillhall._internal.render.json_manifest import build_manifest
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.wiring.catalog import find_profile
from skillhall.errors import SkillNotApproved


@json_command("read", "skillhall read pdf-tools references/forms.md")
@click.argument("name", shell_complete=complete_skill)
@click.argument("file", required=False)
@skill_search_options
@trust_options
def read(
    *, name: str, file: str | None, search: SearchOptions, trust: TrustOptions
) -> CommandResult:
    """Print the instructions of the skill NAME as agents get them, or its file FILE.

    FILE is relative to the skill's folder and cannot be outside of it.
    """
    settings = read_settings(follow_links=search.follow_links)
    gate = open_command_gate(settings, find_profile(search.profile), trust)
    linked = gate.find_linked_folders()
    catalog = load_with_progress(search, linked_folders=linked, settings=settings)
    clearance = clear_for_model(gate, [find_skill(catalog, name)], catalog, settings)
    print_warnings(clearance.warnings)
    if not clearance.cleared:
        [held] = clearance.held
        raise SkillNotApproved(name, clearance.problem or held.decision.rule)
    [skill] = clearance.cleared
    if file is not None:
        content = FileContent(file, read_skill_file(skill, file))
        data = {"name": skill.name, "path": file, **content.serialize()}
        return CommandResult(data, file=content)
    text = f"{activate(skill, catalog.profile)}\n"
    data = {"name": skill.name, "location": skill.location, "text": text[:-1]}
    return CommandResult(data, skill.findings, text=text)


@json_command("show", "skillhall show pdf-tools")
@click.argument("name", shell_complete=complete_skill)
@skill_search_options
def command(*, name: str, search: SearchOptions) -> CommandResult:
    """Show the frontmatter, files, size and findings of the skill NAME."""
    catalog = load_with_progress(search)
    skill = find_skill(catalog, name)
    examination = examine_skill(skill, catalog.profile)
    if is_json():
        data = _serialize_examination(catalog, skill, examination)
        return CommandResult({"skill": data}, examination.findings)
    lines = (
        f"{label + ':':<15} {sanitize_line(value)}" if label else f"  {sanitize_line(value)}"
        for label, value in _format_fields(catalog, skill, examination)
    )
    return CommandResult({}, lines=lines)


def _serialize_examination(
    catalog: Catalog, skill: CatalogSkill, examination: SkillExamination
) -> dict[str, object]:
    frontmatter, body = examination.parsed.frontmatter, examination.parsed.body
    state = find_trust_states(catalog, read_settings()).get(skill.location)
    evals = find_evals(skill)
    return {
        **serialize_skill(skill),
        **({"trust": state} if state else {}),
        **({"evals": evals.serialize()} if evals else {}),
        "hidden": skill.hidden,
        "frontmatter": frontmatter.fields,
        "allowedTools": list(frontmatter.allowed_tools),
        "tokens": estimate_tokens(body),
        "lines": body.count("\n") + 1,
        "files": build_manifest(examination.bundle.files.values()),
    }


def _format_fields(
    catalog: Catalog, skill: CatalogSkill, examination: SkillExamination
) -> Iterator[tuple[str, str]]:
    yield "name", skill.name
    yield "description", skill.description
    yield "location", skill.location
    yield "source", f"{skill.source} ({skill.root.path})"
    if state := find_trust_states(catalog, read_settings()).get(skill.location):
        yield "trust", state
    if evals := find_evals(skill):
        yield "evals", evals.text
    for key, value in examination.parsed.frontmatter.fields.items():
        if key not in ("name", "description"):
            yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if skill.hidden:
        yield "hidden", "yes (hidden from models)"
    body = examination.parsed.body
    lines = body.count("\n") + 1
    yield "size", f"{lines} lines, about {estimate_tokens(body)} tokens"
    files = examination.bundle.files
    yield "files", str(len(files))
    for path, file in files.items():
        yield "", f"{path} ({file.size} bytes{', executable' if file.executable else ''})"
    yield "findings", str(len(examination.findings)) if examination.findings else "none"
    for finding, effect in examination.findings:
        line = f"line {finding.line}: " if finding.line else ""
        yield "", f"{effect}[{finding.code}]: {line}{finding.message}"


@json_command("why", "skillhall why pdf-tools")
@click.argument("name", shell_complete=complete_skill)
@skill_search_options
def why(*, name: str, search: SearchOptions) -> CommandResult:
    """Explain which copy of the skill NAME is used, and why the others are not."""
    catalog = load_with_progress(search)
    explanation = catalog.explain(name)
    if explanation.is_empty:
        catalog.find(name)  # raises SkillNotFound with similar names
    findings = [judged for skill in explanation.winners for judged in skill.findings]
    findings += [judged for rejected in explanation.rejected for judged in rejected.findings]
    return CommandResult(
        _serialize_explanation(explanation), findings, lines=explanation.describe()
    )


def _serialize_explanation(explanation: Explanation) -> dict[str, object]:
    return {
        "name": explanation.name,
        "profile": explanation.profile,
        "used": [serialize_skill(skill) for skill in explanation.winners],
        "shadowed": [
            {**serialize_skill(other.skill), "by": other.winner.location, "rule": other.rule}
            for other in explanation.shadowed
        ],
        "rejected": [
            {
                "id": rejected.id,
                "name": rejected.name,
                "location": rejected.location,
                "findings": [serialize_finding(judged) for judged in rejected.findings],
            }
            for rejected in explanation.rejected
        ],
    }
