"""Show how the table of agents differs from the one of the newest npm package `skills`.

    .venv/bin/python -m tests.support.portability.agent_table

The exit code is 1 if there is a difference that `KEPT` does not explain.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from skillhall._internal.installer.agent_folders import AGENTS

_FOLDER = Path(__file__).parents[3] / "build" / "portability" / "agent-table"
_ENTRY = re.compile(r'^\t"?([\w.-]+)"?: \{\n(.*?)^\t\},?$', re.MULTILINE | re.DOTALL)
_PROJECT = re.compile(r'skillsDir: "([^"]*)"')
_USER = re.compile(r'globalSkillsDir: (?:join\((\w+)((?:, "[^"]*")+)\)|(\w+))')
# How the package names the folders that our table writes as variables.
_BASES = {
    "home": "~",
    "configHome": "$XDG_CONFIG_HOME",
    "codexHome": "$CODEX_HOME",
    "claudeHome": "$CLAUDE_CONFIG_DIR",
    "vibeHome": "$VIBE_HOME",
    "hermesHome": "$HERMES_HOME",
    "autohandHome": "$AUTOHAND_HOME",
    "grokHome": "$GROK_HOME",
}
_FUNCTIONS = {"getOpenClawGlobalSkillsDir": "~/.openclaw/skills", "void": ""}
# Differences that remain, and why. Folders with installed skills stay where they are.
KEPT = {
    "codex": "it still reads $CODEX_HOME/skills, where skills have been installed",
    "droid": "skills have been installed into .factory/skills",
    "kilo": "skills have been installed into .kilocode/skills",
    "pi": "it still reads .pi/skills, where skills have been installed",
    "universal": "~/.agents/skills is the folder that the guide for clients names",
}


class AgentRow(NamedTuple):
    """The label and the folders of an agent."""

    label: str
    project_folder: str
    user_folder: str


def read_package_table(text: str) -> Mapping[str, AgentRow]:
    """Read the agents in the bundled code of the package."""
    table = text.partition("\nconst agents = {\n")[2].partition("\n};\n")[0] + "\n"
    return {agent: _read_entry(entry) for agent, entry in _ENTRY.findall(table)}


def _read_entry(entry: str) -> AgentRow:
    label = re.search(r'displayName: "([^"]*)"', entry)
    project, user = _PROJECT.search(entry), _USER.search(entry)
    folder = ""
    if user is not None and user[1]:
        folder = "/".join([_BASES.get(user[1], user[1]), *re.findall('"([^"]*)"', user[2])])
    elif user is not None:
        folder = _FUNCTIONS.get(user[3], user[3])
    return AgentRow(label[1] if label else "", project[1] if project else "", folder)


def find_differences(package: Mapping[str, AgentRow]) -> Iterator[str]:
    """Yield a line for each agent that differs."""
    for agent in sorted(package.keys() | AGENTS.keys()):
        ours = AGENTS.get(agent)
        row = None if ours is None else AgentRow(ours.label, ours.project_folder, ours.user_folder)
        if agent not in package:
            yield f"{agent}: only in our table"
        elif row is None:
            yield f"{agent}: only in the package: {package[agent]}"
        elif row != package[agent]:
            yield f"{agent}: {row} in our table, {package[agent]} in the package"


def main() -> int:
    """Print the differences; return the exit code."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    install = [
        "npm",
        "install",
        "--prefix",
        str(_FOLDER),
        "--no-audit",
        "--no-fund",
        "--silent",
        "skills@latest",
    ]
    subprocess.run(install, check=True, cwd=_FOLDER)
    bundle = _FOLDER / "node_modules" / "skills" / "dist" / "cli.mjs"
    package = read_package_table(bundle.read_text("utf-8"))
    differences = [*find_differences(package)]
    differences = [f"{line} ({KEPT.get(line.partition(':')[0], 'NEW')})" for line in differences]
    print(*differences, f"{len(package)} agents in the package, {len(AGENTS)} here", sep="\n")  # noqa: T201
    return 1 if any(line.endswith("(NEW)") for line in differences) else 0


if __name__ == "__main__":
    sys.exit(main())
