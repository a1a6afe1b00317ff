"""`skillhall search`: the skills that some words mean, best first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import Search, counted, load, tell_what_was_left_out
from skillhall._internal.cli.errors import FAILED, OK
from skillhall._internal.cli.options import (
    json_option,
    profile_option,
    roots_option,
    search_options,
)
from skillhall._internal.cli.terminal import is_decorated, print_rows, print_table, say

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Catalog
    from skillhall._internal.catalog.search.search_index import Hit, SearchIndex, SearchResult

_SCORE_DIGITS = 4


@click.command("search", epilog="Example: skillhall search merge pdf")
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@roots_option
@profile_option()
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many."
)
@click.option("--body", is_flag=True, help="Read the bodies, too; slow for thousands of skills.")
@search_options
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    words: tuple[str, ...],
    roots: tuple[str, ...],
    profile: str,
    limit: int,
    body: bool,
    depth: int | None,
    follow_links: bool,
    as_json: bool,
) -> int:
    """Search the names and descriptions of skills; any text is a query.

    A name comes first, then names that begin so, then skills with all words, then with some.
    In a pipe: name, description and location, separated by tabs. Exit code 1: nothing found.
    """
    catalog = load(roots, profile, Search(depth, follow_links, bodies=body))
    index = _index(catalog, with_bodies=body)
    found = index.search(" ".join(words), limit)
    if as_json:
        _print_json(found, catalog)
    else:
        _print_text(found)
    if index.unread:
        say(f"warning: {counted(len(index.unread), 'skill')} could not be read whole")
    tell_what_was_left_out(catalog, roots)
    return OK if found.total else FAILED


def _index(catalog: Catalog, *, with_bodies: bool) -> SearchIndex:
    from skillhall._internal.catalog.reader import read_raw_body
    from skillhall._internal.catalog.search.search_index import SearchIndex

    return SearchIndex.build(catalog, read_raw_body if with_bodies else None)


def _print_text(found: SearchResult) -> None:
    skills = [hit.skill for hit in found.hits]
    if not skills:
        say("no skill was found")
    elif is_decorated(sys.stdout):
        rows = ((hit.skill.name, hit.snippet.text, hit.skill.source) for hit in found.hits)
        print_table(["NAME", "DESCRIPTION", "SOURCE"], rows)
    else:
        print_rows((skill.name, skill.description, skill.location) for skill in skills)
    if found.has_more:
        say(f"{len(skills)} of {found.total} shown; --limit shows more")


def _print_json(found: SearchResult, catalog: Catalog) -> None:
    from skillhall._internal.cli.json_output import print_report

    findings = [*catalog.notes, *(one for hit in found.hits for one in hit.skill.findings)]
    data = {"hits": [_hit_as_json(hit) for hit in found.hits], "total": found.total}
    print_report("search", data, findings)


def _hit_as_json(hit: Hit) -> dict[str, object]:
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
