"""`skillhall mcp`: serves skills to the MCP client that started the process."""

from __future__ import annotations

import gc
from importlib.util import find_spec
from typing import TYPE_CHECKING

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
from skillhall._internal.cli.options import flag, json_command, root_search_options
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import format_count, print_message
from skillhall._internal.mcp.handshake import answer_initialize
from skillhall._internal.wiring.catalog import find_profile
from skillhall._internal.wiring.revocation_refresh import start_daily_refresh
from skillhall._internal.wiring.skill_provider import open_folder_provider

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider


@json_command("mcp", "claude mcp add skills -- skillhall mcp ~/skills")
@root_search_options
@trust_options
@flag("--check", help="Show what clients would see and exit.")
def command(*, search: SearchOptions, trust: TrustOptions, check: bool) -> CommandResult | None:
    """Serve the skills below each ROOT, or in the default skill folders, over MCP.

    An MCP client starts this command and talks to it over stdin and stdout. It exits when stdin is
    closed. With --check or --json, it shows what clients would see and exits.
    """
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
