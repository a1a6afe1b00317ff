"""Options for report files, and the texts of reports in every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import NamedTuple

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import Command
from skillhall._internal.evals.reports.html_report import render_html
from skillhall._internal.evals.reports.junit_xml import render_junit
from skillhall._internal.evals.reports.markdown_summary import render_markdown
from skillhall._internal.evals.reports.skill_results import SkillResults


class ReportFiles(NamedTuple):
    """The files that a command writes reports to, by format; "" for none."""

    junit: str = ""
    markdown: str = ""
    html: str = ""

    def write(self, found: Iterable[SkillResults]) -> None:
        """Write the reports. The Markdown is appended. Raises: OSError."""
        results = [*found] if any(self) else []
        if self.junit:
            Path(self.junit).write_bytes(render_junit(results))
        if self.html:
            Path(self.html).write_text(render_html(results), encoding="utf-8")
        if self.markdown:
            # Other steps of the job write to the same file.
            with Path(self.markdown).open("a", encoding="utf-8") as file:
                file.write(render_markdown(results))


def report_options(function: Command) -> Command:
    """Add --junit, --markdown and --html, passed on as `reports`."""

    @wraps(function)
    def run(
        *, junit: str, markdown: str, html: str, **others: object
    ) -> CommandResult | int | None:
        reports = ReportFiles(junit, markdown, html)
        for file in filter(None, reports):  # before anything is paid for
            if not Path(file).absolute().parent.is_dir():
                raise click.UsageError(f"the folder of the report {file!r} does not exist")
        return function(reports=reports, **others)

    for name, text in (
        ("--html", "Write one HTML page with plots and transcripts."),
        (
            "--markdown",
            "Append a summary for pull requests to this file, such as $GITHUB_STEP_SUMMARY.",
        ),
        ("--junit", "Write JUnit XML."),
    ):
        run = click.option(name, default="", metavar="FILE", help=text)(run)
    return run


def render_report(results: Sequence[SkillResults], output_format: str) -> str:
    """Return the report in the format junit, markdown or html."""
    if output_format == "junit":
        return render_junit(results).decode()
    return render_html(results) if output_format == "html" else render_markdown(results)
