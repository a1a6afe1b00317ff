"""Output of `skillhall list`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from skillhall._internal.cli.catalog_loader import load_with_progress, summarize_skipped
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import (
    is_smart_terminal,
    print_message,
    print_rows,
    print_table,
)
from skillhall._internal.policy.trust.trust_action import LOAD_EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.catalog.listing_cache import ListingWriter
    from skillhall._internal.cli.fast_list import ListRequest
    from skillhall._internal.cli.json_output import Json
    from skillhall._internal.settings import Settings

_MAX_TABLE_ROWS = 2000  # laying out a larger table takes seconds
# The process ends without freeing it. Freeing 60,000 skills takes a tenth of a second.
_printed: list[Catalog] = []


def print_list(request: ListRequest) -> int:
    """Print the skills and return the exit code, 0 even if some were skipped."""
    if request.as_json:
        _print_json(request)
        return 0
    settings = read_settings()
    catalog = load_with_progress(request.search, read_bodies=request.long, settings=settings)
    if not len(catalog):
        print_message("no skills found; 'skillhall path' shows the searched folders")
    elif is_smart_terminal(sys.stdout) and len(catalog) <= _MAX_TABLE_ROWS:
        headings = ["NAME", "DESCRIPTION", "SOURCE", *(["TOKENS", "FILES"] if request.long else [])]
        states = find_trust_states(catalog, settings)
        print_table(headings, _list_rows(catalog, "source", states, long=request.long))
    else:
        print_rows(_list_rows(catalog, "location", {}, long=request.long))
    _print_messages(summarize_skipped(catalog, request.search))
    return 0


def _print_json(request: ListRequest) -> None:
    from skillhall._internal.catalog.listing_cache import MIN_SKILLS
    from skillhall._internal.catalog.scan_state import StateRecorder
    from skillhall._internal.cli.fast_list import open_listing_cache

    settings = read_settings()
    cache = None if request.long else open_listing_cache(request.search, settings)
    recorder = None if cache is None else StateRecorder(MIN_SKILLS)
    catalog = load_with_progress(
        request.search,
        read_bodies=request.long,
        on_scan=recorder,
        settings=settings,
    )
    _printed[:] = [catalog]
    messages = [*summarize_skipped(catalog, request.search)]
    writer = None
    if cache is not None and recorder is not None and recorder.state is not None:
        writer = cache.create(recorder.state, messages)
    skills = _encode_skills(catalog, find_trust_states(catalog, settings), long=request.long)
    _print_catalog(catalog, skills, writer)
    _print_messages(messages)


def _print_catalog(catalog: Catalog, encoded: Iterator[str], writer: ListingWriter | None) -> None:
    from skillhall._internal.cli.json_output import EncodedItems, print_json_report

    skills = EncodedItems(encoded)
    rows = catalog.iter_finding_rows()
    copy = None if writer is None else writer.write
    try:
        print_json_report("list", {"skills": skills}, rows, copy=copy)
    except BaseException:
        if writer is not None:
            writer.discard()
        raise
    if writer is not None:
        writer.finish()


def _print_messages(messages: Iterable[str]) -> None:
    for message in messages:
        print_message(message)


def _list_rows(
    catalog: Catalog, third: str, states: Mapping[str, str], *, long: bool
) -> Iterator[tuple[object, ...]]:
    for skill in catalog:
        size: tuple[int, ...] = ()
        if long:
            tokens, files = measure_skill(skill, catalog)
            size = tokens, len(files)
        state = states.get(skill.location, "")
        mark = f" ({state})" if state not in ("", "approved") else ""
        yield skill.name, skill.description, f"{getattr(skill, third)}{mark}", *size


def find_trust_states(catalog: Catalog, settings: Settings) -> Mapping[str, str]:
    """Return the trust states of project skills, by location.

    Returns {} if none needs an approval. If this machine knows of revocations, returns the states
    of all skills.
    """
    if settings.has_revocations:
        return _find_states_of_all(catalog, settings)
    numbers = {n for n, root in enumerate(catalog.roots) if root.source == "project"}
    if not numbers or catalog.profile.trust_policy == LOAD_EVERYTHING:
        return {}
    skills = [skill for skill in catalog.skills if skill.root_number in numbers]
    if not skills:
        return {}
    # Imported late: a listing of named folders needs neither, one without changes only the first.
    from skillhall._internal.catalog.trust.state_cache import open_state_cache

    policy = catalog.profile.trust_policy
    cache = open_state_cache(settings, policy)
    if (known := cache.find(skills)) is not None:
        return known
    from skillhall._internal.agents.project_gate import open_trust_gate

    states = open_trust_gate(settings, policy).find_states(skills)
    cache.save(skills, states)
    return {location: state for location, (state, _, _) in states.items()}


def _find_states_of_all(catalog: Catalog, settings: Settings) -> Mapping[str, str]:
    """Return the states of the skills of the project, and those that are revoked."""
    from skillhall._internal.agents.project_gate import open_trust_gate

    asks = catalog.profile.trust_policy != LOAD_EVERYTHING
    states = open_trust_gate(settings, catalog.profile.trust_policy).find_states(catalog.skills)
    return {
        skill.location: state
        for skill in catalog.skills
        for state in states[skill.location][:1]
        if state == "blocked" or (asks and skill.root.source == "project")
    }


def _encode_skills(catalog: Catalog, states: Mapping[str, str], *, long: bool) -> Iterator[str]:
    """Encode skills without `json`, which would take twice as long for 60,000 skills."""
    from json.encoder import encode_basestring as quoted

    starts = [quoted(f"{root.path}{os.sep}")[:-1] for root in catalog.roots]
    tails = [
        f'", "root": {quoted(root.path)}, "source": {quoted(root.source)}' for root in catalog.roots
    ]
    separator = quoted(os.sep)[1:-1]
    for skill in catalog.skills:
        size = ""
        name, description, _, folder, file, (_, number, *_), _, _, is_flat, _, _ = skill
        if long:
            tokens, files = measure_skill(skill, catalog)
            size = f', "tokens": {tokens}, "files": [{", ".join(map(quoted, files))}]'
        if states and (state := states.get(skill.location)):
            size = f'{size}, "trust": "{state}"'
        # The location contains the folder, so that it is quoted once for both.
        inner = quoted(folder)[1:-1]
        skill_id = inner if folder and not is_flat else quoted(skill.id)[1:-1]
        path = f"{inner}{separator}{file}" if folder else quoted(file)[1:-1]
        yield (
            f'{{"id": "{skill_id}", "name": {quoted(name)}, '
            f'"description": {quoted(description)}, "location": {starts[number]}{path}'
            f"{tails[number]}{size}}}"
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
    """Return the estimated tokens of the body and the paths of the other files.

    They are 0 and [] if the skill can no longer be read.
    """
    from skillhall._internal.catalog.skill_content import open_skill_bundle, read_skill
    from skillhall._internal.skill.token_count import estimate_tokens
    from skillhall.errors import SkillhallError

    try:
        tokens = estimate_tokens(read_skill(skill, catalog.profile).body)
        if skill.is_flat:
            return tokens, []
        bundle = open_skill_bundle(skill, catalog.profile.scan_policy)
    except SkillhallError:
        # The skill was deleted, or grew beyond the limit, since it was listed.
        return 0, []
    return tokens, [file.path.text for file in bundle.resources()]
