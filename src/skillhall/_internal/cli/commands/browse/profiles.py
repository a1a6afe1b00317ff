"""`skillhall profiles`: shows the profiles and their rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import ProfileParam, json_option
from skillhall._internal.cli.project_options import print_table_or_rows

if TYPE_CHECKING:
    from skillhall._internal.policy.profiles import Profile


@click.command("profiles", epilog="Example: skillhall profiles lenient")
@click.argument("name", required=False, type=ProfileParam())
@json_option
def command(*, name: str | None, as_json: bool) -> int:
    """List the profiles, or show the effect of each finding under the profile NAME."""
    from skillhall._internal.policy.profiles import PROFILES

    chosen = [PROFILES[name]] if name else [*PROFILES.values()]
    if as_json:
        print_json_report(
            "profiles", {"profiles": [_serialize_profile(profile) for profile in chosen]}
        )
    elif name:
        print_table_or_rows(("FINDING", "EFFECT"), _serialize_effects(chosen[0]).items())
    else:
        print_table_or_rows(
            ("PROFILE", "SUMMARY"), [(profile.name, profile.summary) for profile in chosen]
        )
    return 0


def _serialize_profile(profile: Profile) -> dict[str, object]:
    return {
        "name": profile.name,
        "summary": profile.summary,
        "roots": [{"path": path, "source": source} for path, source in profile.roots],
        "effects": _serialize_effects(profile),
    }


def _serialize_effects(profile: Profile) -> dict[str, str]:
    from skillhall._internal.skill.finding import Code

    return {code.value: profile.load_policy.get_effect(code).value for code in Code}
