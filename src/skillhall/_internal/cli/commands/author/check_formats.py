"""Output formats for the report of `skillhall check`."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from skillhall._internal.cli.commands.author.report_formats import (
    SECURITY_SEVERITIES,
    SarifResult,
    build_sarif,
    format_github,
    format_location,
    shorten_path,
)
from skillhall._internal.cli.terminal import format_count, sanitize_line
from skillhall._internal.evals.reports.junit_xml import clean_xml_text
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.project_checks.check_findings import CheckFinding, ProjectCheck
from skillhall._internal.project_checks.check_run import CheckReport

_COLORS = {"error": "\x1b[1;31m", "warning": "\x1b[33m", "note": "\x1b[2m"}
_EFFECTS = {"error": Effect.REJECT, "warning": Effect.WARN, "note": Effect.ACCEPT}
_MAX_ROWS = 200  # of a Markdown table; GitHub shows at most 1 MiB of a summary


def format_check_text(
    findings: Iterable[CheckFinding], working_directory: str, *, color: bool
) -> Iterator[str]:
    """Yield a line per finding, in the format of compilers, followed by its hint."""
    for one in findings:
        finding = one.finding
        label = f"{one.level}[{finding.code}]"
        label = f"{_COLORS[one.level]}{label}\x1b[0m" if color else label
        where = format_location(finding, working_directory)
        yield f"{where}: {label}: {sanitize_line(finding.message)} ({one.kind})"
        if finding.hint:
            yield f"    hint: {sanitize_line(finding.hint)}"


def format_check_github(findings: Iterable[CheckFinding], working_directory: str) -> Iterator[str]:
    """Yield workflow commands, which GitHub shows as annotations on the lines."""
    judged = (JudgedFinding(one.finding, _EFFECTS[one.level]) for one in findings)
    return format_github(judged, working_directory)


def build_check_sarif(
    findings: Iterable[CheckFinding], working_directory: str, base: str
) -> dict[str, object]:
    """Return the findings as a SARIF 2.1.0 log, with fingerprints relative to `base`."""
    results = [
        SarifResult(
            one.finding,
            one.level,
            SECURITY_SEVERITIES[one.tier] if one.tier is not None else "",
            one.fingerprint(base),
        )
        for one in findings
    ]
    return build_sarif(results, working_directory)


def format_check_junit(
    report: CheckReport, findings: Sequence[CheckFinding], working_directory: str
) -> str:
    """Return JUnit XML: a suite for each check, with a test case for each skill."""
    root = Element("testsuites", name="skillhall check")
    for kind in ProjectCheck:
        suite = SubElement(root, "testsuite", name=f"skillhall.{kind}")
        if kind in report.not_run:
            case = SubElement(suite, "testcase", classname=f"skillhall.{kind}", name=kind)
            SubElement(case, "skipped", message=report.not_run[kind])
        else:
            _add_cases(suite, kind, report, findings, working_directory)
        for attribute, tag in (("tests", ""), ("failures", "failure"), ("skipped", "skipped")):
            cases = [case for case in suite if not tag or case.find(tag) is not None]
            suite.set(attribute, str(len(cases)))
    for attribute in ("tests", "failures", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _add_cases(
    suite: Element,
    kind: ProjectCheck,
    report: CheckReport,
    findings: Sequence[CheckFinding],
    working_directory: str,
) -> None:
    by_skill: dict[str, list[CheckFinding]] = {path: [] for path in report.skills}
    for one in findings:
        if one.kind is kind:
            by_skill.setdefault(_find_skill(one.finding.path, report), []).append(one)
    for path, found in by_skill.items():
        name = shorten_path(path, working_directory)
        case = SubElement(
            suite, "testcase", classname=f"skillhall.{kind}", name=clean_xml_text(name)
        )
        failed = [one for one in found if one.fails]
        lines = "\n".join(format_check_text(found, working_directory, color=False))
        if failed:
            message = format_count(len(failed), "problem")
            failure = SubElement(case, "failure", message=message, type=failed[0].finding.code)
            failure.text = clean_xml_text(lines)
        elif found:
            SubElement(case, "system-out").text = clean_xml_text(lines)


def _find_skill(path: str, report: CheckReport) -> str:
    """Return the path of the checked skill that contains a file, else the path itself."""
    folders = (path, *map(str, PurePath(path).parents))
    return next((folder for folder in folders if folder in report.skills), path)


def format_check_markdown(
    summary: str, findings: Sequence[CheckFinding], working_directory: str
) -> Iterator[str]:
    """Yield a summary and a table of the findings, for comments and job summaries."""
    yield "## Skillhall"
    yield ""
    yield escape_markdown(summary)
    if not findings:
        return
    yield ""
    yield "| Level | Check | Code | Location | Message |"
    yield "|---|---|---|---|---|"
    for one in findings[:_MAX_ROWS]:
        where = escape_markdown(format_location(one.finding, working_directory))
        message = escape_markdown(one.finding.message)
        yield f"| {one.level} | {one.kind} | `{one.finding.code}` | {where} | {message} |"
    if len(findings) > _MAX_ROWS:
        yield ""
        yield f"{len(findings) - _MAX_ROWS} more findings are not shown."


def escape_markdown(text: str) -> str:
    """Return a text as Markdown without markup."""
    # Paths and messages come from skills: they must not become links, images, HTML or mentions.
    escaped = "".join(f"\\{c}" if c in "\\`*_[]()#|~!" else c for c in sanitize_line(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("@", "@\u200b")
