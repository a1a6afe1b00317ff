"""Sessions by REST: on a real socket, with a real database of each kind."""

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


def settings_of(folder: Path, url: str = "", **server: Any) -> Settings:  # noqa: ANN401 - any field
    own = {"port": "0", **server}
    return Settings(
        working_directory=str(folder),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "data"),
        database_url=Secret(url) if url else None,
        server=ServerSettings(**own),
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_of(tmp_path)) as one:
        yield one


@contextmanager
def serving(settings: Settings) -> Iterator[RunningServer]:
    door = open_lazy_workspace(settings)
    services = Services(MemoryPromptService(), workspace=door)
    try:
        with run_server(settings=settings, services=services) as server:
            yield server
    finally:
        door.close()


def made(server: RunningServer, path: str, body: object) -> Any:  # noqa: ANN401 - what the server says
    reply = server.request("POST", path, body)
    assert reply.status == 201, reply.body
    return reply.json["data"]


def session_of(server: RunningServer, *texts: str) -> tuple[str, list[Any]]:
    """A session with notes; its path, and what was said of the notes."""
    path = f"{SESSIONS}/{made(server, SESSIONS, {'name': 'Research'})['id']}"
    body = [{"type": "note", "content": text} for text in texts]
    return path, [made(server, f"{path}/blocks", one) for one in body]


def said(server: RunningServer, path: str) -> list[str]:
    return [
        one["content"] for one in server.request("GET", f"{path}/blocks").json["data"]["blocks"]
    ]


def tag(version: int) -> dict[str, str]:
    return {"If-Match": f'"{version}"'}


def test_a_session_is_made_read_edited_and_removed(server: RunningServer) -> None:
    reply = server.request("POST", SESSIONS, {"name": "Research", "budgets": {"total": 9}})
    assert (reply.status, reply.headers["ETag"]) == (201, '"1"')
    path = f"{SESSIONS}/{reply.json['data']['id']}"
    found = server.request("GET", path).json["data"]
    assert (found["name"], found["budgets"]["total"]) == ("Research", 9)
    assert [zone["zone"] for zone in found["zones"]] == ["PERMANENT", "STABLE", "WORKING"]
    edited = server.request("PATCH", path, {"name": "New"}, tag(1))
    assert (edited.status, edited.json["data"]["name"]) == (200, "New")
    assert edited.json["data"]["budgets"]["total"] == 9
    assert server.request("DELETE", path, headers=tag(1)).status == 412
    assert (
        server.request("DELETE", path, headers={"If-Match": edited.headers["ETag"]}).status == 200
    )
    assert server.request("GET", path).status == 404


def test_sessions_come_page_by_page(server: RunningServer) -> None:
    ids = [made(server, SESSIONS, {"name": name})["id"] for name in "abc"]
    first = server.request("GET", f"{SESSIONS}?limit=2").json["data"]
    rest = server.request("GET", f"{SESSIONS}?cursor={first['nextCursor']}").json["data"]
    found = [one["id"] for one in (*first["sessions"], *rest["sessions"])]
    assert sorted(found) == sorted(ids)
    assert "nextCursor" not in rest


@pytest.mark.parametrize("cursor", ["False", "a-b", "x" * 65])
def test_a_cursor_that_no_page_gave_is_refused(server: RunningServer, cursor: str) -> None:
    assert server.request("GET", f"{SESSIONS}?cursor={cursor}").status == 400


def test_an_edit_without_a_version_is_asked_for_one(server: RunningServer) -> None:
    path, [block] = session_of(server, "a")
    for method, place, body in (
        ("PATCH", f"{path}/blocks/{block['id']}", {"content": "b"}),
        ("DELETE", f"{path}/blocks/{block['id']}", None),
        ("POST", f"{path}/blocks/{block['id']}/move", {"zone": "STABLE"}),
        ("PATCH", path, {"name": "x"}),
        ("DELETE", path, None),
    ):
        reply = server.request(method, place, body)
        assert (reply.status, reply.code) == (428, "PRECONDITION_REQUIRED")
    assert said(server, path) == ["a"]


def test_an_edit_of_an_older_version_is_shown_the_current_one(server: RunningServer) -> None:
    path, [block] = session_of(server, "a")
    place = f"{path}/blocks/{block['id']}"
    newer = server.request("PATCH", place, {"content": "b"}, tag(block["version"])).json["data"]
    for given in (tag(block["version"]), {"If-Match": '"other"'}, {"If-Match": "*"}):
        reply = server.request("PATCH", place, {"content": "c"}, given)
        assert (reply.status, reply.code) == (412, "PRECONDITION_FAILED")
        details = reply.json["error"]["details"]
        assert details == {"currentVersion": newer["version"], "current": newer}
    assert said(server, path) == ["b"]


