"""Session routes on a running server, with SQLite and PostgreSQL."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.settings import Secret, ServerSettings, Settings
from skillhall._internal.wiring.workspace import open_lazy_workspace
from tests.support.databases import truncate_tables
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import DEADLINE, RunningServer, run_server
from tests.support.skills import make_skill
from tests.support.workspaces import skill_md

SESSIONS = "/api/v1/sessions"


def make_settings(folder: Path, url: str = "", **server: Any) -> Settings:  # noqa: ANN401 - any field
    return Settings(
        working_directory=str(folder),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "data"),
        database_url=Secret(url) if url else None,
        server=ServerSettings(**{"port": "0", **server}),
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(make_settings(tmp_path)) as running:
        yield running


@contextmanager
def serving(settings: Settings) -> Iterator[RunningServer]:
    workspace = open_lazy_workspace(settings)
    services = Services(MemoryPromptService(), workspace=workspace)
    try:
        with run_server(settings=settings, services=services) as server:
            yield server
    finally:
        workspace.close()


def create(server: RunningServer, path: str, body: object) -> Any:  # noqa: ANN401 - JSON
    reply = server.request("POST", path, body)
    assert reply.status == 201, reply.body
    return reply.json["data"]


def create_session(server: RunningServer, *texts: str) -> tuple[str, list[Any]]:
    """Create a session with notes; return its path and the notes."""
    path = f"{SESSIONS}/{create(server, SESSIONS, {'name': 'Research'})['id']}"
    bodies = [{"type": "note", "content": text} for text in texts]
    return path, [create(server, f"{path}/blocks", body) for body in bodies]


def list_contents(server: RunningServer, path: str) -> list[str]:
    data = server.request("GET", f"{path}/blocks").json["data"]
    return [block["content"] for block in data["blocks"]]


def if_match(version: int) -> dict[str, str]:
    return {"If-Match": f'"{version}"'}


def test_session_is_created_read_edited_and_deleted(server: RunningServer) -> None:
    reply = server.request("POST", SESSIONS, {"name": "Research", "budgets": {"total": 9}})
    assert (reply.status, reply.headers["ETag"]) == (201, '"1"')
    path = f"{SESSIONS}/{reply.json['data']['id']}"
    found = server.request("GET", path).json["data"]
    assert (found["name"], found["budgets"]["total"]) == ("Research", 9)
    assert [zone["zone"] for zone in found["zones"]] == ["PERMANENT", "STABLE", "WORKING"]
    edited = server.request("PATCH", path, {"name": "New"}, if_match(1))
    assert (edited.status, edited.json["data"]["name"]) == (200, "New")
    assert edited.json["data"]["budgets"]["total"] == 9
    assert server.request("DELETE", path, headers=if_match(1)).status == 412
    assert (
        server.request("DELETE", path, headers={"If-Match": edited.headers["ETag"]}).status == 200
    )
    assert server.request("GET", path).status == 404


def test_sessions_are_listed_in_pages(server: RunningServer) -> None:
    ids = [create(server, SESSIONS, {"name": name})["id"] for name in "abc"]
    first = server.request("GET", f"{SESSIONS}?limit=2").json["data"]
    rest = server.request("GET", f"{SESSIONS}?cursor={first['nextCursor']}").json["data"]
    listed = [session["id"] for session in (*first["sessions"], *rest["sessions"])]
    assert sorted(listed) == sorted(ids)
    assert "nextCursor" not in rest


@pytest.mark.parametrize("cursor", ["False", "a-b", "x" * 65])
def test_invalid_cursor_is_rejected(server: RunningServer, cursor: str) -> None:
    assert server.request("GET", f"{SESSIONS}?cursor={cursor}").status == 400


def test_change_without_if_match_gets_428(server: RunningServer) -> None:
    path, [block] = create_session(server, "a")
    for method, url, body in (
        ("PATCH", f"{path}/blocks/{block['id']}", {"content": "b"}),
        ("DELETE", f"{path}/blocks/{block['id']}", None),
        ("POST", f"{path}/blocks/{block['id']}/move", {"zone": "STABLE"}),
        ("PATCH", path, {"name": "x"}),
        ("DELETE", path, None),
    ):
        reply = server.request(method, url, body)
        assert (reply.status, reply.code) == (428, "PRECONDITION_REQUIRED")
    assert list_contents(server, path) == ["a"]


def test_change_of_an_outdated_version_gets_the_current_one(server: RunningServer) -> None:
    path, [block] = create_session(server, "a")
    url = f"{path}/blocks/{block['id']}"
    newer = server.request("PATCH", url, {"content": "b"}, if_match(block["version"])).json["data"]
    for headers in (if_match(block["version"]), {"If-Match": '"other"'}, {"If-Match": "*"}):
        reply = server.request("PATCH", url, {"content": "c"}, headers)
        assert (reply.status, reply.code) == (412, "PRECONDITION_FAILED")
        details = reply.json["error"]["details"]
        assert details == {"currentVersion": newer["version"], "current": newer}
    assert list_contents(server, path) == ["b"]


def test_blocks_are_moved_deleted_and_restored(server: RunningServer) -> None:
    path, [a, b, c] = create_session(server, "a", "b", "c")
    move = {"before": a["id"]}
    moved = server.request("POST", f"{path}/blocks/{c['id']}/move", move, if_match(c["version"]))
    assert moved.status == 200
    assert list_contents(server, path) == ["c", "a", "b"]
    deleted = server.request("DELETE", f"{path}/blocks/{b['id']}", headers=if_match(b["version"]))
    assert deleted.json["data"] == {"deleted": b["id"]}
    assert list_contents(server, path) == ["c", "a"]
    listed = server.request("GET", f"{path}/deleted-blocks").json["data"]["blocks"]
    assert [block["id"] for block in listed] == [b["id"]]
    assert server.request("POST", f"{path}/blocks/{b['id']}/undelete").status == 200
    assert list_contents(server, path) == ["c", "a", "b"]
    matches = server.request("GET", f"{path}/blocks?q=B&type=note&zone=WORKING").json["data"][
        "blocks"
    ]
    assert [block["content"] for block in matches] == ["b"]


def test_skill_is_previewed_imported_and_replaced(server: RunningServer) -> None:
    path, _ = create_session(server)
    headers = {"Content-Type": "text/markdown"}
    preview = server.request(
        "POST", "/api/v1/skill-previews?filename=pdf.md", skill_md("pdf", "x"), headers
    )
    [row] = preview.json["data"]["skills"]
    assert (row["name"], row["accepted"], row["tokens"]) == ("pdf", True, 1)
    url = f"{path}/import?filename=pdf.md"
    first = server.request("POST", url, skill_md("pdf", "old"), headers)
    assert first.status == 201
    metadata = first.json["data"]["blocks"][0]["metadata"]
    assert metadata == {
        "skillName": "pdf",
        "skillDescription": "Does one thing.",
        "sourceType": "upload",
        "sourceRef": "pdf.md",
    }
    assert server.request("POST", url, skill_md("pdf", "new"), headers).status == 409
    again = server.request("POST", f"{url}&same=replace", skill_md("pdf", "new"), headers)
    assert again.json["data"]["replaced"] == ["pdf"]
    assert list_contents(server, path) == ["new"]
    rejected = server.request("POST", url, b"no frontmatter", headers)
    assert (rejected.status, rejected.code) == (422, "INVALID_SKILL")
    assert "Not a valid SKILL.md: missing frontmatter" in rejected.message


def test_large_skill_is_imported_with_a_warning(server: RunningServer) -> None:
    path, _ = create_session(server)
    kind = {"Content-Type": "text/markdown"}
    reply = server.request("POST", f"{path}/import", skill_md("big", "word " * 6000), kind)
    assert [finding["code"] for finding in reply.json["data"]["findings"]] == ["body-large"]
    assert reply.json["data"]["blocks"][0]["tokens"] > 5000


def test_exported_session_is_imported_again(server: RunningServer) -> None:
    path, _ = create_session(server, "a", "b")
    exported = server.request("GET", f"{path}/export")
    assert exported.headers["Content-Disposition"] == "attachment; filename*=UTF-8''research.zip"
    kind = {"Content-Type": "application/zip"}
    imported = server.request(
        "POST", f"{SESSIONS}/import?filename=research.zip", exported.body, kind
    )
    assert imported.status == 201
    again = f"{SESSIONS}/{imported.json['data']['id']}"
    assert list_contents(server, again) == ["a", "b"]
    assert server.request("GET", f"{again}/export").body == exported.body


def test_templates_and_snapshots_are_saved_applied_and_deleted(server: RunningServer) -> None:
    path, _ = create_session(server, "a")
    identity = path.rpartition("/")[2]
    template = create(server, "/api/v1/templates", {"session": identity, "name": "T"})
    saved = create(server, f"{path}/snapshots", {"name": "before"})
    second = create(server, SESSIONS, {"name": "two", "template": template["id"]})
    assert list_contents(server, f"{SESSIONS}/{second['id']}") == ["a"]
    body = {"template": template["id"], "how": "append"}
    assert server.request("POST", f"{path}/apply-template", body).status == 200
    assert list_contents(server, path) == ["a", "a"]
    stale = server.request("POST", f"{path}/apply-template", body, if_match(1))
    assert stale.status == 412
    restored = server.request("POST", f"{path}/snapshots/{saved['id']}/restore")
    assert restored.json["data"]["before"]["automatic"] is True
    assert list_contents(server, path) == ["a"]
    url = f"/api/v1/templates/{template['id']}"
    edited = server.request("PATCH", url, {"description": "d"}, if_match(template["version"]))
    assert edited.json["data"]["description"] == "d"
    detail = server.request("GET", url).json["data"]
    assert [item["content"] for item in detail["blocks"]] == ["a"]
    assert server.request("DELETE", url, headers=if_match(detail["version"])).status == 200
    assert server.request("GET", "/api/v1/templates").json["data"] == {"templates": []}
    assert server.request("GET", f"{path}/snapshots/{saved['id']}").json["data"]["blocks"]
    assert server.request("DELETE", f"{path}/snapshots/{saved['id']}").status == 200
    remaining = server.request("GET", f"{path}/snapshots").json["data"]["snapshots"]
    assert [item["automatic"] for item in remaining] == [True]


def test_context_is_json_or_text_with_the_revision_as_etag(server: RunningServer) -> None:
    path, _ = create_session(server, "hello")
    reply = server.request("GET", f"{path}/context")
    data = reply.json["data"]
    assert (data["text"], data["tokensAreEstimates"]) == ("hello\n", True)
    assert data["zones"][2]["tokens"] == data["total"]["tokens"] == 1
    plain = server.request("GET", f"{path}/context?format=text")
    assert (plain.body, plain.headers["Content-Type"]) == (b"hello\n", "text/plain; charset=utf-8")
    known = {"If-None-Match": reply.headers["ETag"]}
    assert server.request("GET", f"{path}/context", headers=known).status == 304
    create(server, f"{path}/blocks", {"type": "note", "content": "more"})
    assert server.request("GET", f"{path}/context", headers=known).status == 200


BAD = [
    ({"type": "note", "zone": "NOWHERE"}, 400),
    ({"type": "poem"}, 400),
    ({"type": "note", "content": "nul \0"}, 422),
    ({"type": "note", "content": 7}, 400),
    ({"type": "note", "after": "0000000000"}, 409),
    ({"type": "note", "after": "../x"}, 400),
    ({"type": "note", "after": "a", "first": True}, 400),
    ({"type": "note", "surprise": 1}, 400),
]


@pytest.mark.parametrize(("body", "status"), BAD)
def test_invalid_block_is_rejected_and_changes_nothing(
    server: RunningServer, body: object, status: int
) -> None:
    path, _ = create_session(server, "a")
    before = server.request("GET", path).json["data"]
    assert server.request("POST", f"{path}/blocks", body).status == status
    assert server.request("GET", path).json["data"] == before


@pytest.mark.parametrize(
    ("name", "status"),
    [("", 400), ("  ", 400), ("a\nb", 422), ("a\x07b", 422), ("a\0b", 422), ("x" * 201, 400)],
)
def test_invalid_session_name_is_rejected(server: RunningServer, name: str, status: int) -> None:
    assert server.request("POST", SESSIONS, {"name": name}).status == status
    assert server.request("GET", SESSIONS).json["data"]["sessions"] == []


@pytest.mark.parametrize("size", [(1 << 20) + 1, 2 << 20, 9 << 20])
def test_block_over_1_mib_gets_413(server: RunningServer, size: int) -> None:
    path, [note] = create_session(server, "first")
    large = {"content": "a" * size}
    for reply in (
        server.request("POST", f"{path}/blocks", {"type": "note", **large}),
        server.request("PATCH", f"{path}/blocks/{note['id']}", large, {"If-Match": '"2"'}),
    ):
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
    assert list_contents(server, path) == ["first"]


def test_surrogates_and_oversized_content_are_rejected(server: RunningServer) -> None:
    path, _ = create_session(server)
    kind = {"Content-Type": "application/json"}
    half = server.request("POST", f"{path}/blocks", rb'{"type":"note","content":"\ud800"}', kind)
    assert half.status == 400
    long = {"type": "note", "content": "é" * (600 * 1024)}
    huge = server.request("POST", f"{path}/blocks", long)
    assert (huge.status, huge.code) == (413, "PAYLOAD_TOO_LARGE")
    assert list_contents(server, path) == []


def test_records_of_other_sessions_are_not_found(server: RunningServer) -> None:
    mine, _ = create_session(server)
    theirs, [block] = create_session(server, "a")
    saved = create(server, f"{theirs}/snapshots", {"name": "s"})
    url = f"{mine}/blocks/{block['id']}"
    headers = if_match(block["version"])
    for method, path in (
        ("GET", url),
        ("DELETE", url),
        ("POST", f"{url}/undelete"),
        ("GET", f"{mine}/snapshots/{saved['id']}"),
        ("POST", f"{mine}/snapshots/{saved['id']}/restore"),
        ("GET", f"{SESSIONS}/%00"),
        ("GET", f"{SESSIONS}/%ED%A0%80"),
        ("GET", "/api/v1/templates/..%2f"),
    ):
        assert server.request(method, path, headers=headers).status == 404, path
    assert list_contents(server, theirs) == ["a"]


@pytest.mark.parametrize("enabled", [False, True])
def test_folder_scans_require_the_setting(tmp_path: Path, enabled: bool) -> None:
    make_skill(tmp_path / "skills", "pdf")
    make_skill(tmp_path / "skills", "other")
    (tmp_path / "skills" / "broken").mkdir()
    (tmp_path / "skills" / "broken" / "SKILL.md").write_text("x", encoding="utf-8")
    with serving(make_settings(tmp_path, folder_scan=enabled)) as server:
        path, _ = create_session(server)
        scan = server.request("GET", "/api/v1/folder-skills?folder=skills")
        preview = server.request("POST", "/api/v1/skill-previews", {"folder": "skills"})
        imported = server.request("POST", f"{path}/import", {"folder": "skills", "skills": ["pdf"]})
        by_source = server.request("POST", f"{path}/import", {"source": "./skills"})
        assert by_source.status == 400
        if not enabled:
            assert [reply.status for reply in (scan, preview, imported)] == [403, 403, 403]
            assert list_contents(server, path) == []
            return
        for folder in ("%00", "missing", "%EF%BF%BD", "x" * 5000):
            empty = server.request("GET", f"/api/v1/folder-skills?folder={folder}")
            assert empty.json["data"]["skills"] == [], folder
        rows = scan.json["data"]["skills"]
        assert [(row["id"], row["accepted"]) for row in rows] == [
            ("broken", False),
            ("other", True),
            ("pdf", True),
        ]
        assert preview.json["data"]["skills"] == rows
        [block] = imported.json["data"]["blocks"]
        assert block["metadata"]["sourceType"] == "local"
        assert block["metadata"]["sourceRef"] == str(tmp_path / "skills" / "pdf")


def test_unavailable_database_gets_503_and_prompts_still_work(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nowhere"
    with serving(make_settings(tmp_path, url)) as server:
        reply = server.request("GET", SESSIONS)
        assert (reply.status, reply.code) == (503, "DB_UNAVAILABLE")
        assert reply.headers["Retry-After"] == "5"
        assert server.request("GET", "/api/v1/prompts").status == 200


class EventClient:
    """A client of the event stream."""

    def __init__(
        self, server: RunningServer, query: str = "", headers: dict[str, str] | None = None
    ) -> None:
        self.line = HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
        self.line.request("GET", f"/api/v1/events{query}", headers=headers or {})
        self.reply: HTTPResponse = self.line.getresponse()
        assert self.reply.status == 200
        assert self.heard() == {"retry": "2000"}

    def heard(self) -> dict[str, str]:
        """Return the fields of the next message; empty at the end of the stream."""
        fields: dict[str, str] = {}
        while text := self.reply.readline().decode():
            if text == "\n":
                return fields
            name, _, value = text.rstrip("\n").partition(": ")
            fields[name] = value
        return fields


def test_event_stream_resumes_after_last_event_id(server: RunningServer) -> None:
    path, _ = create_session(server)
    identity = path.rpartition("/")[2]
    client = EventClient(server, f"?session={identity}")
    create_session(server)  # events of another session are not received
    block = create(server, f"{path}/blocks", {"type": "note", "content": "secret text"})
    first = client.heard()
    client.line.close()
    assert first["event"] == "block-added"
    data = json.loads(first["data"])
    assert (data["subject"], data["session"]) == (block["id"], identity)
    assert "secret" not in first["data"]
    create(server, f"{path}/blocks", {"type": "note"})
    later = EventClient(server, headers={"Last-Event-ID": first["id"]})
    assert later.heard()["event"] == "block-added"
    later.line.close()


def test_unknown_event_id_gets_a_reset_event(server: RunningServer) -> None:
    create_session(server)
    client = EventClient(server, "?after=999999")
    assert client.heard()["event"] == "reset"
    client.line.close()
    assert server.request("GET", "/api/v1/events?after=x").status == 400
    assert server.request("GET", "/api/v1/events?session=%00").status == 400


def test_open_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    with serving(make_settings(tmp_path)) as server:
        clients = [EventClient(server) for _ in range(3)]
        server.stop()
        assert [client.heard() for client in clients] == [{}, {}, {}]
        for client in clients:
            client.line.close()


def test_head_request_for_the_stream_returns_at_once(server: RunningServer) -> None:
    assert server.request("HEAD", "/api/v1/events").status == 200


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_servers_on_one_database_see_each_others_changes(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    url = ""
    if kind == "postgres":
        url = request.getfixturevalue("postgres")
        truncate_tables(url)
    settings = make_settings(tmp_path, url)
    with serving(settings) as first, serving(settings) as second:
        path, [block] = create_session(first, "a")
        client = EventClient(second)
        change = first.request(
            "PATCH", f"{path}/blocks/{block['id']}", {"content": "b"}, if_match(2)
        )
        event = client.heard()
        assert (event["event"], json.loads(event["data"])["subject"]) == (
            "block-edited",
            block["id"],
        )
        outdated = second.request(
            "PATCH", f"{path}/blocks/{block['id']}", {"content": "c"}, if_match(2)
        )
        assert (change.status, outdated.status) == (200, 412)
        assert outdated.json["error"]["details"]["current"]["content"] == "b"
        client.line.close()
