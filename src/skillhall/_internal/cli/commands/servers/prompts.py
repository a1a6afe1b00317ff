"""`skillhall prompts`: lists, prints, refreshes and uploads prompts of a server."""

from collections.abc import Iterator, Mapping, Sequence

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import NETWORK_ERROR, OK
from skillhall._internal.cli.options import command_group, json_command
from skillhall._internal.cli.server_options import (
    open_server,
    server_option,
    source_selector_options,
)
from skillhall._internal.cli.terminal import format_count, print_message
from skillhall._internal.prompt_server.generate.prompt_server_client import (
    SkippedEntry,
    read_upload_folder,
    write_prompt_files,
)

command = command_group(
    "prompts",
    "Use the prompts of a server. All commands accept --json.\n\n"
    "The token is read from SKILLHALL_SERVER_TOKEN.",
    epilog="Example: skillhall prompts list",
)


@json_command("list", "skillhall prompts list --json", group=command)
@server_option
@source_selector_options
def list_prompts(*, server: str, selector: Mapping[str, str]) -> CommandResult:
    """List the prompts with their descriptions and arguments."""
    listing = open_server(server, selector).list_prompts()
    prompts = [
        {
            "name": prompt.name,
            "description": prompt.description,
            "arguments": [argument._asdict() for argument in prompt.arguments],
        }
        for prompt in listing.prompts
    ]
    stale = {"stale": listing.stale} if listing.stale else {}
    messages = [f"{format_count(len(prompts), 'prompt')} from {listing.source}"]
    if listing.stale:
        messages.append(f"warning: the server serves a cached version: {listing.stale}")
    return CommandResult(
        {"prompts": prompts, "source": listing.source, **stale},
        rows=[
            (each.name, each.description, " ".join(argument.name for argument in each.arguments))
            for each in listing.prompts
        ],
        messages=messages,
    )


@json_command("get", "skillhall prompts get review --arg file=main.py", group=command)
@click.argument("name")
@click.option(
    "--arg", "arguments", multiple=True, metavar="NAME=TEXT", help="Set an argument. Repeatable."
)
@click.option(
    "--files",
    "directory",
    metavar="DIR",
    help="Write the files of the prompt to this folder, which must not exist yet.",
)
@server_option
@source_selector_options
def get_prompt(
    *,
    name: str,
    arguments: tuple[str, ...],
    directory: str | None,
    server: str,
    selector: Mapping[str, str],
) -> CommandResult:
    """Print the text of the prompt NAME."""
    prompt = open_server(server, selector).fetch_prompt(name, _parse_arguments(arguments))
    count = format_count(len(prompt.files), "file")
    messages = []
    if directory is None:
        if prompt.files:
            messages.append(f"{count}: {', '.join(prompt.files)}; --files DIR writes them")
    elif prompt.files:
        write_prompt_files(directory, prompt.files)
        messages.append(f"{count} written")
    else:
        messages.append("the prompt has no files")
    data = {
        "name": name,
        "description": prompt.description,
        "text": prompt.text,
        "files": [{"path": path, "size": len(data)} for path, data in prompt.files.items()],
        "source": prompt.source,
    }
    text = prompt.text if prompt.text.endswith("\n") else f"{prompt.text}\n"
    return CommandResult(data, text=text, messages=messages)


@json_command("refresh", "skillhall prompts refresh", group=command)
@server_option
@source_selector_options
def refresh(*, server: str, selector: Mapping[str, str]) -> CommandResult:
    """Make the server fetch its repository now.

    Skipped prompts are listed. If the server cannot reach the repository, it keeps serving a cached
    version and this command fails.
    """
    result = open_server(server, selector).refresh()
    count = format_count(result.prompts, "prompt")
    cached = "" if result.is_refreshed else " (a cached version)"
    skipped = f"; {result.skipped_total} skipped" if result.skipped_total else ""
    messages = [*_format_skipped(result.skipped, result.skipped_total)]
    messages.append(f"{count} from {result.source}{cached}{skipped}")
    if not result.is_refreshed:
        messages.append(f"not refreshed: {result.reason}")
    data = {
        "refreshed": result.is_refreshed,
        "promptsLoaded": result.prompts,
        "source": result.source,
        **({} if result.is_refreshed else {"reason": result.reason}),
        "skipped": [entry._asdict() for entry in result.skipped],
    }
    exit_code = OK if result.is_refreshed else NETWORK_ERROR
    return CommandResult(data, exit_code=exit_code, messages=messages)


@json_command("upload", "skillhall prompts upload ./prompts --source team", group=command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option("--source", required=True, metavar="NAME", help="Store the prompts under this name.")
@server_option
def upload(*, folder: str, source: str, server: str) -> CommandResult:
    """Upload the prompts in FOLDER to the server.

    The limits are 100 files and 256 KiB. Hidden files and links are skipped.
    """
    uploaded = read_upload_folder(folder)
    for finding in uploaded.findings:
        print_message(f"{finding.path}: warn[{finding.code}]: {finding.message}")
    client = open_server(server, {"source": source})
    result = client.upload(source, uploaded.digest, uploaded.files)
    data = {
        "source": result.source,
        "contentHash": uploaded.digest,
        "fileCount": result.files,
        "status": result.status,
        "skipped": [entry._asdict() for entry in result.skipped],
    }
    messages = [*_format_skipped(result.skipped, result.skipped_total)]
    count = format_count(len(uploaded.files), "file")
    messages.append(f"{result.status}: {count} as {result.source}")
    return CommandResult(data, messages=messages)


def _format_skipped(skipped: Sequence[SkippedEntry], total: int) -> Iterator[str]:
    for entry in skipped:
        yield f"{entry.path or entry.name}: skipped[{entry.code}]: {entry.message}"
    if total > len(skipped):
        yield f"{total - len(skipped)} more skipped"


def _parse_arguments(pairs: Sequence[str]) -> dict[str, str]:
    arguments = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--arg must be NAME=TEXT, not {pair!r}")
        arguments[name] = text
    return arguments
