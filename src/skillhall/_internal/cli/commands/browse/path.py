"""`skillhall path` and `skillhall profiles`: where skills are searched, and by which rules."""

import os
from typing import NamedTuple

import click

from skillhall._internal.cli.catalog_loader import SearchOptions, load_with_progress, read_settings
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.options import json_command, profile_option
from skillhall._internal.cli.param_types import ProfileParam
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.policy.profiles import PROFILES, Profile
from skillhall._internal.skill.finding import Code
from skillhall._internal.wiring.catalog import get_head_cache_directory


class _SearchedFolder(NamedTuple):
    path: str
    source: str
    exists: bool
    skills: int


@json_command("path", 'rm -r "$(skillhall path index)"  # deletes the cache')
@click.argument("which", required=False, type=click.Choice(["index"]), metavar="[index]")
@profile_option()
def command(*, which: str | None, profile: str) -> CommandResult:
    """Show the searched folders in order of precedence, and the cache folder ('index').

    'path index' prints only the cache folder; you can delete it at any time.
    """
    index = get_head_cache_directory(read_settings())
    if which == "index" and not is_json():
        return CommandResult({}, text=f"{index}\n")
    catalog = load_with_progress(SearchOptions(profile=profile))
    numbers = [skill.root_number for skill in catalog]
    numbers += [shadowed.skill.root_number for shadowed in catalog.shadowed]
    folders = [
        _SearchedFolder(root.path, root.source, os.path.isdir(root.path), numbers.count(number))  # noqa: PTH112
        for number, root in enumerate(catalog.roots)
    ]
    rows = [
        (path, source, format_count(skills, "skill") if exists else "missing")
        for path, source, exists, skills in folders
    ]
    rows.append((index, "index", "exists" if os.path.isdir(index) else "missing"))  # noqa: PTH112
    roots = [folder._asdict() for folder in folders]
    return CommandResult({"profile": profile, "roots": roots, "index": index}, rows=rows)


@json_command("profiles", "skillhall profiles lenient")
@click.argument("name", required=False, type=ProfileParam())
def profiles(*, name: str | None) -> CommandResult:
    """List the profiles, or show the effect of each finding under the profile NAME."""
    chosen = [PROFILES[name]] if name else [*PROFILES.values()]
    data = {"profiles": [_serialize_profile(profile) for profile in chosen]}
    if name:
        rows = [*_serialize_effects(chosen[0]).items()]
        return CommandResult(data, headings=("FINDING", "EFFECT"), rows=rows)
    rows = [(profile.name, profile.summary) for profile in chosen]
    return CommandResult(data, headings=("PROFILE", "SUMMARY"), rows=rows)


def _serialize_profile(profile: Profile) -> dict[str, object]:
    return {
        "name": profile.name,
        "summary": profile.summary,
        "roots": [{"path": path, "source": source} for path, source in profile.roots],
        "effects": _serialize_effects(profile),
    }


def _serialize_effects(profile: Profile) -> dict[str, str]:
    return {code.value: profile.load_policy.get_effect(code).value for code in Code}
