"""`skillhall path` and `skillhall profiles`: the searched folders and the rules."""

from pathlib import Path

import click

from skillhall._internal.cli.catalog_loader import load_with_progress
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.options import json_command, profile_option
from skillhall._internal.cli.param_types import ProfileParam
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.policy.profiles import PROFILES, Profile
from skillhall._internal.skill.finding import Code
from skillhall._internal.wiring.catalog import get_head_cache_directory


@json_command("path", 'rm -r "$(skillhall path index)"  # deletes the cache')
@click.argument("which", required=False, type=click.Choice(["index"]), metavar="[index]")
@profile_option()
def command(*, which: str | None, profile: str) -> CommandResult:
    """Show the searched folders in order of precedence, and the cache ('index').

    'path index' prints only the cache folder; you can delete it at any time.
    """
    index = get_head_cache_directory(read_settings())
    if which == "index" and not is_json():
        return CommandResult({}, text=f"{index}\n")
    catalog = load_with_progress(SearchOptions(profile=profile))
    numbers = [skill.root_number for skill in catalog]
    numbers += [shadowed.skill.root_number for shadowed in catalog.shadowed]
    roots, rows = [], []
    for number, root in enumerate(catalog.roots):
        exists, count = Path(root.path).is_dir(), numbers.count(number)
        folder = {"path": root.path, "source": root.source, "exists": exists, "skills": count}
        roots.append(folder)
        rows.append((root.path, root.source, format_count(count, "skill") if exists else "missing"))
    rows.append((index, "index", "exists" if Path(index).is_dir() else "missing"))
    return CommandResult({"profile": profile, "roots": roots, "index": index}, rows=rows)


@json_command("profiles", "skillhall profiles lenient")
@click.argument("name", required=False, type=ProfileParam())
def profiles(*, name: str | None) -> CommandResult:
    """List the profiles, or show the effect of each finding under the profile NAME."""
    chosen = [PROFILES[name]] if name else [*PROFILES.values()]
    data = {
        "profiles": [
            {
                "name": profile.name,
                "summary": profile.summary,
                "roots": [{"path": path, "source": source} for path, source in profile.roots],
                "effects": _serialize_effects(profile),
            }
            for profile in chosen
        ]
    }
    if name:
        rows = [*_serialize_effects(chosen[0]).items()]
        return CommandResult(data, headings=("FINDING", "EFFECT"), rows=rows)
    rows = [(profile.name, profile.summary) for profile in chosen]
    return CommandResult(data, headings=("PROFILE", "SUMMARY"), rows=rows)


def _serialize_effects(profile: Profile) -> dict[str, str]:
    return {code.value: profile.load_policy.get_effect(code).value for code in Code}
