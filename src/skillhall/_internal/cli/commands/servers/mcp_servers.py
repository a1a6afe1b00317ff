"""`skillhall mcp-servers`: manages registered MCP servers and reads their skills."""

import click

from skillhall._internal.cli.command_result import CommandResult, FileContent
from skillhall._internal.cli.options import command_group, flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.wiring import sources
from skillhall._internal.wiring.sources import McpServer, McpSkill
from skillhall.errors import Conflict

SKILL_MD = "SKILL.md"

command = command_group(
    "mcp-servers",
    "Register MCP servers, and list and read their skills. All commands accept --json.\n\n"
    "'skillhall add mcp:LABEL/SKILL' installs a skill.",
    epilog="Example: skillhall mcp-servers skills acme",
)


@json_command("list", "skillhall mcp-servers list", group=command)
def list_servers() -> CommandResult:
    """List the registered servers."""
    servers = [server for _, server in sorted(sources.read_servers(read_settings()).items())]
    return CommandResult(
        {"servers": [_serialize_server(server) for server in servers]},
        rows=[(server.label, server.endpoint) for server in servers],
        messages=[format_count(len(servers), "server")],
    )


@json_command("add", "skillhall mcp-servers add acme https://mcp.acme.org/mcp", group=command)
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
@flag("--overwrite", help="Replace an existing server with this label.")
def add_server(
    *,
    label: str,
    endpoint: tuple[str, ...],
    token_variable: str,
    variables: tuple[str, ...],
    overwrite: bool,
) -> CommandResult:
    """Register an MCP server by its URL, or by a command that starts it.

    The server is not contacted yet. A command is started only when you use its skills. It gets the
    basic environment variables and those named with --variable.
    """
    settings = read_settings()
    server = sources.parse_server(
        label, endpoint, token_variable, variables, settings.working_directory
    )
    try:
        sources.add_server(settings, server, overwrite=overwrite)
    except Conflict as error:
        error.hint = "choose another label, or use --overwrite to replace the server"
        raise
    hint = f"'skillhall mcp-servers skills {label}' lists its skills"
    return CommandResult(
        {"server": _serialize_server(server)},
        messages=[f"added {label}: {server.endpoint}; {hint}"],
    )


@json_command("remove", "skillhall mcp-servers remove acme", group=command)
@click.argument("label")
def remove_server(*, label: str) -> CommandResult:
    """Remove a server and its cached skills. Installed skills are not removed."""
    sources.remove_server(read_settings(), label)
    return CommandResult({"label": label}, messages=[f"removed {label}"])


@json_command("skills", "skillhall mcp-servers skills acme --json", group=command)
@click.argument("label")
def list_skills(*, label: str) -> CommandResult:
    """List the skills of a server without fetching their files."""
    with sources.open_mcp_source(label, read_settings()) as source:
        skills = source.list()
    findings = [judged for skill in skills for judged in skill.findings]
    messages = [
        f"{finding.path or label}: {effect}[{finding.code}]: {finding.message}"
        for finding, effect in findings
    ]
    messages.append(f"{label} lists {format_count(len(skills), 'skill')}; it may have more")
    return CommandResult(
        {"skills": [_serialize_skill(skill) for skill in skills]},
        findings,
        rows=[(each.name, each.description, each.entry.uri) for each in skills if each.is_usable],
        messages=messages,
    )


@json_command("read", "skillhall mcp-servers read acme skill://pdf/SKILL.md", group=command)
@click.argument("label")
@click.argument("skill")
@click.argument("path", default=SKILL_MD)
@flag("--activate", help="Print the text that a model gets when it loads SKILL.")
def read_skill(*, label: str, skill: str, path: str, activate: bool) -> CommandResult:
    """Print a file of a server's skill without installing it.

    SKILL is a URI, a path or a name; PATH defaults to SKILL.md. Each file is verified against the
    server's manifest.
    """
    if "://" in skill and not skill.endswith(SKILL_MD):  # the URI of a folder
        skill = f"{skill}/{SKILL_MD}"
    with sources.open_mcp_source(label, read_settings()) as source:
        entry = source.find(skill)
        data = source.activate(entry).encode() if activate else source.read(entry, path)
    content = FileContent(path, data)
    return CommandResult(
        {**_serialize_skill(entry), "path": path, **content.serialize()},
        entry.findings,
        file=content._replace(data=data + b"\n") if activate else content,
    )


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
