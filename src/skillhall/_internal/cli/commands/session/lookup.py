"""What the commands on sessions share: the workspace, finding things by name, rows and JSON."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.terminal import is_interactive, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.workspace import Block, Session
    from skillhall._internal.workspace.workspace import Workspace

_MAX_TITLE_LENGTH = 60  # characters of a block in a list
_PAGE_SIZE = 1000  # sessions that are looked through at once


@contextmanager
def open_configured_workspace() -> Iterator[Workspace]:
    """The workspace of the configured database. Raises: CommandFailed if a package is missing."""
    try:
        from skillhall._internal.wiring.workspace import open_workspace

        desk = open_workspace(read_settings())
    except ModuleNotFoundError as error:
        raise to_missing_package_error(error) from None
    try:
        yield desk
    finally:
        desk.close()


def to_missing_package_error(error: ModuleNotFoundError) -> Exception:
    """What to say when the database's packages are not installed; else the error itself."""
    if (error.name or "").partition(".")[0] != "sqlalchemy":
        return error
    hint = "pip install 'skillhall[server]'"
    return CommandFailed("usage", "sessions need a package that is not installed", hint)


def find_session(workspace: Workspace, name_or_id: str) -> Session:
    """The session with that id, or the only one of that name. Raises: CommandFailed."""
    from skillhall.errors import RecordNotFound

    try:
        return workspace.sessions.find(name_or_id)
    except RecordNotFound:
        named = [one for one in iter_sessions(workspace) if one.name == name_or_id]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(one.id for one in named)
        raise CommandFailed(
            "conflict", f"several sessions are called {name_or_id!r}", f"ids: {ids}"
        )
    hint = "'skillhall session list' shows all of them"
    raise CommandFailed("not_found", f"there is no session {name_or_id!r}", hint)


def find_block(workspace: Workspace, session: Session, name_or_id: str) -> Block:
    """The block whose id begins so, or of the skill of that name. Raises: CommandFailed."""
    blocks = workspace.blocks.list(session.id)
    found = [one for one in blocks if one.id == name_or_id]
    found = found or [
        one for one in blocks if one.content.skill and one.content.skill.name == name_or_id
    ]
    found = found or [one for one in blocks if name_or_id and one.id.endswith(name_or_id)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandFailed(
            "conflict", f"several blocks are meant by {name_or_id!r}", "give a whole id"
        )
    hint = "'skillhall session show' lists the blocks"
    raise CommandFailed("not_found", f"there is no block {name_or_id!r} in that session", hint)


def iter_sessions(workspace: Workspace) -> Iterator[Session]:
    """Every session."""
    after = ""
    while page := workspace.sessions.list(after, _PAGE_SIZE):
        yield from page
        after = page[-1].id


def format_block_row(block: Block) -> tuple[str, ...]:
    """A block as a line shows it."""
    content = block.content
    title = content.skill.name if content.skill else sanitize_line(content.text)[:_MAX_TITLE_LENGTH]
    return block.id, content.zone.value, content.type, f"≈{content.tokens}", title


def print_session_json(
    command: str, data: Mapping[str, object], findings: Iterable[JudgedFinding] = ()
) -> None:
    """The answer of a command."""
    from skillhall._internal.cli.json_output import print_json_report

    print_json_report(f"session {command}", data, findings)


def print_ids(ids: Iterable[str]) -> None:
    """One id on each line."""
    for identity in ids:
        sys.stdout.write(f"{sanitize_line(identity)}\n")


def confirm(question: str, *, can_ask: bool) -> None:
    """Ask; nobody there is no yes."""
    if not (can_ask and is_interactive()):
        raise click.UsageError(
            f"nobody can be asked here; -y answers yes to: {sanitize_line(question)}",
            click.get_current_context(),
        )
    click.confirm(sanitize_line(question), abort=True, err=True)
