"""`skillhall scan`: what is risky in skills, the gravest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import counted, read_settings
from skillhall._internal.cli.options import search_options
from skillhall._internal.cli.terminal import clean, print_lines, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.authoring.risk_report import Risk, Scanned, ScanReport

_FORMATS = ["text", "json", "sarif"]
# The level and the severity that code scanning shows for each tier.
_SARIF = {"high": ("error", "8.0"), "medium": ("warning", "5.0"), "info": ("note", "2.0")}


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
        print_lines(_lines(report, settings.working_directory))
    say(_summary(report))
    return 0 if report.clean else 1


def _lines(report: ScanReport, base: str) -> Iterator[str]:
    from skillhall._internal.cli.commands.author.report_formats import shown_path

    for note in report.unread:
        where = clean(shown_path(note.finding.path, base))
        yield f"not scanned: {where}: {clean(note.finding.message)}"
    tier = ""
    for risk in report.risks:
        if risk.tier != tier:
            tier = risk.tier
            yield f"{tier}:"
        yield from _risk_lines(risk, base)


def _risk_lines(risk: Risk, base: str) -> Iterator[str]:
    from skillhall._internal.cli.commands.author.report_formats import shown_path

    found = risk.judged.finding
    line = f":{found.line}" if found.line is not None else ""
    where = clean(shown_path(found.path, base)) + line
    yield f"  {risk.id} {where}: {found.code}: {clean(found.message)}"
    if found.hint:
        yield f"      hint: {clean(found.hint)}"


def _print_json(report: ScanReport) -> None:
    from skillhall._internal.cli.json_output import print_report

    data: dict[str, object] = {"results": (_skill_as_json(skill) for skill in report.skills)}
    data["summary"] = _counts(report)
    error = None
    if not report.clean:
        error = {"code": "risky_content", "message": _summary(report)}
    findings = (*report.unread, *(risk.judged for risk in report.risks))
    print_report("scan", data, findings, error)


def _print_sarif(report: ScanReport, base: str) -> None:
    from skillhall._internal.cli.commands.author.report_formats import (
        SarifResult,
        as_sarif,
        judged_results,
    )
    from skillhall._internal.cli.json_output import print_json
    from skillhall._version import VERSION

    risks = [
        SarifResult(risk.judged.finding, *_SARIF[risk.tier.value], fingerprint=risk.id)
        for risk in report.risks
    ]
    print_json(as_sarif([*judged_results(report.unread), *risks], base, VERSION))


def _skill_as_json(skill: Scanned) -> dict[str, object]:
    name = {"name": skill.name} if skill.name else {}
    return {"path": skill.path, **name, "findings": [_risk_as_json(one) for one in skill.risks]}


def _risk_as_json(risk: Risk) -> dict[str, object]:
    from skillhall._internal.cli.json_output import finding_as_json

    return {"id": risk.id, "tier": risk.tier.value, **finding_as_json(risk.judged)}


def _counts(report: ScanReport) -> dict[str, int]:
    from skillhall._internal.skill.risks.tiers import Tier

    tiers = [risk.tier for risk in report.risks]
    return {"skills": len(report.skills), **{tier.value: tiers.count(tier) for tier in Tier}}


def _summary(report: ScanReport) -> str:
    counts = _counts(report)
    told = counted(counts.pop("skills"), "skill") + " scanned"
    found = ", ".join(f"{count} {tier}" for tier, count in counts.items() if count)
    unread = f", {len(report.unread)} not scanned" if report.unread else ""
    return f"{told}: {found or 'nothing found'}{unread}"