def test_blocks_are_moved_deleted_and_brought_back(server: RunningServer) -> None:
    path, [a, b, c] = session_of(server, "a", "b", "c")
    move = {"before": a["id"]}
    moved = server.request("POST", f"{path}/blocks/{c['id']}/move", move, tag(c["version"]))
    assert moved.status == 200
    assert said(server, path) == ["c", "a", "b"]
    gone = server.request("DELETE", f"{path}/blocks/{b['id']}", headers=tag(b["version"]))
    assert gone.json["data"] == {"deleted": b["id"]}
    assert said(server, path) == ["c", "a"]
    listed = server.request("GET", f"{path}/deleted-blocks").json["data"]["blocks"]
    assert [one["id"] for one in listed] == [b["id"]]
    assert server.request("POST", f"{path}/blocks/{b['id']}/undelete").status == 200
    assert said(server, path) == ["c", "a", "b"]
    found = server.request("GET", f"{path}/blocks?q=B&type=note&zone=WORKING").json["data"][
        "blocks"
    ]
    assert [one["content"] for one in found] == ["b"]


def test_a_skill_is_previewed_imported_and_replaced(server: RunningServer) -> None:
    path, _ = session_of(server)
    kind = {"Content-Type": "text/markdown"}
    shown = server.request(
        "POST", "/api/v1/skill-previews?filename=pdf.md", skill_md("pdf", "x"), kind
    )
    [row] = shown.json["data"]["skills"]
    assert (row["name"], row["accepted"], row["tokens"]) == ("pdf", True, 1)
    where = f"{path}/import?filename=pdf.md"
    first = server.request("POST", where, skill_md("pdf", "old"), kind)
    assert first.status == 201
    metadata = first.json["data"]["blocks"][0]["metadata"]
    assert metadata == {
        "skillName": "pdf",
        "skillDescription": "Does one thing.",
        "sourceType": "upload",
        "sourceRef": "pdf.md",
    }
    assert server.request("POST", where, skill_md("pdf", "new"), kind).status == 409
    again = server.request("POST", f"{where}&same=replace", skill_md("pdf", "new"), kind)
    assert again.json["data"]["replaced"] == ["pdf"]
    assert said(server, path) == ["new"]
    refused = server.request("POST", where, b"no frontmatter", kind)
    assert (refused.status, refused.code) == (422, "INVALID_SKILL")
    assert "Not a valid SKILL.md: missing frontmatter" in refused.message


def test_a_large_skill_is_imported_with_a_warning(server: RunningServer) -> None:
    path, _ = session_of(server)
    kind = {"Content-Type": "text/markdown"}
    reply = server.request("POST", f"{path}/import", skill_md("big", "word " * 6000), kind)
    assert [one["code"] for one in reply.json["data"]["findings"]] == ["body-large"]
    assert reply.json["data"]["blocks"][0]["tokens"] > 5000


def test_an_exported_session_comes_back(server: RunningServer) -> None:
    path, _ = session_of(server, "a", "b")
    out = server.request("GET", f"{path}/export")
    assert out.headers["Content-Disposition"] == "attachment; filename*=UTF-8''research.zip"
    kind = {"Content-Type": "application/zip"}
    back = server.request("POST", f"{SESSIONS}/import?filename=research.zip", out.body, kind)
    assert back.status == 201
    again = f"{SESSIONS}/{back.json['data']['id']}"
    assert said(server, again) == ["a", "b"]
    assert server.request("GET", f"{again}/export").body == out.body


def test_templates_and_snapshots_go_round(server: RunningServer) -> None:
    path, _ = session_of(server, "a")
    identity = path.rpartition("/")[2]
    template = made(server, "/api/v1/templates", {"session": identity, "name": "T"})
    saved = made(server, f"{path}/snapshots", {"name": "before"})
    second = made(server, SESSIONS, {"name": "two", "template": template["id"]})
    assert said(server, f"{SESSIONS}/{second['id']}") == ["a"]
    body = {"template": template["id"], "how": "append"}
    assert server.request("POST", f"{path}/apply-template", body).status == 200
    assert said(server, path) == ["a", "a"]
    stale = server.request("POST", f"{path}/apply-template", body, tag(1))
    assert stale.status == 412
    back = server.request("POST", f"{path}/snapshots/{saved['id']}/restore")
    assert back.json["data"]["before"]["automatic"] is True
    assert said(server, path) == ["a"]
    place = f"/api/v1/templates/{template['id']}"
    edited = server.request("PATCH", place, {"description": "d"}, tag(template["version"]))
    assert edited.json["data"]["description"] == "d"
    shown = server.request("GET", place).json["data"]
    assert [one["content"] for one in shown["blocks"]] == ["a"]
    assert server.request("DELETE", place, headers=tag(shown["version"])).status == 200
    assert server.request("GET", "/api/v1/templates").json["data"] == {"templates": []}
    assert server.request("GET", f"{path}/snapshots/{saved['id']}").json["data"]["blocks"]
    assert server.request("DELETE", f"{path}/snapshots/{saved['id']}").status == 200
    left = server.request("GET", f"{path}/snapshots").json["data"]["snapshots"]
    assert [one["automatic"] for one in left] == [True]


