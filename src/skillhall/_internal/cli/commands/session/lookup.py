"""Helpers of the session commands: the workspace, lookup by name, output."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.terminal import sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.workspace import Block, Session
    from skillhall._internal.workspace.workspace import Workspace

_MAX_TITLE_LENGTH = 60  # characters of a block's text in a list
_PAGE_SIZE = 1000  # sessions per query


@contextmanager
def open_configured_workspace() -> Iterator[Workspace]:
    """Open the configured workspace. Raises: CommandFailed if a package is missing."""
    try:
        from skillhall._internal.wiring.workspace import open_workspace

        workspace = open_workspace(read_settings())
    except ModuleNotFoundError as error:
        raise to_missing_package_error(error) from None
    try:
        yield workspace
    finally:
        workspace.close()


def to_missing_package_error(error: ModuleNotFoundError) -> Exception:
    """Return the error for missing database packages, else `error` itself."""
    if (error.name or "").partition(".")[0] != "sqlalchemy":
        return error
    hint = "pip install 'skillhall[server]'"
    return CommandFailed("usage", "the packages for databases are not installed", hint)


def find_session(workspace: Workspace, name_or_id: str) -> Session:
    """Return the session with this id, or the only one with this name. Raises: CommandFailed."""
    from skillhall.errors import RecordNotFound

    try:
        return workspace.sessions.find(name_or_id)
    except RecordNotFound:
        matches = [session for session in iter_sessions(workspace) if session.name == name_or_id]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(session.id for session in matches)
        raise CommandFailed("conflict", f"several sessions are named {name_or_id!r}", f"ids: {ids}")
    hint = "'skillhall session list' shows all sessions"
    raise CommandFailed("not_found", f"session not found: {name_or_id!r}", hint)


def find_block(workspace: Workspace, session: Session, name_or_id: str) -> Block:
    """Return the block by id, skill name or end of its id. Raises: CommandFailed."""
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


def format_block_row(block: Block) -> tuple[str, ...]:
    """Return the columns of a block in a list."""
    content = block.content
    title = content.skill.name if content.skill else sanitize_line(content.text)[:_MAX_TITLE_LENGTH]
    return block.id, content.zone.value, content.type, f"≈{content.tokens}", title


def print_session_json(
    command: str, data: Mapping[str, object], findings: Iterable[JudgedFinding] = ()
) -> None:
    """Print the result of a session command as JSON."""
    print_json_report(f"session {command}", data, findings)


def print_ids(ids: Iterable[str]) -> None:
    """Print one id per line."""
    for identity in ids:
        sys.stdout.write(f"{sanitize_line(identity)}\n")
