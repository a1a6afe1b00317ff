"""Session commands: access to the workspace, and lookup of sessions and blocks."""

from collections.abc import Callable, Iterator
from functools import wraps

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import CommandFailed, require_database
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.wiring.command_actor import get_actor
from skillhall._internal.workspace import Block, Session
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import RecordNotFound

_PAGE_SIZE = 1000  # sessions per query


def workspace_command(
    name: str, example: str
) -> Callable[[Callable[..., CommandResult]], click.Command]:
    """Create a command whose function gets the workspace, and SESSION as a `Session`.

    The command raises CommandFailed if a package is missing or the session is not found.
    """

    def decorate(function: Callable[..., CommandResult]) -> click.Command:
        @wraps(function)
        def run(**parameters: object) -> CommandResult:
            with require_database():
                from skillhall._internal.wiring.workspace import open_workspace

                workspace = open_workspace(read_settings(), get_actor())
            try:
                if "session" in parameters:
                    parameters["session"] = find_session(workspace, str(parameters["session"]))
                return function(workspace, **parameters)
            finally:
                workspace.close()

        return json_command(name, f"skillhall session {example}")(run)

    return decorate


def find_session(workspace: Workspace, name_or_id: str) -> Session:
    """Return the session with this id, or the only session with this name.

    Raises: CommandFailed if there is none or the name is ambiguous.
    """
    try:
        return workspace.sessions.find(name_or_id)
    except RecordNotFound:
        matches = [session for session in iter_sessions(workspace) if session.name == name_or_id]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(session.id for session in matches)
        raise CommandFailed(
            "conflict", f"several sessions are named {name_or_id!r}", f"use an id: {ids}"
        )
    hint = "'skillhall session list' shows all sessions"
    raise CommandFailed("not_found", f"session not found: {name_or_id!r}", hint)


def find_block(workspace: Workspace, session: Session, name_or_id: str) -> Block:
    """Return the block with this id, this skill name or this id suffix.

    Raises: CommandFailed if there is none or several match.
    """
    blocks = workspace.blocks.list(session.id)
    matches = [block for block in blocks if block.id == name_or_id]
    matches = matches or [
        block for block in blocks if block.content.skill and block.content.skill.name == name_or_id
    ]
    matches = matches or [block for block in blocks if name_or_id and block.id.endswith(name_or_id)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise CommandFailed(
            "conflict", f"several blocks match {name_or_id!r}", "use the complete id"
        )
    hint = "'skillhall session show' lists the blocks"
    raise CommandFailed("not_found", f"block not found in this session: {name_or_id!r}", hint)


def iter_sessions(workspace: Workspace) -> Iterator[Session]:
    """Yield all sessions."""
    after = ""
    while page := workspace.sessions.list(after, _PAGE_SIZE):
        yield from page
        after = page[-1].id
