"""`skillhall serve`: prompts and skills over HTTP, and the web page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillhall._internal.cli.catalog_loader import format_count, read_settings
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import json_option
from skillhall._internal.cli.terminal import print_message, sanitize_line
from skillhall._internal.prompts.prompt_model import BUILT_IN
from skillhall.errors import without_credentials

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import DatabaseServices

_EXTRA_PACKAGES = frozenset(
    {
        "fastapi",
        "uvicorn",
        "httptools",
        "prometheus_client",
        "pydantic",
        "anyio",
        "mcp",
        "mcp_types",
        "sqlalchemy",
        "jinja2",
        "markdown_it",
        "markupsafe",
        "nh3",
        "pygments",
        "python_multipart",
    }
)


@click.command("serve", epilog="Example: skillhall serve --repo https://github.com/acme/prompts")
@click.option("--host", metavar="ADDRESS", help="Where to listen; 127.0.0.1 if not set.")
@click.option("--port", type=click.IntRange(0, 65_535), help="8321 if not set; 0 takes a free one.")
@click.option("--repo", metavar="URL", help="The git repository whose prompts are served.")
@click.option("--branch", metavar="NAME", help="Its branch; main if not set.")
@click.option("--path", metavar="DIR", help="The folder in it.")
@click.option(
    "--run-dir",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The run directory; the working directory if not given.",
)
@click.option("--verbose", is_flag=True, help="Log health checks too.")
@json_option
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    host: str | None,
    port: int | None,
    repo: str | None,
    branch: str | None,
    path: str | None,
    run_dir: str | None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Serve prompts and skills by REST, by MCP at /mcp, and as a web page, until Ctrl-C or SIGTERM.

    Options come before the settings in the environment. Without SKILLHALL_AUTH_TOKEN only this
    machine is served.
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
    return _serve(settings, "DEBUG" if verbose else "INFO", as_json=as_json)


def _serve(settings: Settings, log_level: str, *, as_json: bool) -> int:
    import gc

    try:
        from skillhall._internal.asgi import Services, listen, log_to_stderr, serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_PACKAGES:
            raise
        raise CommandFailed(
            "usage", "the server is not installed", "pip install 'skillhall[server]'"
        ) from None
    from skillhall._internal.wiring.database import open_database_services
    from skillhall._internal.wiring.prompts import open_prompt_service
    from skillhall._internal.wiring.server_skills import open_collection
    from skillhall._internal.wiring.workspace import open_lazy_workspace

    listening = listen(settings.server)
    gc.enable()  # a server lives long enough to make garbage
    release_warnings = log_to_stderr(log_level)
    shared = open_database_services(settings)
    counter = open_prompt_service(settings, services=shared)
    url = _format_url(listening.getsockname())
    door = open_lazy_workspace(settings, shared)
    services = Services(
        counter,
        open_collection(settings, counter, shared),
        door,
        accepted_tokens=shared.token_cache,
        check_database=shared.database.find_problem if settings.database_url else None,
    )

    def started() -> None:
        _print_started(url, settings, as_json=as_json)
        release_warnings()

    try:
        _print_warnings(shared)
        serve(services, settings, listening, started)
    finally:
        counter.close()
        door.close()
        shared.close()
    return 0


def _print_warnings(database_services: DatabaseServices) -> None:
    """Tell what is not served: what needs a database that is down, and skills of one machine."""
    if problem := database_services.database.find_problem():
        print_message(
            sanitize_line(f"warning: {problem}; what needs it is served once it can be used")
        )
    if database_services.skill_store is not None and (
        mine := database_services.skill_store.list_unshared_ids()
    ):
        print_message(
            f"warning: .agents/skills holds {format_count(len(mine), 'skill')}, not served "
            "from there"
        )
        print_message("hint: 'skillhall local share' copies them into the database")


def _format_url(address: tuple[str, int]) -> str:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"http://{host}:{address[1]}"


def _print_started(url: str, settings: Settings, *, as_json: bool) -> None:
    """Where it is served, what, and to whom: a line for people, an object for scripts."""
    source = without_credentials(settings.prompts.repo) or BUILT_IN
    has_token = settings.server.auth_token is not None
    if as_json:
        from skillhall._internal.cli.json_output import print_json_report

        print_json_report("serve", {"url": url, "source": source, "token": has_token})
        sys.stdout.flush()
        return
    what = "the built-in prompts" if source == BUILT_IN else source
    who = "a bearer token is needed" if has_token else "no token, this machine only"
    print_message(sanitize_line(f"{url} serves {what} ({who})"))
