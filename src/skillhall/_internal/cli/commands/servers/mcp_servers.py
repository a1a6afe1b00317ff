"""`skillhall mcp-servers`: which MCP servers there are, and the skills that they offer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import counted, read_settings
from skillhall._internal.cli.options import json_option, show_help
from skillhall._internal.cli.terminal import clean, print_rows, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.wiring.sources import McpServer, ServedSkill

SKILL_MD = "SKILL.md"


@click.group(
    "mcp-servers", invoke_without_command=True, epilog="Example: skillhall mcp-servers skills acme"
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Name MCP servers, and see and read the skills that they offer. All take --json.

    'skillhall add mcp:LABEL/SKILL' copies one of them to you.
    """
    show_help(ctx)


@command.command("list", epilog="Example: skillhall mcp-servers list")
@json_option
def list_servers(*, as_json: bool) -> int:
    """List the servers that you named."""
    from skillhall._internal.wiring.sources import read_servers

    servers = [one for _, one in sorted(read_servers(read_settings()).items())]
    if as_json:
        _print_json("list", {"servers": [_as_json(one) for one in servers]})
        return 0
    print_rows((one.label, one.place) for one in servers)
    say(counted(len(servers), "server"))
    return 0


@command.command("add", epilog="Example: skillhall mcp-servers add acme https://mcp.acme.org/mcp")
@click.argument("label")
@click.argument("words", nargs=-1, required=True, metavar="ADDRESS | -- COMMAND [WORD]...")
@click.option(
    "--token-variable",
    default="",
    metavar="NAME",
    help="The environment variable with the token for ADDRESS; only its name is kept.",
)
@click.option(
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME",
    help="An environment variable that COMMAND gets to see; repeatable.",
)
@click.option("--overwrite", is_flag=True, help="Replace a server of that label.")
@json_option
def add_server(  # noqa: PLR0913 - one parameter for each option
    *,
    label: str,
    words: tuple[str, ...],
    token_variable: str,
    variables: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
) -> int:
    """Name an MCP server: by its address, or by the command that runs it.

    Nothing is asked of it yet. A command is started when you use its skills, and at no other time;
    it sees no variables but the usual ones and those that you name.
    """
    from skillhall._internal.wiring.sources import add_server as note_server
    from skillhall._internal.wiring.sources import parse_server

    settings = read_settings()
    server = parse_server(label, words, token_variable, variables, settings.working_directory)
    note_server(settings, server, overwrite=overwrite)
    if as_json:
        _print_json("add", {"server": _as_json(server)})
    else:
        say(f"{label} is {clean(server.place)}; 'skillhall mcp-servers skills {label}' asks it")
    return 0


@command.command("remove", epilog="Example: skillhall mcp-servers remove acme")
@click.argument("label")
@json_option
def remove_server(*, label: str, as_json: bool) -> int:
    """Forget a server, and what was kept of its skills. Skills that you added stay."""
    from skillhall._internal.wiring.sources import remove_server as forget_server

    forget_server(read_settings(), label)
    if as_json:
        _print_json("remove", {"label": label})
    else:
        say(f"{clean(label)} is forgotten")
    return 0


@command.command("skills", epilog="Example: skillhall mcp-servers skills acme --json")
@click.argument("label")
@json_option
def list_skills(*, label: str, as_json: bool) -> int:
    """List the skills that a server offers; none of their files is fetched."""
    from skillhall._internal.wiring.sources import open_served

    with open_served(label, read_settings()) as served:
        skills = served.list()
    findings = [one for skill in skills for one in skill.findings]
    if as_json:
        _print_json("skills", {"skills": [_skill_as_json(one) for one in skills]}, findings)
        return 0
    print_rows((one.name, one.description, one.entry.uri) for one in skills if one.is_usable)
    sys.stdout.flush()
    for found, effect in findings:
        say(f"{found.path or label}: {effect}[{found.code}]: {found.message}")
    say(f"{counted(len(skills), 'skill')} of {label}; it may have more that it does not list")
    return 0


@command.command("read", epilog="Example: skillhall mcp-servers read acme skill://pdf/SKILL.md")
@click.argument("label")
@click.argument("skill")
@click.argument("path", default=SKILL_MD)
@click.option("--activate", is_flag=True, help="Print what a model gets when it asks for SKILL.")
@json_option
def read_skill(*, label: str, skill: str, path: str, activate: bool, as_json: bool) -> int:
    """Print a file of a server's skill, where it is: the file PATH, or its SKILL.md.

    SKILL is a URI, a path or a name. Each file is checked against what the server announced.
    """
    from skillhall._internal.cli.file_output import content_as_json, print_content
    from skillhall._internal.wiring.sources import open_served

    with open_served(label, read_settings()) as served:
        found = served.find(_with_own_file(skill))
        data = served.activate(found).encode() if activate else served.read(found, path)
    if as_json:
        told = {**_skill_as_json(found), "path": path, **content_as_json(data)}
        _print_json("read", told, found.findings)
    else:
        print_content(data + b"\n" if activate else data, path)
    return 0


def _with_own_file(skill: str) -> str:
    """A URI of a skill's folder, as that of its SKILL.md."""
    return f"{skill}/{SKILL_MD}" if "://" in skill and not skill.endswith(SKILL_MD) else skill


def _as_json(server: McpServer) -> dict[str, object]:
    return {
        "label": server.label,
        "url": server.url,
        "command": list(server.command),
        "tokenVariable": server.token_variable,
        "variables": list(server.variables),
    }


def _skill_as_json(skill: ServedSkill) -> dict[str, object]:
    return {
        "name": skill.name,
        "description": skill.description,
        "uri": skill.entry.uri,
        "location": skill.location,
        "usable": skill.is_usable,
        "files": [
            {"path": file.path, "size": file.size, "digest": file.digest}
            for file in skill.entry.files
        ],
    }


def _print_json(name: str, data: Mapping[str, object], findings: Sequence[Judged] = ()) -> None:
    from skillhall._internal.cli.json_output import print_report

    print_report(f"mcp-servers {name}", data, findings)
