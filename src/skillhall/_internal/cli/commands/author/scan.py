"""`skillhall scan`: what is risky in skills, the gravest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.options import search_options
from skillhall._internal.cli.terminal import print_lines, print_message, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.authoring.risk_report import Risk, ScannedSkill, ScanReport

_FORMATS = ["text", "json", "sarif"]
# The level and the severity that code scanning shows for each tier.
_SARIF_SEVERITIES = {
    "high": ("error", "8.0"),
    "medium": ("warning", "5.0"),
    "info": ("note", "2.0"),
}


@click.command("scan", epilog="Example: skillhall scan .agents/skills")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@search_options
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    *, paths: tuple[str, ...], form: str, depth: int | None, follow_links: bool, as_json: bool
) -> int:
    """Look for risky content in the skills at each PATH; nothing of them is run.

    Without PATH the folders are scanned where agents keep skills. The exit code is 1 if a finding
    is high or medium, or if something could not be read. No finding proves that a skill is bad, and
    none that it is good: read what you are told about.
    """
    from skillhall._internal.authoring.risk_report import scan
    from skillhall._internal.cli.progress import scan_progress

    settings = read_settings(follow_links=follow_links)
    with scan_progress() as progress:
        report = scan(paths, settings, progress, depth=depth)
    if as_json or form == "json":
        _print_json(report)
    elif form == "sarif":
        _print_sarif(report, settings.working_directory)
    else:
        print_lines(_format_report(report, settings.working_directory))
    print_message(_format_summary(report))
    return 0 if report.is_clean else 1


def _format_report(report: ScanReport, working_directory: str) -> Iterator[str]:
    from skillhall._internal.cli.commands.author.report_formats import shorten_path

    for note in report.unscanned:
        where = sanitize_line(shorten_path(note.finding.path, working_directory))
        yield f"not scanned: {where}: {sanitize_line(note.finding.message)}"
    tier = ""
    for risk in report.risks:
        if risk.tier != tier:
            tier = risk.tier
            yield f"{tier}:"
        yield from _format_risk(risk, working_directory)


def _format_risk(risk: Risk, working_directory: str) -> Iterator[str]:
    from skillhall._internal.cli.commands.author.report_formats import shorten_path

    found = risk.judged.finding
    line = f":{found.line}" if found.line is not None else ""
    where = sanitize_line(shorten_path(found.path, working_directory)) + line
    yield f"  {risk.id} {where}: {found.code}: {sanitize_line(found.message)}"
    if found.hint:
        yield f"      hint: {sanitize_line(found.hint)}"


def _print_json(report: ScanReport) -> None:
    from skillhall._internal.cli.json_output import print_json_report

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
    from skillhall._internal.cli.json_output import print_json_value
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
    return {"path": skill.path, **name, "findings": [_serialize_risk(one) for one in skill.risks]}


def _serialize_risk(risk: Risk) -> dict[str, object]:
    from skillhall._internal.cli.json_output import serialize_finding

    return {"id": risk.id, "tier": risk.tier.value, **serialize_finding(risk.judged)}


def _count_by_tier(report: ScanReport) -> dict[str, int]:
    from skillhall._internal.skill.risks.tiers import Tier

    tiers = [risk.tier for risk in report.risks]
    return {"skills": len(report.skills), **{tier.value: tiers.count(tier) for tier in Tier}}


def _format_summary(report: ScanReport) -> str:
    counts = _count_by_tier(report)
    told = format_count(counts.pop("skills"), "skill") + " scanned"
    found = ", ".join(f"{count} {tier}" for tier, count in counts.items() if count)
    unread = f", {len(report.unscanned)} not scanned" if report.unscanned else ""
    return f"{told}: {found or 'nothing found'}{unread}"
