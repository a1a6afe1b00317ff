"""`skillhall mcp`: serves skills to the MCP client that started the process."""

from __future__ import annotations

import gc
import re
import shutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.cli.command_result import CommandResult, is_json
from skillhall._internal.cli.commands.trust_question import (
    TrustOptions,
    print_warnings,
    report_held,
    serialize_held,
    trust_options,
)
from skillhall._internal.cli.errors import require_extra
from skillhall._internal.cli.options import (
    DefaultCommandGroup,
    confirm,
    dry_run_option,
    flag,
    json_command,
    root_search_options,
    yes_option,
)
from skillhall._internal.cli.param_types import completes
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import format_count, print_message
from skillhall._internal.mcp.handshake import answer_initialize
from skillhall._internal.wiring.catalog import find_profile
from skillhall._internal.wiring.revocation_refresh import start_daily_refresh
from skillhall._internal.wiring.skill_provider import open_folder_provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
    from skillhall._internal.installer.mcp_clients.client_config import ConfigEdit, ConfigFile
    from skillhall._internal.settings import Settings

_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

command = DefaultCommandGroup(
    "mcp",
    help="Serve the skills below each ROOT, or in the default skill folders, over MCP.\n\n"
    "An MCP client starts this command and talks to it over stdin and stdout. It exits when stdin "
    "is closed. With --check or --json, it shows what clients would see and exits. A folder named "
    "'install' or 'uninstall' is written as './install'.",
    epilog="Example: skillhall mcp install claude-code -g",
)


@command.set_default
@json_command("", "claude mcp add skills -- skillhall mcp ~/skills")
@root_search_options
@trust_options
@flag("--check", help="Show what clients would see and exit.")
def serve(*, search: SearchOptions, trust: TrustOptions, check: bool) -> CommandResult | None:
    """Serve skills to the client that started this command, or check them."""
    settings = read_settings(no_index=search.no_index, follow_links=search.follow_links)
    profile = find_profile(search.profile).with_depth(search.depth)
    # stdin belongs to the protocol, so the user is never asked.
    gate = open_gate(settings, profile.trust_policy, trust_project=trust.trust_project)
    provider = open_folder_provider(search.roots, profile, settings, gate)
    finish_refresh = start_daily_refresh(settings)
    if not (check or is_json()):
        _serve(provider, trust, finish_refresh)
        return None
    from skillhall._internal.catalog.manifests import list_published

    print_warnings(finish_refresh())
    view = provider.current_view()
    report_held(view.held, view.trust_problem, view.trust_warnings, trust)
    rows = list_published(view)
    findings = [*view.findings, *(judged for _, judged in rows if judged)]
    skills = [{"name": row.name, "uri": row.uri, "listed": reason is None} for row, reason in rows]
    return CommandResult(
        {"skills": skills, "held": serialize_held(view.held)},
        findings,
        rows=[(row.name, row.uri, "not listed" if reason else "listed") for row, reason in rows],
        messages=[f"{effect}: {finding.path}: {finding.message}" for finding, effect in findings],
    )


def _serve(
    provider: FolderSkillProvider, trust: TrustOptions, finish_refresh: Callable[[], Sequence[str]]
) -> None:
    with require_extra("mcp", "MCP is"):
        if find_spec("mcp") is None:
            raise ModuleNotFoundError(name="mcp")
    # The client gets its first response before the import of the SDK, which takes a second.
    first_line = answer_initialize()
    with require_extra("mcp", "MCP is"):
        from skillhall._internal.mcp.server import SkillServer
        from skillhall._internal.mcp.stdio import log_to_stderr, serve_stdio
    gc.enable()  # `main` disables it for short commands
    log_to_stderr()
    print_warnings(finish_refresh())
    view = provider.current_view()
    report_held(view.held, view.trust_problem, view.trust_warnings, trust)
    count = len(view.findings)
    more = f", {format_count(count, 'finding')}: see 'skillhall mcp --check'" if count else ""
    print_message(f"serving {format_count(len(view), 'skill')} over stdin and stdout{more}")
    serve_stdio(SkillServer(provider), first_line)


