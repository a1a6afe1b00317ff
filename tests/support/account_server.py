"""Complete server with a user of each role, and their credentials."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillhall._internal.asgi import Services
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.actor import USER_OWNER_PREFIX, Actor
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.database import Accounts, DatabaseServices, open_database_services
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection, open_server_trust
from skillhall._internal.wiring.workspace import open_lazy_workspace
from tests.support.actors import ACTOR
from tests.support.servers import TOKEN, RunningServer, run_server

ADMIN = Actor("operator")


@dataclass
class AccountServer:
    """Running server with users named after their roles."""

    server: RunningServer
    database: DatabaseServices
    accounts: Accounts
    tokens: Mapping[Role, str]  # with all scopes

    def bearer(self, role: Role) -> dict[str, str]:
        """Return the header with the token of a user."""
        return {"Authorization": f"Bearer {self.tokens[role]}"}

    def cookie(self, role: Role) -> dict[str, str]:
        """Sign a user in and return the header with the cookie."""
        user = self.accounts.users.find(role.value)
        owner = f"{USER_OWNER_PREFIX}{user.id}"
        created = self.database.sign_ins.create(owner, "", "", 3600, actor=ACTOR)
        return {"Cookie": f"skillhall_session={created.cookie}"}


def account_settings(folder: Path, **environment: str) -> Settings:
    """Read settings from an environment, with all data below one folder."""
    variables = {
        "SKILLHALL_AUTH_TOKEN": TOKEN,
        "SKILLHALL_CACHE_DIR": str(folder / "cache"),
        "SKILLHALL_DATA_DIR": str(folder / "data"),
        "SKILLHALL_FOLDER_SCAN": "on",
        "SKILLHALL_PORT": "0",
        **environment,
    }
    (folder / "work").mkdir(exist_ok=True)
    return Settings.read(variables)._replace(working_directory=str(folder / "work"))


@contextmanager
def run_account_server(settings: Settings) -> Iterator[AccountServer]:
    """Run the complete server until the block ends."""
    database = open_database_services(settings)
    prompts = open_prompt_service(settings, services=database)
    workspace = open_lazy_workspace(settings, database)
    collection = open_collection(settings, prompts, database)
    accounts = database.open_accounts(settings)
    services = Services(
        prompts,
        collection,
        workspace,
        accepted_tokens=database.token_cache,
        sign_ins=database.sign_ins,
        users=database.users,
        accounts=accounts,
        trust=open_server_trust(settings, collection, database),
        audit=database.audit,
        runtime=database.runtime,
    )
    try:
        tokens = {}
        for role in Role:
            accounts.users.add(role.value, role, ADMIN)
            label = f"token of {role}"
            tokens[role] = accounts.tokens.create(
                label, role.value, [*AccessScope], actor=ACTOR
            ).text
        for cache in (database.users, database.token_cache):
            cache.try_refresh()
        with run_server(settings=settings, services=services) as server:
            yield AccountServer(server, database, accounts, tokens)
    finally:
        collection.close()
        prompts.close()
        workspace.close()
        database.close()
