"""`skillhall duplicates`: finds duplicate skills."""

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from typing import TypeVar

import click

from skillhall._internal.catalog.duplicates.candidate_pairs import MAX_COMMON
from skillhall._internal.catalog.duplicates.duplicate_finder import find_duplicates
from skillhall._internal.catalog.duplicates.duplicate_report import (
    DEFAULT_THRESHOLD,
    DuplicateGroup,
    DuplicateReport,
    SkillCopy,
)
from skillhall._internal.catalog.duplicates.text_comparison import format_similarity
from skillhall._internal.cli.catalog_loader import load_with_progress, summarize_skipped
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.options import json_command, root_search_options
from skillhall._internal.cli.parallel_map import parallel_map
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.search_options import SearchOptions
from skillhall._internal.cli.terminal import format_count

_DIGITS = 4
_T = TypeVar("_T")
_R = TypeVar("_R")


@json_command("duplicates", "skillhall duplicates .agents/skills")
@root_search_options
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    default=DEFAULT_THRESHOLD,
    show_default=True,
    metavar="SHARE",
    help="Report skills that share at least this fraction of their text, from 0 to 1.",
)
def command(*, search: SearchOptions, threshold: float) -> CommandResult:
    """Find duplicate skills below each ROOT, or in the default skill folders.

    Groups of skills are equal (the same files), same-text (the same words in description and body),
    near (most words in common) or overlapping (most of one skill is in the other). Names and layout
    do not matter.
    """
    if isnan(threshold):  # click compares it with the limits
        raise click.BadParameter("'nan' is not above 0 and at most 1", param_hint="'--threshold'")
    catalog = load_with_progress(search)
    policy = catalog.profile.scan_policy
    report = find_duplicates(catalog.iter_listed(), policy, threshold, _run_with_progress)
    copies = sum(len(group.skills) - 1 for group in report.groups)
    summary = f"{format_count(report.compared, 'skill')} compared: "
    summary += f"{format_count(len(report.groups), 'group')} of copies" if copies else "no copies"
    return CommandResult(
        {
            "groups": [_serialize_group(group) for group in report.groups],
            "compared": report.compared,
            "unreadable": list(report.unreadable),
            "commonPhrases": report.common_phrases,
            "threshold": threshold,
        },
        catalog.scan_findings,
        lines=_format_groups(report),
        warnings=[*_format_limits(report), *summarize_skipped(catalog, search), summary],
    )


def _run_with_progress(
    step: str, function: Callable[[_T], _R], items: Sequence[_T], /
) -> Iterator[_R]:
    # A bar of its own for each step: it starts a thread, and processes are forked without threads.
    with transfer_progress() as progress:
        yield from parallel_map(function, items, progress, step)


def _format_groups(report: DuplicateReport) -> Iterator[str]:
    for group in report.groups:
        first, *others = group.skills
        yield f"{group.kind}  {first.name}  {first.location}"
        for copy in others:
            differences = copy.differences.describe()
            yield f"  {format_similarity(copy.similarity)}  {copy.name}  {copy.location}" + (
                f"  ({differences})" if differences else ""
            )


def _format_limits(report: DuplicateReport) -> Iterator[str]:
    if report.unreadable:
        yield f"warning: cannot read {format_count(len(report.unreadable), 'skill')}"
    if report.common_phrases:
        yield (
            f"phrases that occur in more than {MAX_COMMON} texts were used only for skills that "
            f"consist mainly of them"
        )


def _serialize_group(group: DuplicateGroup) -> dict[str, object]:
    return {
        "kind": group.kind,
        "similarity": round(group.similarity, _DIGITS),
        "skills": [_serialize_copy(copy) for copy in group.skills],
    }


def _serialize_copy(copy: SkillCopy) -> dict[str, object]:
    differences = copy.differences
    return {
        "name": copy.name,
        "location": copy.location,
        "similarity": round(copy.similarity, _DIGITS),
        "differences": {
            "fields": list(differences.fields),
            "addedLines": differences.added_lines,
            "removedLines": differences.removed_lines,
            "files": list(differences.files),
        },
    }
