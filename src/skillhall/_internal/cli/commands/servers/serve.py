"""`skillhall serve`: serves skills and prompts over HTTP."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cache import AdaptiveCache
from skillhall._internal.cli.command_result import is_json
from skillhall._internal.cli.errors import require_extra
from skillhall._internal.cli.json_output import print_json_report
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count, print_message
from skillhall._internal.prompt_server.prompt_model import BUILT_IN
from skillhall._internal.settings import Settings
from skillhall.errors import without_credentials

if TYPE_CHECKING:  # from an optional extra
    from skillhall._internal.wiring.database import DatabaseServices

_CHECK_INTERVAL = 1.0  # seconds


@json_command("serve", "skillhall serve --repo https://github.com/acme/prompts")
@click.option("--host", metavar="ADDRESS", help="Listen on this address.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Listen on this port; 0 picks a free one.  [default: 8321]",
)
@click.option("--repo", metavar="URL", help="Serve the prompts in this git repository.")
@click.option(
    "--branch",
    metavar="NAME",
    help="Use this branch of the repository.  [default: main, else its default branch]",
)
@click.option("--path", metavar="DIR", help="Use this folder of the repository.")
@click.option(
    "--run-dir",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Use this run directory.  [default: the working directory]",
)
@flag("--verbose", help="Log health checks too.")
def command(
    *,
    host: str | None,
    port: int | None,
    repo: str | None,
    branch: str | None,
    path: str | None,
    run_dir: str | None,
    verbose: bool,
) -> None:
    """Serve skills and prompts over HTTP: web pages, a REST API, and MCP at /mcp.

    Options override environment variables. Without SKILLHALL_AUTH_TOKEN, only this machine can
    connect. Ctrl-C or SIGTERM stops the server.
    """
    settings = read_settings()
    server, prompts = settings.server, settings.prompts
    settings = settings._replace(
        working_directory=run_dir or settings.working_directory,
        server=server._replace(
            host=server.host if host is None else host,
            port=server.port if port is None else str(port),
        ),
        prompts=prompts._replace(
            repo=prompts.repo if repo is None else repo,
            branch=prompts.branch if branch is None else branch,
            path=prompts.path if path is None else path,
        ),
    )
    _serve(settings, "DEBUG" if verbose else "INFO")


def _serve(settings: Settings, log_level: str) -> None:
    with require_extra("server", "the server is"):
        from skillhall._internal.asgi import Services, listen, log_to_stderr, serve
    from skillhall._internal.wiring.database import open_database_services
    from skillhall._internal.wiring.embedding_services import open_embeddings
    from skillhall._internal.wiring.prompts import open_prompt_service
    from skillhall._internal.wiring.server_skills import (
        open_collection,
        open_server_trust,
    )
    from skillhall._internal.wiring.workspace import open_lazy_workspace

    # Bind first: a port that is in use must fail before sources and the database are opened.
    listening = listen(settings.server)
    gc.enable()  # `main` disables it for short commands
    release_warnings = log_to_stderr(log_level)
    database = open_database_services(settings)
    embeddings = open_embeddings(settings, database.database)
    embedding = None if embeddings is None else embeddings.open_background()
    prompts = open_prompt_service(settings, services=database)
    workspace = open_lazy_workspace(settings, database)
    # Load balancers may check often, and each check writes to the database.
    database_problem = AdaptiveCache(
        database.database.find_problem, ttl_factor=0, min_ttl=_CHECK_INTERVAL
    )
    semantic = None if embeddings is None else embeddings.ranking
    collection = open_collection(settings, prompts, database, embedding, semantic)
    services = Services(
        prompts,
        collection,
        workspace,
        accepted_tokens=database.token_cache,
        sign_ins=database.sign_ins,
        users=database.users,
        accounts=database.open_accounts(settings),
        check_database=database_problem.get,
        embedding=embedding,
        audit=database.audit,
        runtime=database.runtime,
        trust=open_server_trust(settings, collection, database),
    )

    def started() -> None:
        # The URL is the first line; warnings about sources are buffered until then.
        _print_started(listening.getsockname(), settings, database.users.may_exist)
        release_warnings()

    try:
        _print_warnings(database)
        if embedding is not None:
            embedding.start()
        collection.watch()
        serve(services, settings, listening, started)
    finally:
        collection.close()
        if embedding is not None:
            embedding.close()
        prompts.close()
        workspace.close()
        database.close()


def _print_warnings(database_services: DatabaseServices) -> None:
    """Warn about an unavailable database and about user skills that are not shared."""
    if problem := database_services.database.find_problem():
        print_message(
            f"warning: {problem}; "
            "sessions and shared skills are unavailable until the database works"
        )
    store = database_services.skill_store
    if store is not None and (unshared := store.list_unshared_ids()):
        print_message(
            f"warning: {format_count(len(unshared), 'skill')} in .agents/skills not served: "
            "the server uses the skills in the database"
        )
        print_message("hint: 'skillhall local share' copies them into the database")


def _print_started(address: tuple[str, int], settings: Settings, has_users: bool) -> None:  # noqa: FBT001 - the only flag
    """Print the URL, the source and whether clients must authenticate."""
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    url = f"http://{host}:{address[1]}"
    source = without_credentials(settings.prompts.repo) or BUILT_IN
    has_token = settings.server.auth_token is not None
    if is_json():
        print_json_report("serve", {"url": url, "source": source, "token": has_token})
        sys.stdout.flush()
        return
    label = "the built-in prompts" if source == BUILT_IN else source
    access = "token required" if has_token else "no token, this machine only"
    if has_users:
        access = "sign-in required"
    print_message(f"{url} serves {label} ({access})")
