"""`skillhall scan`: reports risky content in skills, highest tier first."""

from collections.abc import Iterator

import click

from skillhall._internal.authoring.risk_report import ScannedSkill, ScanReport, scan
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.author.report_formats import (
    SECURITY_SEVERITIES,
    SarifResult,
    build_sarif,
    format_location,
    to_sarif_results,
)
from skillhall._internal.cli.errors import ErrorInfo
from skillhall._internal.cli.json_output import print_json_value, serialize_finding
from skillhall._internal.cli.options import depth_option, follow_links_option, json_command
from skillhall._internal.cli.progress import scan_progress
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, sanitize_line
from skillhall._internal.skill.risks.tiers import Tier

_FORMATS = ["text", "json", "sarif"]
_SARIF_LEVELS = {Tier.HIGH: "error", Tier.MEDIUM: "warning", Tier.INFO: "note"}


@json_command("scan", "skillhall scan .agents/skills", formats=_FORMATS)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@depth_option
@follow_links_option
def command(
    *, paths: tuple[str, ...], output_format: str, depth: int | None, follow_links: bool
) -> CommandResult:
    """Scan the skills at each PATH for risky content. Nothing is executed.

    Without PATH, scan the default skill folders. The exit code is 1 if there is a high or medium
    finding, or if something could not be read. A finding does not prove that a skill is malicious,
    nor does a clean report prove that it is safe: review the reported lines.
    """
    settings = read_settings(follow_links=follow_links)
    with scan_progress() as progress:
        report = scan(paths, settings, progress, depth=depth)
    tiers = [risk.tier for risk in report.risks]
    counts = {tier.value: tiers.count(tier) for tier in Tier}
    risks = ", ".join(f"{count} {tier}" for tier, count in counts.items() if count)
    unread = f", {len(report.unscanned)} not scanned" if report.unscanned else ""
    scanned = format_count(len(report.skills), "skill")
    summary = f"{scanned} scanned: {risks or 'no findings'}{unread}"
    if output_format == "sarif":
        results = [
            SarifResult(
                risk.judged.finding,
                _SARIF_LEVELS[risk.tier],
                SECURITY_SEVERITIES[risk.tier],
                risk.id,
            )
            for risk in report.risks
        ]
        results = [*to_sarif_results(report.unscanned), *results]
        print_json_value(build_sarif(results, settings.working_directory))
    return CommandResult(
        {
            "results": (_serialize_skill(skill) for skill in report.skills),
            "summary": {"skills": len(report.skills), **counts},
        },
        (*report.unscanned, *(risk.judged for risk in report.risks)),
        None if report.is_clean else ErrorInfo("risky_content", summary),
        exit_code=0 if report.is_clean else 1,
        lines=_format_report(report, settings.working_directory) if output_format == "text" else (),
        warnings=[summary],
    )


def _format_report(report: ScanReport, working_directory: str) -> Iterator[str]:
    for finding, _ in report.unscanned:
        where = format_location(finding._replace(line=None), working_directory)
        yield f"not scanned: {where}: {sanitize_line(finding.message)}"
    tier = ""
    for risk in report.risks:
        if risk.tier != tier:
            tier = risk.tier
            yield f"{tier}:"
        finding = risk.judged.finding
        where = format_location(finding, working_directory)
        yield f"  {risk.id} {where}: {finding.code}: {sanitize_line(finding.message)}"
        if finding.hint:
            yield f"      hint: {sanitize_line(finding.hint)}"


def _serialize_skill(skill: ScannedSkill) -> dict[str, object]:
    name = {"name": skill.name} if skill.name else {}
    risks = [
        {"id": risk.id, "tier": risk.tier.value, **serialize_finding(risk.judged)}
        for risk in skill.risks
    ]
    return {"path": skill.path, **name, "findings": risks}
