"""Skill routes and the well-known index on a running server."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.cli.runner import run
from skillhall._internal.settings import ClientSettings, Secret, Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.sources.archive.source import read_archive
from skillhall._internal.sources.opener import open_source
from skillhall.errors import SourceUnavailable
from tests.support.archives import tgz_of, zip_of
from tests.support.catalogs import wait_for_indexing
from tests.support.forms import FORM, make_form
from tests.support.http_server import respond, run_http_server
from tests.support.projects import LOOPBACK
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import RunningServer, make_settings, make_token_settings, run_server
from tests.support.skills import make_skill, make_skill_md
from tests.support.team_server import team_server, team_settings

SKILLS = "/api/v1/skills"
LEGACY = "/.well-known/skills"


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    make_skill(folder / ".agents/sys.skills", "shipped")
    make_skill(folder / ".agents/skills", "pdf", files={"a b/run.sh": b"#!/bin/sh\n"})
    return folder


def serve_skills(run_directory: Path, settings: Settings) -> AbstractContextManager[RunningServer]:
    collection = Collection(FolderStore(run_directory), settings)
    services = Services(MemoryPromptService(), collection)
    return run_server(settings=make_settings(), services=services)


@pytest.fixture
def server(run_directory: Path, tmp_path: Path) -> Iterator[RunningServer]:
    settings = Settings(
        str(run_directory), str(tmp_path / "cache"), allowed_networks=LOOPBACK, use_git=False
    )
    with serve_skills(run_directory, settings) as running:
        yield running


def test_skill_is_judged_for_each_client(server: RunningServer, run_directory: Path) -> None:
    make_skill(
        run_directory / ".agents/skills",
        "colon",
        data=b"---\nname: colon\ndescription: a: b\n---\n",
    )
    clients = server.request("GET", f"{SKILLS}/pdf/compat").json["data"]["clients"]
    assert len(clients) > 10
    assert {client["outcome"] for client in clients} == {"loads"}
    path = f"{SKILLS}/colon/compat?agents=pi,codex"
    pi, codex = server.request("GET", path).json["data"]["clients"]
    assert (pi["outcome"], pi["reasons"][0]["trait"]) == ("dropped", "yaml-colon")
    assert (codex["outcome"], codex["reasons"]) == ("loads", [])


def test_unknown_agent_or_skill_is_not_found_for_portability(server: RunningServer) -> None:
    assert server.request("GET", f"{SKILLS}/pdf/compat?agents=codx").status == 404
    assert server.request("GET", f"{SKILLS}/unknown/compat").status == 404


def test_skill_list_has_pages_and_an_etag(server: RunningServer) -> None:
    first = server.request("GET", f"{SKILLS}?limit=1").json["data"]
    assert [item["id"] for item in first["skills"]] == ["pdf"]
    rest = server.request("GET", f"{SKILLS}?cursor={first['nextCursor']}")
    assert [item["source"] for item in rest.json["data"]["skills"]] == ["system"]
    assert "nextCursor" not in rest.json["data"]
    known = {"If-None-Match": rest.headers["ETag"]}
    assert server.request("GET", SKILLS, headers=known).status == 304


def test_any_text_can_be_searched(server: RunningServer) -> None:
    found = server.request("GET", f"{SKILLS}?q={quote('pdf AND ( OR')}").json["data"]
    assert [item["id"] for item in found["skills"]][:1] == ["pdf"]


def test_search_gives_the_same_order_as_the_command(
    server: RunningServer, run_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_directory / ".agents/skills"
    for name, about, body in (
        ("far", "Nothing.", "The tides and the moon.\n"),
        ("near", "About tides.", "Nothing.\n"),
        ("tides", "Nothing.", "Nothing.\n"),
    ):
        make_skill(folder, name, data=make_skill_md(name, about, body))
    server.request("GET", SKILLS)
    wait_for_indexing()
    for text in ("tides", "moon", "steps", "pdf tides"):
        found = server.request("GET", f"{SKILLS}?q={quote(text)}").json["data"]
        roots = ("-r", str(folder), "-r", str(run_directory / ".agents/sys.skills"))
        assert run(["search", text, "--body", "--json", *roots]) == 0
        hits = json.loads(capsys.readouterr().out)["data"]["hits"]
        assert [skill["name"] for skill in found["skills"]] == [hit["name"] for hit in hits] != []


def test_skill_has_files_tokens_and_an_etag(server: RunningServer, run_directory: Path) -> None:
    reply = server.request("GET", f"{SKILLS}/pdf")
    data = reply.json["data"]
    assert [item["path"] for item in data["files"]] == ["SKILL.md", "a b/run.sh"]
    assert data["frontmatter"]["name"] == "pdf"
    assert data["tokens"] > 0
    assert str(run_directory).encode() not in reply.body
    known = {"If-None-Match": reply.headers["ETag"]}
    assert server.request("GET", f"{SKILLS}/pdf", headers=known).status == 304
    (run_directory / ".agents/skills/pdf/a b/run.sh").write_bytes(b"#!/bin/bash\n")
    assert server.request("GET", f"{SKILLS}/pdf", headers=known).status == 200


def test_skill_file_is_sent_as_a_download(server: RunningServer) -> None:
    reply = server.request("GET", f"{SKILLS}/pdf/files/a%20b/run.sh")
    assert (reply.status, reply.body) == (200, b"#!/bin/sh\n")
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["Content-Disposition"].startswith("attachment")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/no", 404),
        ("/pdf/files/no.md", 404),
        ("/pdf/files/..%2f..%2fsys.skills%2fshipped%2fSKILL.md", 400),
        ("/pdf/files/%2fetc%2fpasswd", 400),
        ("/..%2fsys.skills/files/SKILL.md", 404),
        ("/%ff", 404),
        ("?limit=0", 400),
        ("?q=a&cursor=b", 400),
    ],
)
def test_missing_or_outside_paths_are_rejected(
    server: RunningServer, path: str, status: int
) -> None:
    assert server.request("GET", SKILLS + path).status == status


def test_skill_is_added_and_deleted(server: RunningServer, run_directory: Path) -> None:
    new = {"id": "Notes", "name": "Notes: all", "description": 'Takes "notes".', "body": "Do it."}
    assert server.request("POST", SKILLS, new).json["data"]["id"] == "notes"
    assert server.request("POST", SKILLS, new).code == "CONFLICT"
    skill = server.request("GET", f"{SKILLS}/notes").json["data"]
    assert (skill["name"], skill["description"]) == ("Notes: all", 'Takes "notes".')
    assert server.request("DELETE", f"{SKILLS}/notes").json["data"] == {"deleted": "notes"}
    assert not (run_directory / ".agents/skills/notes").exists()
    assert server.request("DELETE", f"{SKILLS}/shipped").code == "READ_ONLY"
    assert server.request("DELETE", f"{SKILLS}/notes").code == "NOT_FOUND"


def test_uploaded_archive_is_imported(server: RunningServer) -> None:
    archive = zip_of({"x/SKILL.md": make_skill_md("x"), "x/y.bin": bytes(range(256))})
    sent = {"Content-Type": "application/zip"}
    imported = server.request("POST", f"{SKILLS}/import?filename=x.zip", archive, sent)
    assert (imported.status, [item["id"] for item in imported.json["data"]["imported"]]) == (
        201,
        ["x"],
    )
    assert server.request("GET", f"{SKILLS}/x/files/y.bin").body == bytes(range(256))
    assert server.request("POST", f"{SKILLS}/import", archive, sent).code == "CONFLICT"
    again = server.request("POST", f"{SKILLS}/import?replace=true", archive, sent)
    assert again.json["data"]["replaced"] == ["x"]
    assert (
        server.request("POST", f"{SKILLS}/import", b"no archive", sent).code == "ARCHIVE_REJECTED"
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.zip", zip_of({"x/SKILL.md": make_skill_md("x")})),
        ("x.tar.gz", tgz_of({"x/SKILL.md": make_skill_md("x")})),
        ("C:\\\\fakepath\\\\whatever.md", make_skill_md("x")),
    ],
)
def test_file_in_a_form_is_imported(server: RunningServer, name: str, data: bytes) -> None:
    file = ("file", name, data)
    imported = server.request("POST", f"{SKILLS}/import", make_form([file]), FORM)
    assert (imported.status, [item["id"] for item in imported.json["data"]["imported"]]) == (
        201,
        ["x"],
    )
    assert server.request("POST", f"{SKILLS}/import", make_form([file]), FORM).code == "CONFLICT"
    again = make_form([file], {"id": " ", "replace": "on"})
    assert server.request("POST", f"{SKILLS}/import", again, FORM).json["data"]["replaced"] == ["x"]
    other = make_form([file], {"id": "Other One"})
    assert server.request("POST", f"{SKILLS}/import", other, FORM).status == 201
    assert server.request("GET", f"{SKILLS}/other-one").status == 200


def test_files_of_a_folder_picker_keep_their_paths(server: RunningServer) -> None:
    files = [
        ("files", "mine/one/SKILL.md", make_skill_md("one")),
        ("files", "mine/one/data/größe.bin", bytes(range(256))),
        ("files", "mine/one/.DS_Store", b"litter"),
        ("files", "mine/two/SKILL.md", make_skill_md("two")),
    ]
    imported = server.request("POST", f"{SKILLS}/import", make_form(files), FORM)
    assert [item["id"] for item in imported.json["data"]["imported"]] == ["one", "two"]
    listed = server.request("GET", f"{SKILLS}/one").json["data"]["files"]
    assert [file["path"] for file in listed] == ["SKILL.md", "data/größe.bin"]
    assert server.request("GET", f"{SKILLS}/one/files/data/gr%C3%B6%C3%9Fe.bin").body[-1] == 255


def test_files_without_a_folder_are_named_by_frontmatter(server: RunningServer) -> None:
    files = [("files", "SKILL.md", make_skill_md("loose")), ("files", "more.txt", b"x")]
    imported = server.request("POST", f"{SKILLS}/import", make_form(files), FORM)
    assert [item["id"] for item in imported.json["data"]["imported"]] == ["loose"]


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "/etc/x",
        "a\\\\b",
        "a//b",
        "a/con",
        "a/\u202ex",
        "A/SKILL.md",
        "a/SKILL.md",
    ],
)
def test_unsafe_file_name_in_a_form_is_rejected(
    server: RunningServer, run_directory: Path, path: str
) -> None:
    files = [("files", "a/SKILL.md", make_skill_md("a")), ("files", path, b"x")]
    reply = server.request("POST", f"{SKILLS}/import", make_form(files), FORM)
    assert (reply.status, reply.code) == (422, "ARCHIVE_REJECTED")
    assert not (run_directory / ".agents/skills/a").exists()


@pytest.mark.parametrize(
    "form",
    [
        make_form(fields={"id": "x"}),
        make_form([("other", "SKILL.md", make_skill_md("x"))]),
        make_form([("file", "SKILL.md", make_skill_md("x"))] * 2),
        make_form([(field, "SKILL.md", make_skill_md("x")) for field in ("file", "files")]),
        b"no form",
    ],
)
def test_invalid_import_form_is_rejected(server: RunningServer, form: bytes) -> None:
    reply = server.request("POST", f"{SKILLS}/import", form, FORM)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_cross_origin_form_is_rejected(server: RunningServer) -> None:
    form = make_form([("file", "SKILL.md", make_skill_md("x"))])
    foreign = {**FORM, "Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    assert server.request("POST", f"{SKILLS}/import", form, foreign).code == "CROSS_ORIGIN"


def test_form_with_too_many_files_is_rejected(server: RunningServer) -> None:
    form = make_form([("files", f"a/{number}", b"") for number in range(2100)])
    reply = server.request("POST", f"{SKILLS}/import", form, FORM)
    assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(("networks", "status"), [(LOOPBACK, 201), ((), 400)])
def test_url_is_imported_only_from_allowed_networks(
    run_directory: Path, tmp_path: Path, networks: tuple[str, ...], status: int
) -> None:
    settings = Settings(str(run_directory), str(tmp_path / "cache"), allowed_networks=networks)
    with run_http_server() as site, serve_skills(run_directory, settings) as server:
        site.routes["/SKILL.md"] = respond(body=make_skill_md("from-the-web"))
        reply = server.request("POST", f"{SKILLS}/import", {"source": site.url("/SKILL.md")})
        assert reply.status == status
        assert (run_directory / ".agents/skills/from-the-web").is_dir() == (status == 201)


def test_local_paths_are_not_imported(server: RunningServer, run_directory: Path) -> None:
    for source in ("./.agents/skills/pdf", str(run_directory), "python:pip", "/etc/x.zip"):
        reply = server.request("POST", f"{SKILLS}/import", {"source": source})
        assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize("folder", ["/.well-known/agent-skills", LEGACY])
def test_large_well_known_index_is_compressed(
    server: RunningServer, run_directory: Path, folder: str
) -> None:
    for number in range(400):
        make_skill(run_directory / ".agents/skills", f"skill-{number}")
    plain = server.request("GET", f"{folder}/index.json")
    accepts = {"Accept-Encoding": "gzip"}
    packed = server.request("GET", f"{folder}/index.json", None, accepts)
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert packed.headers["etag"] != plain.headers["etag"]
    known = {**accepts, "If-None-Match": packed.headers["etag"]}
    assert server.request("GET", f"{folder}/index.json", None, known).status == 304


def test_well_known_index_has_correct_digests(server: RunningServer) -> None:
    index = server.request("GET", "/.well-known/agent-skills/index.json").json
    assert index["$schema"].endswith("/0.2.0/schema.json")
    assert [(item["name"], item["type"]) for item in index["skills"]] == [
        ("pdf", "archive"),
        ("shipped", "skill-md"),
    ]
    for item in index["skills"]:
        data = server.request("GET", item["url"]).body
        assert item["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    archive = server.request("GET", index["skills"][0]["url"]).body
    assert sorted(read_archive(archive, "pdf.zip")[0].files) == ["SKILL.md", "a b/run.sh"]


def test_legacy_index_lists_every_file(server: RunningServer) -> None:
    index = server.request("GET", f"{LEGACY}/index.json").json
    assert [(item["name"], item["files"]) for item in index["skills"]] == [
        ("pdf", ["SKILL.md", "a b/run.sh"]),
        ("shipped", ["SKILL.md"]),
    ]
    for skill in index["skills"]:
        for path in skill["files"]:
            original = server.request("GET", f"{SKILLS}/{skill['name']}/files/{quote(path)}")
            legacy = server.request("GET", f"{LEGACY}/{skill['name']}/{quote(path)}")
            assert (legacy.status, legacy.body) == (200, original.body)


def test_flat_or_lowercase_skill_is_skill_md_in_the_legacy_index(
    tmp_path: Path,
) -> None:
    make_skill(tmp_path / "run/.agents/skills", "small").joinpath("SKILL.md").rename(
        tmp_path / "run/.agents/skills/small/skill.md"
    )
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/hello.md").write_bytes(make_skill_md("hello"))
    settings = team_settings(tmp_path, str(tmp_path / "prompts"))
    with team_server(settings._replace(working_directory=str(tmp_path / "run"))) as server:
        index = server.request("GET", f"{LEGACY}/index.json").json
        found = {item["name"]: item["files"] for item in index["skills"]}
        assert (found["hello"], found["small"]) == (["SKILL.md"], ["SKILL.md"])
        hello = server.request("GET", f"{LEGACY}/hello/SKILL.md")
        assert hello.body == make_skill_md("hello")
        assert b"small" in server.request("GET", f"{LEGACY}/small/SKILL.md").body


def test_flat_file_with_an_odd_name_is_found_by_its_index_url(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/how? größe.md").write_bytes(make_skill_md("odd"))
    with team_server(team_settings(tmp_path, str(tmp_path / "prompts"))) as server:
        index = server.request("GET", "/.well-known/agent-skills/index.json").json["skills"]
        [address] = [item["url"] for item in index if item["name"] == "odd"]
        assert server.request("GET", address).body == make_skill_md("odd")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/no/SKILL.md", 404),
        ("/pdf/no.md", 404),
        ("/pdf", 404),
        ("/pdf/", 400),
        ("/pdf/..%2f..%2fsys.skills%2fshipped%2fSKILL.md", 400),
        ("/..%2fsys.skills/shipped/SKILL.md", 404),
        ("/%ff/SKILL.md", 404),
        ("/hidden/SKILL.md", 404),
    ],
)
def test_legacy_routes_serve_only_indexed_files(
    server: RunningServer, run_directory: Path, path: str, status: int
) -> None:
    hidden = make_skill_md("hidden", disable_model_invocation="true")
    make_skill(run_directory / ".agents/skills", "hidden", data=hidden)
    assert server.request("GET", LEGACY + path).status == status
    assert server.request("POST", f"{LEGACY}/pdf/SKILL.md", {}).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/agent-skills/index.json",
        f"{LEGACY}/index.json",
        f"{LEGACY}/pdf/SKILL.md",
        f"{SKILLS}/pdf/files/SKILL.md",
        f"{SKILLS}/pdf/archive",
    ],
)
def test_installer_routes_have_an_etag_until_content_changes(
    server: RunningServer, run_directory: Path, path: str
) -> None:
    first = server.request("GET", path)
    assert first.headers["Cache-Control"] == "no-cache"
    assert "Access-Control-Allow-Origin" not in first.headers
    known = {"If-None-Match": first.headers["ETag"]}
    assert (server.request("GET", path, headers=known).status, first.status) == (304, 200)
    (run_directory / ".agents/skills/pdf/SKILL.md").write_bytes(make_skill_md("pdf", "Changed."))
    assert server.request("GET", path, headers=known).status == 200


@pytest.mark.parametrize("version", ["agent-skills", "skills"])
def test_skills_of_a_server_are_sources_by_both_versions_of_its_index(
    server: RunningServer, tmp_path: Path, version: str
) -> None:
    settings = Settings(str(tmp_path), str(tmp_path / "cache"), allowed_networks=LOOPBACK)
    site = f"http://127.0.0.1:{server.port}/.well-known/"
    opened = open_source(f"{site}{version}/index.json#pdf", settings)
    [pdf] = opened.bundles
    assert [*pdf.files] == ["SKILL.md", "a b/run.sh"]
    assert pdf.files["a b/run.sh"].read() == b"#!/bin/sh\n"
    assert [one.folder for one in open_source(site, settings).bundles] == ["pdf", "shipped"]


def test_installer_routes_require_the_token(run_directory: Path, tmp_path: Path) -> None:
    settings = Settings(str(run_directory), str(tmp_path / "cache"))
    services = Services(MemoryPromptService(), Collection(FolderStore(run_directory), settings))
    with run_server(settings=make_token_settings(), services=services) as server:
        for path in ("index.json", "pdf/SKILL.md"):
            rejected = server.request("GET", f"{LEGACY}/{path}", headers={"Authorization": ""})
            assert (rejected.status, server.request("GET", f"{LEGACY}/{path}").status) == (401, 200)
        url = f"http://127.0.0.1:{server.port}"
        token = Secret(server.headers["Authorization"].removeprefix("Bearer "))
        client = settings._replace(allowed_networks=LOOPBACK, client=ClientSettings(url, token))
        assert [one.folder for one in open_source(url, client).bundles] == ["pdf", "shipped"]
        for other in (ClientSettings("http://127.0.0.1:1", token), ClientSettings(url)):
            with pytest.raises(SourceUnavailable):
                open_source(url, client._replace(client=other))


SECRET = b"TOKEN=planted-7f3a"


@pytest.fixture
def with_dot_files(run_directory: Path) -> Path:
    files = {".env": SECRET, "docs/.private/key.txt": SECRET, "docs/a.md": b"a"}
    return make_skill(run_directory / ".agents/skills", "secretive", files=files)


@pytest.mark.usefixtures("with_dot_files")
def test_dot_files_are_not_listed(server: RunningServer) -> None:
    listed = server.request("GET", f"{SKILLS}/secretive").json["data"]["files"]
    assert [item["path"] for item in listed] == ["SKILL.md", "docs/a.md"]
    legacy = server.request("GET", f"{LEGACY}/index.json").json["skills"]
    assert {tuple(item["files"]) for item in legacy if item["name"] == "secretive"} == {
        ("SKILL.md", "docs/a.md")
    }
    page = server.request("GET", "/skill/secretive/files", headers={"Accept": "text/html"})
    assert b".env" not in page.body


@pytest.mark.usefixtures("with_dot_files")
@pytest.mark.parametrize(
    "path", [".env", "docs/.private/key.txt", "./.env", "docs/./.private/key.txt", "%2eenv"]
)
def test_dot_files_cannot_be_downloaded(server: RunningServer, path: str) -> None:
    for prefix in (f"{SKILLS}/secretive/files", f"{LEGACY}/secretive", "/skill/secretive/files"):
        reply = server.request("GET", f"{prefix}/{path}")
        assert reply.status in (400, 404)
        assert SECRET not in reply.body


@pytest.mark.usefixtures("with_dot_files")
def test_archives_contain_no_dot_files_and_match_their_digest(server: RunningServer) -> None:
    index = server.request("GET", "/.well-known/agent-skills/index.json").json["skills"]
    entry = next(item for item in index if item["name"] == "secretive")
    data = server.request("GET", entry["url"]).body
    assert entry["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert [*read_archive(data, "a.zip")[0].files] == ["SKILL.md", "docs/a.md"]


def test_an_edit_keeps_dot_files_which_its_digest_covers(
    server: RunningServer, with_dot_files: Path
) -> None:
    url = f"{SKILLS}/secretive"
    body = {"name": "secretive", "description": "New.", "body": "x"}
    outdated = server.request("GET", url).json["data"]["digest"]
    (with_dot_files / ".env").write_bytes(b"other")
    assert server.request("PUT", url, {**body, "digest": outdated}).status == 412
    digest = server.request("GET", url).json["data"]["digest"]
    assert server.request("PUT", url, {**body, "digest": digest}).status == 200
    assert (with_dot_files / ".env").read_bytes() == b"other"
