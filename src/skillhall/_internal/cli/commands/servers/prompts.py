"""`skillhall prompts`: what a prompt server has, and giving it more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import NETWORK_ERROR, OK
from skillhall._internal.cli.options import json_option, print_group_help
from skillhall._internal.cli.server_options import (
    open_server,
    server_option,
    source_selector_options,
)
from skillhall._internal.cli.terminal import print_message, print_rows, print_text, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.prompts.generate.prompt_server import (
        RefreshResult,
        SkippedEntry,
        UploadFolder,
    )

    Files = Mapping[str, bytes]


@click.group("prompts", invoke_without_command=True, epilog="Example: skillhall prompts list")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Ask a server for its prompts, or give it some. All take --json.

    The server's token comes from SKILLHALL_SERVER_TOKEN.
    """
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall prompts list --json")
@server_option
@source_selector_options
@json_option
def list_prompts(*, server: str, asked: Mapping[str, str], as_json: bool) -> int:
    """List the prompts: name, description, arguments."""
    listing = open_server(server, asked).list_prompts()
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
    print_message(f"{format_count(len(listing.prompts), 'prompt')} of {listing.source}")
    if listing.stale:
        print_message(f"the server serves an older copy: {listing.stale}")
    return 0


@command.command("get", epilog="Example: skillhall prompts get review --arg file=main.py")
@click.argument("name")
@click.option(
    "--arg", "arguments", multiple=True, metavar="NAME=TEXT", help="An argument; repeatable."
)
@click.option("--files", "directory", metavar="DIR", help="Write its files into this new folder.")
@server_option
@source_selector_options
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
    given = open_server(server, asked).fetch_prompt(name, _parse_arguments(arguments))
    if directory is not None and given.files:
        from skillhall._internal.prompts.generate.prompt_server import write_prompt_files

        write_prompt_files(directory, given.files)
    if as_json:
        data = {"name": name, "description": given.description, "text": given.text}
        _print_json(
            "get", {**data, "files": _serialize_file_sizes(given.files), "source": given.source}
        )
        return 0
    print_text(given.text if given.text.endswith("\n") else f"{given.text}\n")
    _print_file_summary(given.files, directory)
    return 0


@command.command("refresh", epilog="Example: skillhall prompts refresh")
@server_option
@source_selector_options
@json_option
def refresh(*, server: str, asked: Mapping[str, str], as_json: bool) -> int:
    """Have the server look for news in its repository.

    Prompts that the server skips are named. If it cannot reach the repository, it serves an older
    copy, and the command fails.
    """
    done = open_server(server, asked).refresh()
    if as_json:
        _print_json("refresh", _serialize_refresh(done))
    else:
        _print_skipped(done.skipped, done.skipped_total)
        skipped = f"; {done.skipped_total} skipped" if done.skipped_total else ""
        older = "" if done.is_refreshed else ", from an older copy"
        print_message(f"{format_count(done.prompts, 'prompt')} of {done.source}{older}{skipped}")
        if not done.is_refreshed:
            print_message(f"not refreshed: {done.reason}")
    return OK if done.is_refreshed else NETWORK_ERROR


@command.command("upload", epilog="Example: skillhall prompts upload ./prompts --source team")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option("--source", required=True, metavar="NAME", help="The name to keep them under.")
@server_option
@json_option
def upload(*, folder: str, source: str, server: str, as_json: bool) -> int:
    """Send the prompts in FOLDER to the server, which keeps them under a name.

    At most 100 files and 256 KiB; hidden files and links stay behind.
    """
    from skillhall._internal.prompts.generate.prompt_server import read_upload_folder

    packed = read_upload_folder(folder)
    _print_pack_findings(packed)
    client = open_server(server, {"source": source})
    sent = client.upload(source, packed.digest, packed.files)
    if as_json:
        data = {"source": sent.source, "contentHash": packed.digest, "fileCount": sent.files}
        _print_json(
            "upload", {**data, "status": sent.status, "skipped": _serialize_skipped(sent.skipped)}
        )
    else:
        _print_skipped(sent.skipped, sent.skipped_total)
        print_message(f"{sent.status}: {format_count(len(packed.files), 'file')} as {sent.source}")
    return 0


def _serialize_refresh(result: RefreshResult) -> Mapping[str, object]:
    data = {
        "refreshed": result.is_refreshed,
        "promptsLoaded": result.prompts,
        "source": result.source,
    }
    reason = {} if result.is_refreshed else {"reason": result.reason}
    return {**data, **reason, "skipped": _serialize_skipped(result.skipped)}


def _serialize_skipped(skipped: Sequence[SkippedEntry]) -> list[dict[str, str]]:
    return [one._asdict() for one in skipped]


def _print_skipped(skipped: Sequence[SkippedEntry], total: int) -> None:
    for one in skipped:
        print_message(f"{one.path or one.name}: skipped[{one.code}]: {one.message}")
    if total > len(skipped):
        print_message(f"{total - len(skipped)} more are skipped")


def _parse_arguments(pairs: Sequence[str]) -> dict[str, str]:
    arguments = {}
    for word in pairs:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise click.UsageError(
                f"--arg takes NAME=TEXT, not {word!r}", click.get_current_context()
            )
        arguments[name] = text
    return arguments


def _serialize_file_sizes(files: Files) -> list[dict[str, object]]:
    return [{"path": path, "size": len(data)} for path, data in files.items()]


def _print_file_summary(files: Files, directory: str | None) -> None:
    sys.stdout.flush()
    if directory is not None:
        print_message(
            f"{format_count(len(files), 'file')} written" if files else "the prompt has no files"
        )
    elif files:
        told = ", ".join(sanitize_line(path) for path in files)
        print_message(f"it has {format_count(len(files), 'file')}: {told}; --files DIR writes them")


def _print_pack_findings(upload_folder: UploadFolder) -> None:
    for found in upload_folder.findings:
        print_message(f"{found.path}: warn[{found.code}]: {found.message}")


def _print_json(subcommand: str, data: Mapping[str, object]) -> None:
    from skillhall._internal.cli.json_output import print_json_report

    print_json_report(f"prompts {subcommand}", data)