def test_the_context_is_json_or_text_and_known_by_its_revision(server: RunningServer) -> None:
    path, _ = session_of(server, "hello")
    reply = server.request("GET", f"{path}/context")
    data = reply.json["data"]
    assert (data["text"], data["tokensAreEstimates"]) == ("hello\n", True)
    assert data["zones"][2]["tokens"] == data["total"]["tokens"] == 1
    plain = server.request("GET", f"{path}/context?format=text")
    assert (plain.body, plain.headers["Content-Type"]) == (b"hello\n", "text/plain; charset=utf-8")
    known = {"If-None-Match": reply.headers["ETag"]}
    assert server.request("GET", f"{path}/context", headers=known).status == 304
    made(server, f"{path}/blocks", {"type": "note", "content": "more"})
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
def test_a_bad_block_is_refused_and_changes_nothing(
    server: RunningServer, body: object, status: int
) -> None:
    path, _ = session_of(server, "a")
    before = server.request("GET", path).json["data"]
    assert server.request("POST", f"{path}/blocks", body).status == status
    assert server.request("GET", path).json["data"] == before


@pytest.mark.parametrize(
    ("name", "status"),
    [("", 400), ("  ", 400), ("a\nb", 422), ("a\x07b", 422), ("a\0b", 422), ("x" * 201, 400)],
)
def test_a_bad_name_is_refused(server: RunningServer, name: str, status: int) -> None:
    assert server.request("POST", SESSIONS, {"name": name}).status == status
    assert server.request("GET", SESSIONS).json["data"]["sessions"] == []


@pytest.mark.parametrize("size", [(1 << 20) + 1, 2 << 20, 9 << 20])
def test_a_block_over_1_mib_gets_413_in_the_envelope(server: RunningServer, size: int) -> None:
    path, [note] = session_of(server, "first")
    large = {"content": "a" * size}
    for reply in (
        server.request("POST", f"{path}/blocks", {"type": "note", **large}),
        server.request("PATCH", f"{path}/blocks/{note['id']}", large, {"If-Match": '"2"'}),
    ):
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
    assert said(server, path) == ["first"]


def test_half_characters_and_huge_bodies_are_refused(server: RunningServer) -> None:
    path, _ = session_of(server)
    kind = {"Content-Type": "application/json"}
    half = server.request("POST", f"{path}/blocks", rb'{"type":"note","content":"\ud800"}', kind)
    assert half.status == 400
    long = {"type": "note", "content": "é" * (600 * 1024)}
    huge = server.request("POST", f"{path}/blocks", long)
    assert (huge.status, huge.code) == (413, "PAYLOAD_TOO_LARGE")
    assert said(server, path) == []


def test_things_of_other_sessions_are_not_found(server: RunningServer) -> None:
    mine, _ = session_of(server)
    theirs, [block] = session_of(server, "a")
    saved = made(server, f"{theirs}/snapshots", {"name": "s"})
    place = f"{mine}/blocks/{block['id']}"
    headers = tag(block["version"])
    for method, path in (
        ("GET", place),
        ("DELETE", place),
        ("POST", f"{place}/undelete"),
        ("GET", f"{mine}/snapshots/{saved['id']}"),
        ("POST", f"{mine}/snapshots/{saved['id']}/restore"),
        ("GET", f"{SESSIONS}/%00"),
        ("GET", f"{SESSIONS}/%ED%A0%80"),
        ("GET", "/api/v1/templates/..%2f"),
    ):
        assert server.request(method, path, headers=headers).status == 404, path
    assert said(server, theirs) == ["a"]


