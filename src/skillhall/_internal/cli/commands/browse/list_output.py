"""Output of `skillhall list`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillhall._internal.cli.catalog_loader import (
    SearchOptions,
    load_with_progress,
    print_skipped_summary,
)
from skillhall._internal.cli.terminal import (
    is_smart_terminal,
    print_message,
    print_rows,
    print_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.cli.fast_list import ListRequest
    from skillhall._internal.cli.json_output import Json

_MAX_TABLE_ROWS = 2000  # laying out a larger table takes seconds


def print_list(request: ListRequest) -> int:
    """Print the skills and return the exit code, 0 even if some were skipped."""
    search = SearchOptions(
        request.depth, request.follow_links, request.no_index, read_bodies=request.long
    )
    catalog = load_with_progress(request.roots, request.profile, search)
    if request.as_json:
        from skillhall._internal.cli.json_output import EncodedItems, print_json_report

        skills = EncodedItems(_encode_skills(catalog, long=request.long))
        print_json_report("list", {"skills": skills}, catalog.findings)
    else:
        _print_skills(catalog, long=request.long)
    print_skipped_summary(catalog, request.roots)
    return 0


def _print_skills(catalog: Catalog, *, long: bool) -> None:
    if not len(catalog):
        print_message("no skills found; 'skillhall path' shows the searched folders")
        return
    if is_smart_terminal(sys.stdout) and len(catalog) <= _MAX_TABLE_ROWS:
        headings = ["NAME", "DESCRIPTION", "SOURCE", *(["TOKENS", "FILES"] if long else [])]
        rows = (
            (s.name, s.description, s.source, *_measure_columns(s, catalog, long=long))
            for s in catalog
        )
        print_table(headings, rows)
        return
    print_rows(
        (s.name, s.description, s.location, *_measure_columns(s, catalog, long=long))
        for s in catalog
    )


def _measure_columns(skill: CatalogSkill, catalog: Catalog, *, long: bool) -> Iterator[int]:
    if long:
        tokens, files = measure_skill(skill, catalog)
        yield tokens
        yield len(files)


def _encode_skills(catalog: Catalog, *, long: bool) -> Iterator[str]:
    """Encode skills without `json`, which takes twice the time for 60,000 skills."""
    from json.encoder import encode_basestring as quoted

    tails = [
        f'"root": {quoted(root.path)}, "source": {quoted(root.source)}' for root in catalog.roots
    ]
    for skill in catalog:
        size = ""
        if long:
            tokens, files = measure_skill(skill, catalog)
            size = f', "tokens": {tokens}, "files": [{", ".join(map(quoted, files))}]'
        yield (
            f'{{"id": {quoted(skill.id)}, "name": {quoted(skill.name)}, '
            f'"description": {quoted(skill.description)}, "location": {quoted(skill.location)}, '
            f"{tails[skill.root_number]}{size}}}"
        )


def serialize_skill(skill: CatalogSkill) -> dict[str, Json]:
    """Return a skill for JSON output."""
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "location": skill.location,
        "root": skill.root.path,
        "source": skill.source,
    }


def measure_skill(skill: CatalogSkill, catalog: Catalog) -> tuple[int, list[str]]:
    """Return the estimated tokens of the body and the paths of the other files."""
    from skillhall._internal.catalog.reader import open_skill_bundle, read_skill
    from skillhall._internal.skill.token_count import estimate_tokens
    from skillhall.errors import SkillhallError

    try:
        tokens = estimate_tokens(read_skill(skill, catalog.profile).body)
        if skill.is_flat:
            return tokens, []
        bundle = open_skill_bundle(skill, catalog.profile.scan_policy)
    except SkillhallError:
        # It was deleted, or grew beyond the limit, since it was listed.
        return 0, []
    return tokens, [file.path.text for file in bundle.resources()]
