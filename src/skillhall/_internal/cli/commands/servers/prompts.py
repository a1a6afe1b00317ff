"""`skillhall prompts`: lists, prints, refreshes and uploads prompts of a server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count
from skillhall._internal.cli.errors import NETWORK_ERROR, OK
from skillhall._internal.cli.json_output import print_json_report
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
    """Use the prompts of a server. All commands accept --json.

    The token is read from SKILLHALL_SERVER_TOKEN.
    """
    print_group_help(ctx)


@command.command("list", epilog="Example: skillhall prompts list --json")
@server_option
@source_selector_options
@json_option
def list_prompts(*, server: str, selector: Mapping[str, str], as_json: bool) -> int:
    """List the prompts with their descriptions and arguments."""
    listing = open_server(server, selector).list_prompts()
    if as_json:
        prompts = [
            {
                "name": prompt.name,
                "description": prompt.description,
                "arguments": [argument._asdict() for argument in prompt.arguments],
            }
            for prompt in listing.prompts
        ]
        stale = {"stale": listing.stale} if listing.stale else {}
        print_json_report("prompts list", {"prompts": prompts, "source": listing.source, **stale})
        return 0
    print_rows(
        (prompt.name, prompt.description, " ".join(argument.name for argument in prompt.arguments))
        for prompt in listing.prompts
    )
    print_message(f"{format_count(len(listing.prompts), 'prompt')} of {listing.source}")
    if listing.stale:
        print_message(f"warning: the server serves a cached version: {listing.stale}")
    return 0


@command.command("get", epilog="Example: skillhall prompts get review --arg file=main.py")
@click.argument("name")
@click.option(
    "--arg", "arguments", multiple=True, metavar="NAME=TEXT", help="Set an argument. Repeatable."
)
@click.option("--files", "directory", metavar="DIR", help="Write its files to this new folder.")
@server_option
@source_selector_options
@json_option
def get_prompt(  # noqa: PLR0913 - one parameter for each option
    *,
    name: str,
    arguments: tuple[str, ...],
    directory: str | None,
    server: str,
    selector: Mapping[str, str],
    as_json: bool,
) -> int:
    """Print the text of the prompt NAME."""
    prompt = open_server(server, selector).fetch_prompt(name, _parse_arguments(arguments))
    if directory is not None and prompt.files:
        from skillhall._internal.prompts.generate.prompt_server import write_prompt_files

        write_prompt_files(directory, prompt.files)
    if as_json:
        data = {"name": name, "description": prompt.description, "text": prompt.text}
        print_json_report(
            "prompts get",
            {**data, "files": _serialize_file_sizes(prompt.files), "source": prompt.source},
        )
        return 0
    print_text(prompt.text if prompt.text.endswith("\n") else f"{prompt.text}\n")
    _print_file_summary(prompt.files, directory)
    return 0


@command.command("refresh", epilog="Example: skillhall prompts refresh")
@server_option
@source_selector_options
@json_option
def refresh(*, server: str, selector: Mapping[str, str], as_json: bool) -> int:
    """Make the server fetch its repository now.

    Skipped prompts are listed. If the server cannot reach the repository, it keeps serving a cached
    version and this command fails.
    """
    result = open_server(server, selector).refresh()
    if as_json:
        print_json_report("prompts refresh", _serialize_refresh(result))
    else:
        _print_skipped(result.skipped, result.skipped_total)
        skipped = f"; {result.skipped_total} skipped" if result.skipped_total else ""
        cached = "" if result.is_refreshed else ", from a cached version"
        print_message(
            f"{format_count(result.prompts, 'prompt')} of {result.source}{cached}{skipped}"
        )
        if not result.is_refreshed:
            print_message(f"not refreshed: {result.reason}")
    return OK if result.is_refreshed else NETWORK_ERROR


@command.command("upload", epilog="Example: skillhall prompts upload ./prompts --source team")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option("--source", required=True, metavar="NAME", help="Store the prompts under this name.")
@server_option
@json_option
def upload(*, folder: str, source: str, server: str, as_json: bool) -> int:
    """Upload the prompts in FOLDER to the server.

    The limits are 100 files and 256 KiB. Hidden files and links are skipped.
    """
    from skillhall._internal.prompts.generate.prompt_server import read_upload_folder

    upload_folder = read_upload_folder(folder)
    _print_upload_findings(upload_folder)
    client = open_server(server, {"source": source})
    result = client.upload(source, upload_folder.digest, upload_folder.files)
    if as_json:
        data = {
            "source": result.source,
            "contentHash": upload_folder.digest,
            "fileCount": result.files,
        }
        print_json_report(
            "prompts upload",
            {**data, "status": result.status, "skipped": _serialize_skipped(result.skipped)},
        )
    else:
        _print_skipped(result.skipped, result.skipped_total)
        print_message(
            f"{result.status}: {format_count(len(upload_folder.files), 'file')} as {result.source}"
        )
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
    return [entry._asdict() for entry in skipped]


def _print_skipped(skipped: Sequence[SkippedEntry], total: int) -> None:
    for entry in skipped:
        print_message(f"{entry.path or entry.name}: skipped[{entry.code}]: {entry.message}")
    if total > len(skipped):
        print_message(f"{total - len(skipped)} more skipped")


def _parse_arguments(pairs: Sequence[str]) -> dict[str, str]:
    arguments = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--arg must be NAME=TEXT, not {pair!r}")
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
        paths = ", ".join(sanitize_line(path) for path in files)
        print_message(f"{format_count(len(files), 'file')}: {paths}; --files DIR writes them")


def _print_upload_findings(upload_folder: UploadFolder) -> None:
    for finding in upload_folder.findings:
        print_message(f"{finding.path}: warn[{finding.code}]: {finding.message}")
