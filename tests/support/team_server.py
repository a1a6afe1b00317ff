"""Complete server of a team: prompt service and collection of local repositories."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.prompts import open_prompt_service
from skillhall._internal.wiring.server_skills import open_collection
from tests.support.servers import HttpResponse, RunningServer, run_server
from tests.support.skills import make_skill_md

LIST = "/api/v1/prompts"
HOOK = "/api/v1/webhooks/git"


def make_commit_files(number: int) -> dict[str, bytes]:
    """Return the files of one commit, each with its number."""
    text = f"commit {number}"
    return {
        "hello.md": make_skill_md("hello", text, text),
        "pdf/SKILL.md": make_skill_md("pdf", text, text),
        "pdf/data/number.txt": text.encode(),
        "pdf/data/deep/again.txt": text.encode(),
    }


def team_settings(folder: Path, repo: str, **environment: str) -> Settings:
    """Read settings from an environment, with all data below one folder."""
    variables = {
        "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
        "SKILLHALL_CACHE_DIR": str(folder / "cache"),
        "SKILLHALL_DATA_DIR": str(folder / "data"),
        "SKILLHALL_PORT": "0",
        "SKILLHALL_PROMPTS_REPO": repo,
        **environment,
    }
    (folder / "work").mkdir(exist_ok=True)
    return Settings.read(variables)._replace(working_directory=str(folder / "work"))


@contextmanager
def team_server(settings: Settings) -> Iterator[RunningServer]:
    """Run the complete server until the block ends."""
    service = open_prompt_service(settings)
    try:
        services = Services(service, open_collection(settings, service))
        with run_server(settings=settings, services=services) as server:
            yield server
    finally:
        service.close()


def send_push(server: RunningServer, secret: str, url: str, branch: str = "main") -> HttpResponse:
    """Send the webhook request of a git host for a push."""
    payload = {"ref": f"refs/heads/{branch}", "repository": {"clone_url": url}}
    body = json.dumps(payload).encode()
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "push", "X-Hub-Signature-256": signature, "Authorization": ""}
    return server.request("POST", HOOK, body, headers)


def decode_files(data: dict[str, Any]) -> dict[str, bytes]:
    """Return the files of a prompt by path."""
    return {item["path"]: base64.b64decode(item["content"]) for item in data.get("files", ())}


def list_descriptions(data: dict[str, Any]) -> set[str]:
    """Return the descriptions of a numbered commit's prompts."""
    return {item["description"] for item in data["prompts"] if item["name"] in ("hello", "pdf")}


def list_prompt_texts(data: dict[str, Any]) -> set[str]:
    """Return all texts of a prompt of a numbered commit."""
    texts = {data["description"], data["messages"][0]["content"]["text"].strip()}
    return texts | {content.decode() for content in decode_files(data).values()}