@completes
def _complete_client(params: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """List the supported MCP clients."""
    from skillhall._internal.installer.mcp_clients.mcp_client_table import MCP_CLIENTS

    del params
    return [(client.id, client.label) for client in MCP_CLIENTS.values()]


_client_argument = click.argument("client", metavar="CLIENT", shell_complete=_complete_client)
_scope_option = click.option(
    "-g/-p",
    "--global/--project",
    "is_user",
    default=None,
    help="Write the file in your home folder, or the project's.  "
    "[default: the project's, if the client reads one]",
)
_name_option = click.option(
    "--name", default="skillhall", show_default=True, metavar="NAME", help="Name of the server."
)


@json_command("install", "skillhall mcp install cursor .agents/skills", group=command)
@_client_argument
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@_scope_option
@_name_option
@dry_run_option
@yes_option
def install(
    *,
    client: str,
    roots: tuple[str, ...],
    is_user: bool | None,
    name: str,
    dry_run: bool,
    yes: bool,
) -> CommandResult:
    """Add Skillhall to the configuration of an MCP client.

    CLIENT is amp, claude-code, claude-desktop, codex, crush, cursor, droid, gemini-cli,
    github-copilot, junie, kiro-cli, lm-studio, opencode, qwen-code, roo, vscode, windsurf or zed.
    The change is shown before it is written. Everything else in the file stays as it is.
    """
    from skillhall._internal.installer.mcp_clients import client_config

    if not _SERVER_NAME.fullmatch(name):
        raise click.UsageError("--name takes up to 64 letters, digits, '-' and '_'")
    settings, file = _find_config_file(client, is_user=is_user)
    words = _find_program(is_user=file.is_user), "mcp", *map(file.build_root, roots)
    edit = client_config.plan_install(settings, file, name, words)
    return _finish_edit(settings, edit, dry_run=dry_run, yes=yes)


@json_command("uninstall", "skillhall mcp uninstall cursor", group=command)
@_client_argument
@_scope_option
@_name_option
@dry_run_option
@yes_option
def uninstall(
    *, client: str, is_user: bool | None, name: str, dry_run: bool, yes: bool
) -> CommandResult:
    """Remove Skillhall from the configuration of an MCP client.

    This undoes 'skillhall mcp install': the file gets its earlier content, and is removed if
    'install' has created it.
    """
    from skillhall._internal.installer.mcp_clients import client_config

    settings, file = _find_config_file(client, is_user=is_user)
    edit = client_config.plan_uninstall(settings, file, name)
    return _finish_edit(settings, edit, dry_run=dry_run, yes=yes)


def _find_config_file(name: str, *, is_user: bool | None) -> tuple[Settings, ConfigFile]:
    from skillhall._internal.installer.mcp_clients.client_config import find_config_file
    from skillhall._internal.installer.mcp_clients.mcp_client_table import MCP_CLIENTS

    if name not in MCP_CLIENTS:
        raise click.UsageError(f"{name!r} is not one of {', '.join(MCP_CLIENTS)}")
    settings, client = read_settings(), MCP_CLIENTS[name]
    is_user = not client.project_file if is_user is None else is_user
    return settings, find_config_file(settings, client, sys.platform, is_user=is_user)


def _find_program(*, is_user: bool) -> str:
    """Return the program in an entry: its path, because desktop programs have a short PATH.

    A project's file is shared with others, who have it elsewhere.
    """
    found = shutil.which("skillhall")
    return found if is_user and found else "skillhall"


def _finish_edit(
    settings: Settings, edit: ConfigEdit, *, dry_run: bool, yes: bool
) -> CommandResult:
    from skillhall._internal.installer.mcp_clients.client_config import apply_edit

    location, action, diff = edit.file.location, edit.action, [*edit.iter_diff()]
    is_written = action != "none" and not dry_run
    if is_written:
        if not yes:
            for line in (location, *diff):
                print_message(line)
            confirm(f"Change {location}?")
        apply_edit(settings, edit)
    data = {
        "client": edit.file.client.id,
        "name": edit.name,
        "path": location,
        "action": action,
        "written": is_written,
        "removesFile": edit.after is None and action == "remove",
        "diff": diff,
    }
    if action == "none":
        messages = [f"{location} needs no change"]
    elif is_written:
        messages = [f"changed {location}; restart {edit.file.client.label} if it is running"]
    else:
        messages = [f"would change {location}"]
    warnings = []
    if edit.added and shutil.which("skillhall") is None:
        warnings.append("warning: skillhall is not on your PATH, so the client may not find it")
    if edit.added and find_spec("mcp") is None:
        warnings.append("warning: the server needs the MCP SDK: pip install 'skillhall[mcp]'")
    # The user has seen the diff with the question.
    shown = diff if dry_run or yes else ()
    return CommandResult(data, lines=shown, messages=messages, warnings=warnings)
