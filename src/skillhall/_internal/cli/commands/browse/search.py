"""`skillhall search`: searches skills, best matches first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import (
    SearchOptions,
    format_count,
    load_with_progress,
    print_skipped_summary,
)
from skillhall._internal.cli.errors import FAILED, OK
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import (
    json_option,
    profile_option,
    roots_option,
    search_options,
)
from skillhall._internal.cli.terminal import (
    is_smart_terminal,
    print_message,
    print_rows,
    print_table,
)

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.catalog.search.search_index import IndexHit, SearchIndex, SearchResult

_SCORE_DIGITS = 4


@click.command("search", epilog="Example: skillhall search merge pdf")
@click.argument("terms", nargs=-1, required=True, metavar="QUERY...")
@roots_option
@profile_option()
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Show at most this many skills.",
)
@click.option("--body", is_flag=True, help="Search the bodies too; slow with thousands of skills.")
@search_options
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    terms: tuple[str, ...],
    roots: tuple[str, ...],
    profile: str,
    limit: int,
    body: bool,
    depth: int | None,
    follow_links: bool,
    as_json: bool,
) -> int:
    """Search the names and descriptions of skills. QUERY can be any text.

    Exact names come first, then names that start with QUERY, then skills with all its words, then
    with some of them. In a pipe, the output is name, description and location, separated by tabs.
    The exit code is 1 if nothing is found.
    """
    catalog = load_with_progress(
        roots, profile, SearchOptions(depth, follow_links, read_bodies=body)
    )
    index = _build_index(catalog, with_bodies=body)
    result = index.search(" ".join(terms), limit)
    if as_json:
        _print_json(result, catalog)
    else:
        _print_text(result)
    if index.unreadable_skills:
        count = format_count(len(index.unreadable_skills), "skill")
        print_message(f"warning: cannot read the body of {count}")
    print_skipped_summary(catalog, roots)
    return OK if result.total else FAILED


def _build_index(catalog: Catalog, *, with_bodies: bool) -> SearchIndex:
    from skillhall._internal.catalog.reader import read_raw_body
    from skillhall._internal.catalog.search.search_index import SearchIndex

    return SearchIndex.build(catalog, read_raw_body if with_bodies else None)


def _print_text(result: SearchResult) -> None:
    skills = [hit.skill for hit in result.hits]
    if not skills:
        print_message("no skills found")
    elif is_smart_terminal(sys.stdout):
        rows = ((hit.skill.name, hit.snippet.text, hit.skill.source) for hit in result.hits)
        print_table(["NAME", "DESCRIPTION", "SOURCE"], rows)
    else:
        print_rows((skill.name, skill.description, skill.location) for skill in skills)
    if result.has_more:
        print_message(f"{len(skills)} of {result.total} shown; --limit shows more")


def _print_json(result: SearchResult, catalog: Catalog) -> None:
    findings = [
        *catalog.scan_findings,
        *(judged for hit in result.hits for judged in hit.skill.findings),
    ]
    data = {"hits": [_serialize_hit(hit) for hit in result.hits], "total": result.total}
    print_json_report("search", data, findings)


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
