"""What `skillhall list` prints."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillhall._internal.cli.catalog_loader import Search, load, tell_what_was_left_out
from skillhall._internal.cli.terminal import is_decorated, print_rows, print_table, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.catalog.catalog import Catalog, Skill
    from skillhall._internal.cli.fast_list import ListRequest
    from skillhall._internal.cli.json_output import Json

_TABLE_ROWS = 2000  # beyond that nobody reads along, and laying out a table takes seconds


def show_list(request: ListRequest) -> int:
    """Print the skills; the exit code is 0 even if some were left out."""
    search = Search(request.depth, request.follow_links, request.no_index, bodies=request.long)
    catalog = load(request.roots, request.profile, search)
    if request.as_json:
        from skillhall._internal.cli.json_output import EncodedItems, print_report

        skills = EncodedItems(_encoded(catalog, long=request.long))
        print_report("list", {"skills": skills}, catalog.findings)
    else:
        _print_skills(catalog, long=request.long)
    tell_what_was_left_out(catalog, request.roots)
    return 0


def _print_skills(catalog: Catalog, *, long: bool) -> None:
    if not len(catalog):
        say("no skills found; 'skillhall path' shows where they are looked for")
        return
    if is_decorated(sys.stdout) and len(catalog) <= _TABLE_ROWS:
        headings = ["NAME", "DESCRIPTION", "SOURCE", *(["TOKENS", "FILES"] if long else [])]
        rows = ((s.name, s.description, s.source, *_size(s, catalog, long=long)) for s in catalog)
        print_table(headings, rows)
        return
    print_rows((s.name, s.description, s.location, *_size(s, catalog, long=long)) for s in catalog)


def _size(skill: Skill, catalog: Catalog, *, long: bool) -> Iterator[int]:
    if long:
        tokens, files = measure(skill, catalog)
        yield tokens
        yield len(files)


def _encoded(catalog: Catalog, *, long: bool) -> Iterator[str]:
    """Each skill as JSON. Written out by hand: at 60,000 skills an encoder takes twice the time."""
    from json.encoder import encode_basestring as quoted

    tails = [
        f'"root": {quoted(root.path)}, "source": {quoted(root.source)}' for root in catalog.roots
    ]
    for skill in catalog:
        size = ""
        if long:
            tokens, files = measure(skill, catalog)
            size = f', "tokens": {tokens}, "files": [{", ".join(map(quoted, files))}]'
        yield (
            f'{{"id": {quoted(skill.id)}, "name": {quoted(skill.name)}, '
            f'"description": {quoted(skill.description)}, "location": {quoted(skill.location)}, '
            f"{tails[skill.root_number]}{size}}}"
        )


def skill_as_json(skill: Skill) -> dict[str, Json]:
    """The fields that every listing of skills gives to scripts."""
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "location": skill.location,
        "root": skill.root.path,
        "source": skill.source,
    }


def measure(skill: Skill, catalog: Catalog) -> tuple[int, list[str]]:
    """About how many tokens the body costs, and the paths of the skill's other files."""
    from skillhall._internal.catalog.reader import bundle_of, read_skill
    from skillhall._internal.skill.token_count import estimate_tokens
    from skillhall.errors import SkillhallError

    try:
        tokens = estimate_tokens(read_skill(skill, catalog.profile).body)
        if skill.is_flat:
            return tokens, []
        bundle = bundle_of(skill, catalog.profile.scan)
    except SkillhallError:
        # It vanished, or grew beyond the limit, since it was listed a moment ago.
        return 0, []
    return tokens, [file.path.text for file in bundle.resources()]
