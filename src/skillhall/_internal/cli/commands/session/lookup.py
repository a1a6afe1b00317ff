"""What the commands on sessions share: the workspace, finding things by name, rows and JSON."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.terminal import clean, is_attended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.workspace import Block, Session
    from skillhall._internal.workspace.workspace import Workspace

_SHOWN = 60  # characters of a block in a list
_PAGE = 1000  # sessions that are looked through at once


@contextmanager
def opened_workspace() -> Iterator[Workspace]:
    """The workspace of the configured database. Raises: CommandFailed if a package is missing."""
    try:
        from skillhall._internal.wiring.workspace import open_workspace

        desk = open_workspace(read_settings())
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    try:
        yield desk
    finally:
        desk.close()


def missing_package(error: ModuleNotFoundError) -> Exception:
    """What to say when the database's packages are not installed; else the error itself."""
    if (error.name or "").partition(".")[0] != "sqlalchemy":
        return error
    hint = "pip install 'skillhall[server]'"
    return CommandFailed("usage", "sessions need a package that is not installed", hint)


def find_session(desk: Workspace, text: str) -> Session:
    """The session with that id, or the only one of that name. Raises: CommandFailed."""
    from skillhall.errors import RecordNotFound

    try:
        return desk.sessions.find(text)
    except RecordNotFound:
        named = [one for one in all_sessions(desk) if one.name == text]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(one.id for one in named)
        raise CommandFailed("conflict", f"several sessions are called {text!r}", f"ids: {ids}")
    hint = "'skillhall session list' shows all of them"
    raise CommandFailed("not_found", f"there is no session {text!r}", hint)


def find_block(desk: Workspace, session: Session, text: str) -> Block:
    """The block whose id begins so, or of the skill of that name. Raises: CommandFailed."""
    blocks = desk.blocks.list(session.id)
    found = [one for one in blocks if one.id == text]
    found = found or [one for one in blocks if one.content.skill and one.content.skill.name == text]
    found = found or [one for one in blocks if text and one.id.endswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandFailed("conflict", f"several blocks are meant by {text!r}", "give a whole id")
    hint = "'skillhall session show' lists the blocks"
    raise CommandFailed("not_found", f"there is no block {text!r} in that session", hint)


def all_sessions(desk: Workspace) -> Iterator[Session]:
    """Every session."""
    after = ""
    while page := desk.sessions.list(after, _PAGE):
        yield from page
        after = page[-1].id


def block_row(block: Block) -> tuple[str, ...]:
    """A block as a line shows it."""
    content = block.content
    title = content.skill.name if content.skill else clean(content.text)[:_SHOWN]
    return block.id, content.zone.value, content.type, f"≈{content.tokens}", title


def print_json(command: str, data: Mapping[str, object], findings: Iterable[Judged] = ()) -> None:
    """The answer of a command."""
    from skillhall._internal.cli.json_output import print_report

    print_report(f"session {command}", data, findings)


def print_ids(ids: Iterable[str]) -> None:
    """One id on each line."""
    for identity in ids:
        sys.stdout.write(f"{clean(identity)}\n")


def confirm(question: str, *, can_ask: bool) -> None:
    """Ask; nobody there is no yes."""
    if not (can_ask and is_attended()):
        raise click.UsageError(
            f"nobody can be asked here; -y answers yes to: {clean(question)}",
            click.get_current_context(),
        )
    click.confirm(clean(question), abort=True, err=True)
