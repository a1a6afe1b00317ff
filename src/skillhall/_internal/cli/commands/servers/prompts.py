"""`skillhall prompts`: what a prompt server has, and giving it more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import counted
from skillhall._internal.cli.errors import OK, UPSTREAM
from skillhall._internal.cli.options import json_option, show_help
from skillhall._internal.cli.server_options import asked_options, open_server, server_option
from skillhall._internal.cli.terminal import clean, print_rows, print_text, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.prompts.generate.prompt_server import NotServed, Packed, Refreshed

    Files = Mapping[str, bytes]


@click.group("prompts", invoke_without_command=True, epilog="Example: skillhall prompts list")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Ask a server for its prompts, or give it some. All take --json.

    The server's token comes from SKILLHALL_SERVER_TOKEN.
    """
    show_help(ctx)


@command.command("list", epilog="Example: skillhall prompts list --json")
@server_option
@asked_options
@json_option
def list_prompts(*, server: str, asked: Mapping[str, str], as_json: bool) -> int:
    """List the prompts: name, description, arguments."""
    listing = open_server(server, asked).list()
    if as_json:
        told = [
            {
                "name": one.name,
                "description": one.description,
                "arguments": [argument._asdict() for argument in one.arguments],
            }
            for one in listing.prompts
        ]
        stale = {"stale": listing.stale} if listing.stale else {}
        _print_json("list", {"prompts": told, "source": listing.source, **stale})
        return 0
    print_rows(
        (one.name, one.description, " ".join(argument.name for argument in one.arguments))
        for one in listing.prompts
    )
    say(f"{counted(len(listing.prompts), 'prompt')} of {listing.source}")
    if listing.stale:
        say(f"the server serves an older copy: {listing.stale}")
    return 0


@command.command("get", epilog="Example: skillhall prompts get review --arg file=main.py")
@click.argument("name")
@click.option(
    "--arg", "arguments", multiple=True, metavar="NAME=TEXT", help="An argument; repeatable."
)
@click.option("--files", "directory", metavar="DIR", help="Write its files into this new folder.")
@server_option
@asked_options
@json_option
def get_prompt(  # noqa: PLR0913 - one parameter for each option
    *,
    name: str,
    arguments: tuple[str, ...],
    directory: str | None,
    server: str,
    asked: Mapping[str, str],
    as_json: bool,
) -> int:
    """Print the text of the prompt NAME."""
    given = open_server(server, asked).fetch(name, _read_arguments(arguments))
    if directory is not None and given.files:
        from skillhall._internal.prompts.generate.prompt_server import write_files

        write_files(directory, given.files)
    if as_json:
        data = {"name": name, "description": given.description, "text": given.text}
        _print_json("get", {**data, "files": _sizes(given.files), "source": given.source})
        return 0
    print_text(given.text if given.text.endswith("\n") else f"{given.text}\n")
    _tell_files(given.files, directory)
    return 0


@command.command("refresh", epilog="Example: skillhall prompts refresh")
@server_option
@asked_options
@json_option
def refresh(*, server: str, asked: Mapping[str, str], as_json: bool) -> int:
    """Have the server look for news in its repository.

    Prompts that the server skips are named. If it cannot reach the repository, it serves an older
    copy, and the command fails.
    """
    done = open_server(server, asked).refresh()
    if as_json:
        _print_json("refresh", _refreshed(done))
    else:
        _tell_skipped(done.skipped, done.skipped_total)
        skipped = f"; {done.skipped_total} skipped" if done.skipped_total else ""
        older = "" if done.is_done else ", from an older copy"
        say(f"{counted(done.prompts, 'prompt')} of {done.source}{older}{skipped}")
        if not done.is_done:
            say(f"not refreshed: {done.reason}")
    return OK if done.is_done else UPSTREAM


@command.command("upload", epilog="Example: skillhall prompts upload ./prompts --source team")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option("--source", required=True, metavar="NAME", help="The name to keep them under.")
@server_option
@json_option
def upload(*, folder: str, source: str, server: str, as_json: bool) -> int:
    """Send the prompts in FOLDER to the server, which keeps them under a name.

    At most 100 files and 256 KiB; hidden files and links stay behind.
    """
    from skillhall._internal.prompts.generate.prompt_server import pack

    packed = pack(folder)
    _tell_left_behind(packed)
    client = open_server(server, {"source": source})
    sent = client.upload(source, packed.digest, packed.files)
    if as_json:
        data = {"source": sent.source, "contentHash": packed.digest, "fileCount": sent.files}
        _print_json("upload", {**data, "status": sent.status, "skipped": _rows(sent.skipped)})
    else:
        _tell_skipped(sent.skipped, sent.skipped_total)
        say(f"{sent.status}: {counted(len(packed.files), 'file')} as {sent.source}")
    return 0


def _refreshed(done: Refreshed) -> Mapping[str, object]:
    data = {"refreshed": done.is_done, "promptsLoaded": done.prompts, "source": done.source}
    reason = {} if done.is_done else {"reason": done.reason}
    return {**data, **reason, "skipped": _rows(done.skipped)}


def _rows(skipped: Sequence[NotServed]) -> list[dict[str, str]]:
    return [one._asdict() for one in skipped]


def _tell_skipped(skipped: Sequence[NotServed], total: int) -> None:
    for one in skipped:
        say(f"{one.path or one.name}: skipped[{one.code}]: {one.message}")
    if total > len(skipped):
        say(f"{total - len(skipped)} more are skipped")


def _read_arguments(words: Sequence[str]) -> dict[str, str]:
    arguments = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise click.UsageError(
                f"--arg takes NAME=TEXT, not {word!r}", click.get_current_context()
            )
        arguments[name] = text
    return arguments


def _sizes(files: Files) -> list[dict[str, object]]:
    return [{"path": path, "size": len(data)} for path, data in files.items()]


def _tell_files(files: Files, directory: str | None) -> None:
    sys.stdout.flush()
    if directory is not None:
        say(f"{counted(len(files), 'file')} written" if files else "the prompt has no files")
    elif files:
        told = ", ".join(clean(path) for path in files)
        say(f"it has {counted(len(files), 'file')}: {told}; --files DIR writes them")


def _tell_left_behind(packed: Packed) -> None:
    for found in packed.findings:
        say(f"{found.path}: warn[{found.code}]: {found.message}")


def _print_json(name: str, data: Mapping[str, object]) -> None:
    from skillhall._internal.cli.json_output import print_report

    print_report(f"prompts {name}", data)