@pytest.mark.parametrize("is_on", [False, True])
def test_folders_are_read_only_where_that_is_allowed(tmp_path: Path, is_on: bool) -> None:
    make_skill(tmp_path / "skills", "pdf")
    make_skill(tmp_path / "skills", "other")
    (tmp_path / "skills" / "broken").mkdir()
    (tmp_path / "skills" / "broken" / "SKILL.md").write_text("x", encoding="utf-8")
    with serving(settings_of(tmp_path, folder_scan=is_on)) as server:
        path, _ = session_of(server)
        scan = server.request("GET", "/api/v1/folder-skills?folder=skills")
        look = server.request("POST", "/api/v1/skill-previews", {"folder": "skills"})
        take = server.request("POST", f"{path}/import", {"folder": "skills", "skills": ["pdf"]})
        by_source = server.request("POST", f"{path}/import", {"source": "./skills"})
        assert by_source.status == 400
        if not is_on:
            assert [one.status for one in (scan, look, take)] == [403, 403, 403]
            assert said(server, path) == []
            return
        for nowhere in ("%00", "missing", "%EF%BF%BD", "x" * 5000):
            empty_one = server.request("GET", f"/api/v1/folder-skills?folder={nowhere}")
            assert empty_one.json["data"]["skills"] == [], nowhere
        rows = scan.json["data"]["skills"]
        assert [(row["id"], row["accepted"]) for row in rows] == [
            ("broken", False),
            ("other", True),
            ("pdf", True),
        ]
        assert look.json["data"]["skills"] == rows
        [block] = take.json["data"]["blocks"]
        assert block["metadata"]["sourceType"] == "local"
        assert block["metadata"]["sourceRef"] == str(tmp_path / "skills" / "pdf")


def test_a_server_without_its_database_says_so_and_serves_the_rest(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nowhere"
    with serving(settings_of(tmp_path, url)) as server:
        reply = server.request("GET", SESSIONS)
        assert (reply.status, reply.code) == (503, "DB_UNAVAILABLE")
        assert reply.headers["Retry-After"] == "5"
        assert server.request("GET", "/api/v1/prompts").status == 200


class Listener:
    """A reader of the stream of events."""

    def __init__(
        self, server: RunningServer, query: str = "", headers: dict[str, str] | None = None
    ) -> None:
        self.line = HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
        self.line.request("GET", f"/api/v1/events{query}", headers=headers or {})
        self.reply: HTTPResponse = self.line.getresponse()
        assert self.reply.status == 200
        assert self.heard() == {"retry": "2000"}

    def heard(self) -> dict[str, str]:
        """The next piece of the stream by its fields; nothing at its end."""
        fields: dict[str, str] = {}
        while text := self.reply.readline().decode():
            if text == "\n":
                return fields
            name, _, value = text.rstrip("\n").partition(": ")
            fields[name] = value
        return fields


def test_events_come_as_they_happen_and_go_on_where_a_reader_left(server: RunningServer) -> None:
    path, _ = session_of(server)
    identity = path.rpartition("/")[2]
    listener = Listener(server, f"?session={identity}")
    session_of(server)  # another one, of which nothing is heard
    block = made(server, f"{path}/blocks", {"type": "note", "content": "secret text"})
    first = listener.heard()
    listener.line.close()
    assert first["event"] == "block-added"
    data = json.loads(first["data"])
    assert (data["subject"], data["session"]) == (block["id"], identity)
    assert "secret" not in first["data"]
    made(server, f"{path}/blocks", {"type": "note"})
    later = Listener(server, headers={"Last-Event-ID": first["id"]})
    assert later.heard()["event"] == "block-added"
    later.line.close()


def test_a_reader_who_knows_what_nobody_knows_starts_afresh(server: RunningServer) -> None:
    session_of(server)
    listener = Listener(server, "?after=999999")
    assert listener.heard()["event"] == "reset"
    listener.line.close()
    assert server.request("GET", "/api/v1/events?after=x").status == 400
    assert server.request("GET", "/api/v1/events?session=%00").status == 400


def test_open_streams_do_not_keep_a_server_from_stopping(tmp_path: Path) -> None:
    with serving(settings_of(tmp_path)) as server:
        listeners = [Listener(server) for _ in range(3)]
        server.stop()
        assert [one.heard() for one in listeners] == [{}, {}, {}]
        for one in listeners:
            one.line.close()


def test_asking_for_the_head_of_the_stream_does_not_wait(server: RunningServer) -> None:
    assert server.request("HEAD", "/api/v1/events").status == 200


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_servers_on_one_database_see_each_others_changes(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    url = ""
    if kind == "postgres":
        url = request.getfixturevalue("postgres")
        truncate_tables(url)
    settings = settings_of(tmp_path, url)
    with serving(settings) as one, serving(settings) as other:
        path, [block] = session_of(one, "a")
        listener = Listener(other)
        change = one.request("PATCH", f"{path}/blocks/{block['id']}", {"content": "b"}, tag(2))
        heard = listener.heard()
        assert (heard["event"], json.loads(heard["data"])["subject"]) == (
            "block-edited",
            block["id"],
        )
        late = other.request("PATCH", f"{path}/blocks/{block['id']}", {"content": "c"}, tag(2))
        assert (change.status, late.status) == (200, 412)
        assert late.json["error"]["details"]["current"]["content"] == "b"
        listener.line.close()
