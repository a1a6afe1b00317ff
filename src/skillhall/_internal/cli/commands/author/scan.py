"""`skillhall scan`: reports risky content in skills, highest tier first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.json_output import (
    print_json_report,
    print_json_value,
    serialize_finding,
)
from skillhall._internal.cli.options import format_options, search_options
from skillhall._internal.cli.terminal import print_lines, print_message, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.authoring.risk_report import Risk, ScannedSkill, ScanReport

_FORMATS = ["text", "json", "sarif"]
# SARIF level and security severity of each tier, as GitHub code scanning shows them.
_SARIF_SEVERITIES = {
    "high": ("error", "8.0"),
    "medium": ("warning", "5.0"),
    "info": ("note", "2.0"),
}


@click.command("scan", epilog="Example: skillhall scan .agents/skills")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@format_options(_FORMATS)
@search_options
def command(
    *,
    paths: tuple[str, ...],
    output_format: str,
    depth: int | None,
    follow_links: bool,
    as_json: bool,
) -> int:
    """Scan the skills at each PATH for risky content. Nothing is executed.

    Without PATH, scan the default skill folders. The exit code is 1 if there is a high or medium
    finding, or if something could not be read. A finding does not prove that a skill is malicious,
    nor does a clean report prove that it is safe: review the reported lines.
    """
    from skillhall._internal.authoring.risk_report import scan
    from skillhall._internal.cli.progress import scan_progress

    settings = read_settings(follow_links=follow_links)
    with scan_progress() as progress:
        report = scan(paths, settings, progress, depth=depth)
    if as_json or output_format == "json":
        _print_json(report)
    elif output_format == "sarif":
        _print_sarif(report, settings.working_directory)
    else:
        print_lines(_format_report(report, settings.working_directory))
    print_message(_format_summary(report))
    return 0 if report.is_clean else 1


def _format_report(report: ScanReport, working_directory: str) -> Iterator[str]:
    from skillhall._internal.cli.commands.author.report_formats import shorten_path

    for judged in report.unscanned:
        where = sanitize_line(shorten_path(judged.finding.path, working_directory))
        yield f"not scanned: {where}: {sanitize_line(judged.finding.message)}"
    tier = ""
    for risk in report.risks:
        if risk.tier != tier:
            tier = risk.tier
            yield f"{tier}:"
        yield from _format_risk(risk, working_directory)


def _format_risk(risk: Risk, working_directory: str) -> Iterator[str]:
    from skillhall._internal.cli.commands.author.report_formats import shorten_path

    finding = risk.judged.finding
    line = f":{finding.line}" if finding.line is not None else ""
    where = sanitize_line(shorten_path(finding.path, working_directory)) + line
    yield f"  {risk.id} {where}: {finding.code}: {sanitize_line(finding.message)}"
    if finding.hint:
        yield f"      hint: {sanitize_line(finding.hint)}"


def _print_json(report: ScanReport) -> None:
    data: dict[str, object] = {"results": (_serialize_skill(skill) for skill in report.skills)}
    data["summary"] = _count_by_tier(report)
    error = None
    if not report.is_clean:
        error = {"code": "risky_content", "message": _format_summary(report)}
    findings = (*report.unscanned, *(risk.judged for risk in report.risks))
    print_json_report("scan", data, findings, error)


def _print_sarif(report: ScanReport, working_directory: str) -> None:
    from skillhall._internal.cli.commands.author.report_formats import (
        SarifResult,
        build_sarif,
        to_sarif_results,
    )
    from skillhall._version import VERSION

    risks = [
        SarifResult(risk.judged.finding, *_SARIF_SEVERITIES[risk.tier.value], fingerprint=risk.id)
        for risk in report.risks
    ]
    print_json_value(
        build_sarif([*to_sarif_results(report.unscanned), *risks], working_directory, VERSION)
    )


def _serialize_skill(skill: ScannedSkill) -> dict[str, object]:
    name = {"name": skill.name} if skill.name else {}
    return {"path": skill.path, **name, "findings": [_serialize_risk(risk) for risk in skill.risks]}


def _serialize_risk(risk: Risk) -> dict[str, object]:
    return {"id": risk.id, "tier": risk.tier.value, **serialize_finding(risk.judged)}


def _count_by_tier(report: ScanReport) -> dict[str, int]:
    from skillhall._internal.skill.risks.tiers import Tier

    tiers = [risk.tier for risk in report.risks]
    return {"skills": len(report.skills), **{tier.value: tiers.count(tier) for tier in Tier}}


def _format_summary(report: ScanReport) -> str:
    counts = _count_by_tier(report)
    scanned = format_count(counts.pop("skills"), "skill") + " scanned"
    risks = ", ".join(f"{count} {tier}" for tier, count in counts.items() if count)
    unread = f", {len(report.unscanned)} not scanned" if report.unscanned else ""
    return f"{scanned}: {risks or 'no findings'}{unread}"
