"""`skillhall search`: searches skills, best matches first."""

import sys
from collections.abc import Iterator, Sequence

import click

from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
from skillhall._internal.catalog.search.search_index import IndexHit
from skillhall._internal.cli.catalog_loader import load_with_progress, summarize_skipped
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import FAILED, OK
from skillhall._internal.cli.options import flag, json_command, skill_search_options
from skillhall._internal.cli.progress import transfer_progress
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import format_count, is_smart_terminal
from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.wiring.catalog_index import index_catalog

_SCORE_DIGITS = 4
_MIN_PROGRESS = 1000  # texts to read; fewer take less than a second


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
@click.option(
    "--offset",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Skip this many of the best matches.",
)
@flag(
    "--explain",
    help="Show why each skill matches: the matching words of each field, and its ranks.",
)
@flag("--body", help="No effect: bodies are always searched.")
def command(
    *,
    terms: tuple[str, ...],
    search: SearchOptions,
    limit: int,
    offset: int,
    explain: bool,
    body: bool,
) -> CommandResult:
    """Search the names, descriptions and instructions of skills.

    QUERY can be any text: a few words, or a task as you would describe it to an agent. Copies of a
    skill are shown once. In a pipe, the output is name, description and location, separated by
    tabs. The exit code is 1 if nothing is found.
    """
    del body
    catalog = load_with_progress(search)
    settings = read_settings(no_index=search.no_index, follow_links=search.follow_links)
    with transfer_progress() as progress:
        total = 0

        def show_progress(pending: int) -> None:
            nonlocal total
            total = max(total, pending)
            if progress is not None and total >= _MIN_PROGRESS:
                progress("indexing skills", total - pending, total)

        index = index_catalog(catalog, settings, show_progress)
    query = " ".join(terms)
    result = index.search(query, limit, offset)
    skills = [hit.skill for hit in result.hits]
    explanations = [index.explain(query, hit) for hit in result.hits] if explain else []
    rows: list[tuple[str, ...]]
    if is_smart_terminal(sys.stdout):
        rows = [(hit.skill.name, hit.snippet.text, hit.skill.source) for hit in result.hits]
    else:
        rows = [(skill.name, skill.description, skill.location) for skill in skills]
    headings = ["NAME", "DESCRIPTION", "SOURCE"]
    if explain:
        headings.append("MATCHES")
        rows = [(*row, one.text) for row, one in zip(rows, explanations, strict=True)]
    messages = [] if skills else ["no skills found"]
    if not index.has_complete_texts and not result.has_more:
        messages.append(
            "there are many skills: only the beginning and the headings of each are searched"
        )
    if result.has_more:
        shown = f"{offset + 1}–{offset + len(skills)}" if offset else f"{len(skills)}"
        messages.append(f"{shown} of {result.total} shown; --limit and --offset show more")
    copies = sum(len(hit.copies) for hit in result.hits)
    if copies:
        noun = "copy" if copies == 1 else "copies"
        messages.append(f"{copies} {noun} of these skills not shown; --json lists them")
    warnings = [*summarize_skipped(catalog, search)]
    if index.unreadable_skills:
        count = format_count(len(index.unreadable_skills), "skill")
        warnings.insert(0, f"warning: cannot read the body of {count}")
    hits = [_serialize_hit(hit) for hit in result.hits]
    for hit, explanation in zip(hits, explanations, strict=False):
        hit["explanation"] = {"words": explanation.words, "ranks": explanation.ranks}
    return CommandResult(
        {"hits": hits, "total": result.total},
        _iter_findings(catalog, skills),
        exit_code=OK if result.total else FAILED,
        headings=headings if skills else (),
        rows=rows,
        messages=messages,
        warnings=warnings,
    )


def _iter_findings(catalog: Catalog, skills: Sequence[CatalogSkill]) -> Iterator[JudgedFinding]:
    """Yield the findings of the scan and of these skills, for JSON output."""
    yield from catalog.scan_findings
    for skill in skills:
        yield from skill.findings


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
        "copies": [copy.location for copy in hit.copies],
    }
