"""`skillhall mcp-servers`: manages registered MCP servers and reads their skills."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import json_option, print_group_help
from skillhall._internal.cli.terminal import print_message, print_rows, sanitize_line

if TYPE_CHECKING:
    from skillhall._internal.wiring.sources import McpServer, McpSkill

SKILL_MD = "SKILL.md"


@click.group(
    "mcp-servers", invoke_without_command=True, epilog="Example: skillhall mcp-servers skills acme"
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Register MCP servers, and list and read their skills. All commands accept --json.

    'skillhall add mcp:LABEL/SKILL' installs a skill.
    """
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall mcp-servers list")
@json_option
def list_servers(*, as_json: bool) -> int:
    """List the registered servers."""
    from skillhall._internal.wiring.sources import read_servers

    servers = [server for _, server in sorted(read_servers(read_settings()).items())]
    if as_json:
        print_json_report(
            "mcp-servers list", {"servers": [_serialize_server(server) for server in servers]}
        )
        return 0
    print_rows((server.label, server.endpoint) for server in servers)
    print_message(format_count(len(servers), "server"))
    return 0


@command.command("add", epilog="Example: skillhall mcp-servers add acme https://mcp.acme.org/mcp")
@click.argument("label")
@click.argument("endpoint", nargs=-1, required=True, metavar="URL | -- COMMAND [ARGUMENT]...")
@click.option(
    "--token-variable",
    default="",
    metavar="NAME",
    help="Read the token for URL from this environment variable; only the name is stored.",
)
@click.option(
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME",
    help="Pass this environment variable to COMMAND. Repeatable.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing server with this label.")
@json_option
def add_server(  # noqa: PLR0913 - one parameter for each option
    *,
    label: str,
    endpoint: tuple[str, ...],
    token_variable: str,
    variables: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
) -> int:
    """Register an MCP server: a URL, or a command that starts it.

    The server is not contacted yet. A command is started only when you use its skills. It gets the
    basic environment variables and those named with --variable.
    """
    from skillhall._internal.wiring.sources import add_server as register_server
    from skillhall._internal.wiring.sources import parse_server

    settings = read_settings()
    server = parse_server(label, endpoint, token_variable, variables, settings.working_directory)
    register_server(settings, server, overwrite=overwrite)
    if as_json:
        print_json_report("mcp-servers add", {"server": _serialize_server(server)})
    else:
        print_message(
            f"added {label}: {sanitize_line(server.endpoint)}; 'skillhall mcp-servers skills "
            f"{label}' lists its skills"
        )
    return 0


@command.command("remove", epilog="Example: skillhall mcp-servers remove acme")
@click.argument("label")
@json_option
def remove_server(*, label: str, as_json: bool) -> int:
    """Remove a server and its cached skills. Installed skills are kept."""
    from skillhall._internal.wiring.sources import remove_server as unregister_server

    unregister_server(read_settings(), label)
    if as_json:
        print_json_report("mcp-servers remove", {"label": label})
    else:
        print_message(f"removed {sanitize_line(label)}")
    return 0


@command.command("skills", epilog="Example: skillhall mcp-servers skills acme --json")
@click.argument("label")
@json_option
def list_skills(*, label: str, as_json: bool) -> int:
    """List the skills of a server without fetching their files."""
    from skillhall._internal.wiring.sources import open_mcp_source

    with open_mcp_source(label, read_settings()) as source:
        skills = source.list()
    findings = [judged for skill in skills for judged in skill.findings]
    if as_json:
        print_json_report(
            "mcp-servers skills",
            {"skills": [_serialize_skill(skill) for skill in skills]},
            findings,
        )
        return 0
    print_rows(
        (skill.name, skill.description, skill.entry.uri) for skill in skills if skill.is_usable
    )
    sys.stdout.flush()
    for finding, effect in findings:
        print_message(f"{finding.path or label}: {effect}[{finding.code}]: {finding.message}")
    print_message(f"{format_count(len(skills), 'skill')} listed by {label}; it may have others")
    return 0


@command.command("read", epilog="Example: skillhall mcp-servers read acme skill://pdf/SKILL.md")
@click.argument("label")
@click.argument("skill")
@click.argument("path", default=SKILL_MD)
@click.option(
    "--activate", is_flag=True, help="Print SKILL as a model gets it when it loads the skill."
)
@json_option
def read_skill(*, label: str, skill: str, path: str, activate: bool, as_json: bool) -> int:
    """Print a file of a server's skill without installing it.

    SKILL is a URI, a path or a name; PATH defaults to SKILL.md. Each file is verified against the
    server's manifest.
    """
    from skillhall._internal.cli.file_output import print_content, serialize_content
    from skillhall._internal.wiring.sources import open_mcp_source

    with open_mcp_source(label, read_settings()) as source:
        entry = source.find(_to_skill_md_uri(skill))
        data = source.activate(entry).encode() if activate else source.read(entry, path)
    if as_json:
        content = serialize_content(data)
        print_json_report(
            "mcp-servers read", {**_serialize_skill(entry), "path": path, **content}, entry.findings
        )
    else:
        print_content(data + b"\n" if activate else data, path)
    return 0


def _to_skill_md_uri(skill: str) -> str:
    """Complete the URI of a skill's folder to that of its SKILL.md."""
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
