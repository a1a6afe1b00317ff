"""The reference of finding codes, generated from code and findings.toml."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.skill.code_descriptions import CODE_DESCRIPTIONS
from skillhall._internal.skill.finding import Code

SHORT = {"accept": "·", "warn": "warn", "reject": "**reject**"}
EXPLANATIONS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("findings.toml").read_text(encoding="utf-8")
)


def build_finding_reference() -> str:
    """Return the reference as a Markdown page."""
    names = list(PROFILES)
    lines = [
        "# Finding codes",
        "",
        "The meaning of each finding, and its effect under each profile; `·` accepts it silently.",
        "Each code links to its fix and an example.",
        "",
        f"| Code | Meaning | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for code in Code:
        effects = [SHORT[PROFILES[name].load_policy.get_effect(code)] for name in names]
        link = f"[`{code}`](#{code})"
        lines.append(f"| {link} | {CODE_DESCRIPTIONS[code]} | {' | '.join(effects)} |")
    for code in Code:
        lines += ["", *_explain(code)]
    return "\n".join(lines) + "\n"


def _explain(code: Code) -> Iterator[str]:
    explanation = EXPLANATIONS[code]
    yield from (f"## `{code}`", "", CODE_DESCRIPTIONS[code], "")
    yield from (f"**Fix:** {explanation['fix']}", "")
    if "skill" not in explanation:
        yield f"**Example:** {explanation['example']}"
        return
    # Characters that an editor would not show, or a reader of the page would not see, are escaped.
    text = "".join(
        char if char == "\n" or (char.isprintable()) else ascii(char)[1:-1]
        for char in explanation["skill"]
    )
    yield from ("**Example:**", "", "````markdown", text.rstrip("\n"), "````")
