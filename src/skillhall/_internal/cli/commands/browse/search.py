"""`skillhall search`: searches skills, best matches first."""

import sys

import click

from skillhall._internal.catalog.search.search_index import IndexHit, SearchIndex
from skillhall._internal.catalog.skill_content import read_raw_body
from skillhall._internal.cli.catalog_loader import load_with_progress, summarize_skipped
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import FAILED, OK
from skillhall._internal.cli.options import flag, json_command, skill_search_options
from skillhall._internal.cli.search_options import SearchOptions
from skillhall._internal.cli.terminal import format_count, is_smart_terminal

_SCORE_DIGITS = 4


@json_command("search", "skillhall search merge pdf")
@click.argument("terms", nargs=-1, required=True, metavar="QUERY...")
@skill_search_options
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Show at most this many skills.",
)
@flag("--body", help="Search the bodies too; slow with thousands of skills.")
def command(
    *, terms: tuple[str, ...], search: SearchOptions, limit: int, body: bool
) -> CommandResult:
    """Search the names and descriptions of skills. QUERY can be any text.

    Exact names come first, then names that start with QUERY, then skills with all its words, then
    with some of them. In a pipe, the output is name, description and location, separated by tabs.
    The exit code is 1 if nothing is found.
    """
    catalog = load_with_progress(search, read_bodies=body)
    index = SearchIndex.build(catalog, read_raw_body if body else None)
    result = index.search(" ".join(terms), limit)
    skills = [hit.skill for hit in result.hits]
    if is_smart_terminal(sys.stdout):
        rows = [(hit.skill.name, hit.snippet.text, hit.skill.source) for hit in result.hits]
    else:
        rows = [(skill.name, skill.description, skill.location) for skill in skills]
    messages = [] if skills else ["no skills found"]
    if result.has_more:
        messages.append(f"{len(skills)} of {result.total} shown; --limit shows more")
    warnings = [*summarize_skipped(catalog, search)]
    if index.unreadable_skills:
        count = format_count(len(index.unreadable_skills), "skill")
        warnings.insert(0, f"warning: cannot read the body of {count}")
    return CommandResult(
        {"hits": [_serialize_hit(hit) for hit in result.hits], "total": result.total},
        [*catalog.scan_findings, *(judged for skill in skills for judged in skill.findings)],
        exit_code=OK if result.total else FAILED,
        headings=["NAME", "DESCRIPTION", "SOURCE"] if skills else (),
        rows=rows,
        messages=messages,
        warnings=warnings,
    )


def _serialize_hit(hit: IndexHit) -> dict[str, object]:
    return {
        "name": hit.skill.name,
        "description": hit.skill.description,
        "location": hit.skill.location,
        "score": round(hit.score, _SCORE_DIGITS),
        "snippet": {
            "text": hit.snippet.text,
            "marks": [[start, end] for start, end in hit.snippet.marks],
        },
    }
