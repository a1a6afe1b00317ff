"""`skillhall mcp-servers`: which MCP servers there are, and the skills that they offer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.options import json_option, print_group_help
from skillhall._internal.cli.terminal import print_message, print_rows, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.wiring.sources import McpServer, McpSkill

SKILL_MD = "SKILL.md"


@click.group(
    "mcp-servers", invoke_without_command=True, epilog="Example: skillhall mcp-servers skills acme"
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Name MCP servers, and see and read the skills that they offer. All take --json.

    'skillhall add mcp:LABEL/SKILL' copies one of them to you.
    """
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall mcp-servers list")
@json_option
def list_servers(*, as_json: bool) -> int:
    """List the servers that you named."""
    from skillhall._internal.wiring.sources import read_servers

    servers = [one for _, one in sorted(read_servers(read_settings()).items())]
    if as_json:
        _print_json("list", {"servers": [_serialize_server(one) for one in servers]})
        return 0
    print_rows((one.label, one.endpoint) for one in servers)
    print_message(format_count(len(servers), "server"))
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
        _print_json("add", {"server": _serialize_server(server)})
    else:
        print_message(
            f"{label} is {sanitize_line(server.endpoint)}; 'skillhall mcp-servers skills "
            f"{label}' asks it"
        )
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
        print_message(f"{sanitize_line(label)} is forgotten")
    return 0


@command.command("skills", epilog="Example: skillhall mcp-servers skills acme --json")
@click.argument("label")
@json_option
def list_skills(*, label: str, as_json: bool) -> int:
    """List the skills that a server offers; none of their files is fetched."""
    from skillhall._internal.wiring.sources import open_mcp_source

    with open_mcp_source(label, read_settings()) as served:
        skills = served.list()
    findings = [one for skill in skills for one in skill.findings]
    if as_json:
        _print_json("skills", {"skills": [_serialize_skill(one) for one in skills]}, findings)
        return 0
    print_rows((one.name, one.description, one.entry.uri) for one in skills if one.is_usable)
    sys.stdout.flush()
    for found, effect in findings:
        print_message(f"{found.path or label}: {effect}[{found.code}]: {found.message}")
    print_message(
        f"{format_count(len(skills), 'skill')} of {label}; it may have more that it does not list"
    )
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
    from skillhall._internal.cli.file_output import print_content, serialize_content
    from skillhall._internal.wiring.sources import open_mcp_source

    with open_mcp_source(label, read_settings()) as served:
        found = served.find(_to_skill_md_uri(skill))
        data = served.activate(found).encode() if activate else served.read(found, path)
    if as_json:
        told = {**_serialize_skill(found), "path": path, **serialize_content(data)}
        _print_json("read", told, found.findings)
    else:
        print_content(data + b"\n" if activate else data, path)
    return 0


def _to_skill_md_uri(skill: str) -> str:
    """A URI of a skill's folder, as that of its SKILL.md."""
    return f"{skill}/{SKILL_MD}" if "://" in skill and not skill.endswith(SKILL_MD) else skill


def _serialize_server(server: McpServer) -> dict[str, object]:
    return {
        "label": server.label,
        "url": server.url,
        "command": list(server.command),
        "tokenVariable": server.token_variable,
        "variables": list(server.variables),
    }


def _serialize_skill(skill: McpSkill) -> dict[str, object]:
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


def _print_json(
    subcommand: str, data: Mapping[str, object], findings: Sequence[JudgedFinding] = ()
) -> None:
    from skillhall._internal.cli.json_output import print_json_report

    print_json_report(f"mcp-servers {subcommand}", data, findings)
