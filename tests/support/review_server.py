"""Server whose skills are reviewed, with tokens of an author, two reviewers and a reader."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.database import open_database_services
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from tests.support.archives import zip_of
from tests.support.servers import HttpResponse, MemoryTokens, RunningServer, run_server
from tests.support.skills import make_skill_md

SKILLS = "/api/v1/skills"
TOKENS = {
    "reader": ("read",),
    "author": ("read", "write"),
    "reviewer": ("read", "write", "review"),
    "second": ("read", "write", "review"),
}


@dataclass
class ReviewServer:
    """Running server; requests are sent with the token of a person."""

    running: RunningServer
    folder: Path

    def request(
        self,
        person: str,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        sent = {"Authorization": f"Bearer {person}", **(headers or {})}
        return self.running.request(method, path, body, sent)

    def write(self, body: str, skill: str = "pdf", person: str = "author") -> HttpResponse:
        """Import a skill with this body."""
        files = {f"{skill}/SKILL.md": make_skill_md(skill, f"About {body}", body)}
        kind = {"Content-Type": "application/zip"}
        path = f"{SKILLS}/import?replace=true"
        return self.request(person, "POST", path, zip_of(files), kind)

    def digest(self, number: int, skill: str = "pdf") -> str:
        path = f"{SKILLS}/{skill}/versions/{number}"
        return str(self.request("author", "GET", path).json["data"]["digest"])

    def approve(self, number: int, person: str = "reviewer", skill: str = "pdf") -> HttpResponse:
        path = f"{SKILLS}/{skill}/versions/{number}/approve"
        match = {"If-Match": f'"{self.digest(number, skill)}"'}
        return self.request(person, "POST", path, headers=match)

    def submit(self, number: int, skill: str = "pdf") -> HttpResponse:
        path = f"{SKILLS}/{skill}/versions/{number}/submit"
        return self.request("author", "POST", path)

    def publish(self, body: str, number: int, skill: str = "pdf") -> None:
        """Write, submit and approve a version, whose number is known."""
        assert self.write(body, skill).status == 201
        assert self.submit(number, skill).status == 200
        response = self.approve(number, skill=skill)
        assert response.status == 200, response.body

    def body(self, skill: str = "pdf", person: str = "reader") -> str:
        """Return the served instructions, or "" if there are none."""
        response = self.request(person, "GET", f"{SKILLS}/{skill}")
        return str(response.json["data"]["body"]).strip() if response.status == 200 else ""


def review_settings(folder: Path, mode: str = "one", **environment: str) -> Settings:
    """Return the settings of a server whose data are below a folder."""
    variables = {
        "SKILLHALL_CACHE_DIR": str(folder / "cache"),
        "SKILLHALL_DATA_DIR": str(folder / "data"),
        "SKILLHALL_PORT": "0",
        "SKILLHALL_AUTH_TOKEN": "operator-of-the-review-server",
        "SKILLHALL_REVIEW": mode,
        **environment,
    }
    (folder / "run").mkdir(parents=True, exist_ok=True)
    return Settings.read(variables)._replace(working_directory=str(folder / "run"))


@contextmanager
def review_server(folder: Path, mode: str = "one", **environment: str) -> Iterator[ReviewServer]:
    """Run a server whose data are below a folder."""
    settings = review_settings(folder, mode, **environment)
    tokens = MemoryTokens()
    for person, scopes in TOKENS.items():
        tokens.add(person, scopes, owner=person)
    with closing(open_database_services(settings)) as services:
        prompts = open_prompt_service(settings, services=services)
        collection = open_collection(settings, prompts, services)
        app = Services(prompts, collection, accepted_tokens=tokens, sign_ins=services.sign_ins)
        collection.watch()
        try:
            with run_server(settings=settings, services=app) as running:
                yield ReviewServer(running, folder)
        finally:
            collection.close()
            prompts.close()
