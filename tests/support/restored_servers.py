"""Servers filled with data, and all their answers, to compare a restored server with another."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from mcp import Client

from tests.support.mcp_clients import list_all, run_http_client, send_request
from tests.support.replicas import PROMPTS, SKILLS, Replica, skill_files, wait_until
from tests.support.skills import make_skill_md

SESSIONS, TEMPLATES = "/api/v1/sessions", "/api/v1/templates"
WELL_KNOWN = "/.well-known/agent-skills/index.json"
_CHANGING_HEADERS = {"date", "x-request-id"}  # different in each response
_META = re.compile(rb',"meta":\{"timestamp":"[^"]*","requestId":"[^"]*"')
T = TypeVar("T")
Answer = tuple[int, dict[str, str], bytes]


def fill_server(server: Replica, *, skills: int = 3, sessions: int = 2) -> str:
    """Give a server some of everything; return the id of a change that can be undone."""
    files: dict[str, bytes] = {}
    for number in range(skills):
        files |= skill_files(f"skill-{number}", f"Body {number}. Ünïcode 🙂")
    files["skill-0/data/picture.png"] = bytes(range(256)) * 8
    files["gone/SKILL.md"] = make_skill_md("gone", "Deleted.", "x")
    expect(server.import_skills(files), 201)
    for number in range(sessions):
        created = expect(server.request("POST", SESSIONS, {"name": f"Session {number}"}), 201)
        blocks = f"{SESSIONS}/{created['id']}/blocks"
        for text in ("First ä", "Second"):
            block = expect(server.request("POST", blocks, {"type": "note", "content": text}), 201)
        if number == 0:
            match = {"If-Match": f'"{block["version"]}"'}
            expect(server.request("DELETE", f"{blocks}/{block['id']}", None, match), 200)
            one = f"{SESSIONS}/{created['id']}"
            expect(server.request("POST", f"{one}/snapshots", {"name": "Saved"}), 201)
            expect(server.request("POST", TEMPLATES, {"name": "T", "session": created["id"]}), 201)
    upload = {"source": "team", "files": [{"path": "up/SKILL.md", "content": _UPLOADED}]}
    expect(server.request("POST", f"{PROMPTS}/sources", upload), 200)
    deleted = expect(server.request("DELETE", f"{SKILLS}/gone"), 200)
    return str(deleted["change"])


_UPLOADED = base64.b64encode(make_skill_md("up", "Uploaded prompt.", "Do it.")).decode()


def expect(response: Any, status: int) -> Any:  # noqa: ANN401 - JSON
    assert response.status == status, response.body
    return response.json["data"]


def wait_until_settled(read: Callable[[], T]) -> T:
    """Read until two results in a row are equal."""
    results = [read()]

    def is_settled() -> bool:
        results.append(read())
        return results[-1] == results[-2]

    wait_until(is_settled)
    return results[-1]


def read_answers(server: Replica, *, most: int = 50) -> dict[str, Answer]:
    """Request everything that a server shows; about `most` skills and sessions of each kind."""
    # A new server indexes and measures its skills in the background; then answers are settled.
    answers = wait_until_settled(
        lambda: {path: read_answer(server, path) for path in _list_paths(server, most)}
    )
    for name, result in run_http_client(server.port, lambda client: _ask_mcp(client, most)).items():
        answers[name] = 200, {}, json.dumps(result).encode()
    return answers


def drop_differences(answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Leave out what depends on the kind of store: see the guide."""
    equal = {}
    for name, (status, headers, body) in answers.items():
        if name.partition("?")[0] == SKILLS:
            headers = {key: value for key, value in headers.items() if key != "etag"}  # noqa: PLW2901
        if not name.startswith(("/skill", "/sources")):
            equal[name] = status, headers, body
    return equal


def read_answer(server: Replica, path: str) -> Answer:
    response = server.request("GET", path)
    headers = {
        name.lower(): value
        for name, value in response.headers.items()
        if name.lower() not in _CHANGING_HEADERS
    }
    own_url = f"http://127.0.0.1:{server.port}".encode()  # in commands that pages show
    body = response.body.replace(own_url, b"http://server")
    return response.status, headers, _META.sub(b"", body)


def _list_paths(server: Replica, most: int) -> Iterator[str]:
    yield from (SKILLS, PROMPTS, SESSIONS, TEMPLATES, WELL_KNOWN)
    yield from (f"{SKILLS}?q=body", f"{PROMPTS}?source=team")
    yield from ("/skills", "/sessions", "/templates", "/sources")
    cursor, ids = "", list[str]()
    while True:
        page = f"{SKILLS}?limit=1000{cursor}"
        yield page
        data = server.request("GET", page).json["data"]
        ids += [skill["id"] for skill in data["skills"]]
        if "nextCursor" not in data:
            break
        cursor = f"&cursor={data['nextCursor']}"
    for skill in _sample(ids, most):
        one = f"{SKILLS}/{skill}"
        yield from (one, f"{one}/archive", f"/skill/{skill}", f"/skill/{skill}/files")
        for file in server.request("GET", one).json["data"]["files"]:
            yield f"{one}/files/{file['path']}"
    sessions = [item["id"] for item in server.request("GET", SESSIONS).json["data"]["sessions"]]
    for session in _sample(sessions, most):
        one = f"{SESSIONS}/{session}"
        yield from (one, f"{one}/context", f"{one}/snapshots", f"{one}/export")
        yield from (f"/session/{session}", f"/session/{session}/context")


def _sample(items: list[T], most: int) -> list[T]:
    return items[:: max(1, len(items) // most)]


async def _ask_mcp(client: Client, most: int) -> dict[str, Any]:
    resources = await list_all(client, "resources/list", "resources")
    skills = await list_all(client, "skills/list", "skills")
    results: dict[str, Any] = {"resources/list": resources, "skills/list": skills}
    for resource in _sample(resources, most):
        uri = resource["uri"]
        results[uri] = await send_request(client, "resources/read", uri=uri)
    return results
