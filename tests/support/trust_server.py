"""A server with revocations and inventories, on a real database."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Secret, ServerSettings, Settings
from skillhall._internal.wiring.database import (
    AccessTokens,
    open_access_tokens,
    open_database_services,
)
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection, open_server_trust
from tests.support.servers import RunningServer, run_server


class TrustServer(NamedTuple):
    """A running server, and the folder of its user skills."""

    http: RunningServer
    skills: Path
    settings: Settings

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.port}"

    @property
    def list_url(self) -> str:
        return f"{self.url}/.well-known/agent-skills/revoked.json"


@contextmanager
def run_trust_server(
    folder: Path, *, token: str = "", signing_key: str = ""
) -> Iterator[TrustServer]:
    """Run a server whose files are below `folder`."""
    secret = Secret(token) if token else None
    settings = Settings(
        working_directory=str(folder),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "server-data"),
        server=ServerSettings(port="0", auth_token=secret, signing_key=signing_key),
    )
    with (
        closing(open_database_services(settings)) as database,
        closing(open_prompt_service(settings, poll=False)) as prompts,
        closing(open_collection(settings, prompts, database)) as collection,
    ):
        services = Services(
            prompts,
            collection,
            accepted_tokens=database.token_cache,
            sign_ins=database.sign_ins,
            trust=open_server_trust(settings, collection, database),
        )
        with run_server(settings=settings, services=services) as http:
            yield TrustServer(http, folder / ".agents" / "skills", settings)


@contextmanager
def open_tokens(settings: Settings) -> Iterator[AccessTokens]:
    """Open the access tokens of a server."""
    tokens, close = open_access_tokens(settings)
    try:
        yield tokens
    finally:
        close()
