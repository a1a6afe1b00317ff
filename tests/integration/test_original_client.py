"""Clients of the original server work unchanged with `skillhall serve`."""

import base64
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_server import GitRepo, GitServer, git_repo, run_git_server
from tests.support.original_client import (
    API,
    INGEST,
    ApiError,
    OriginalClient,
    Override,
    check_meta,
    is_upload_needed,
)
from tests.support.prompt_sources import BUILT_IN
from tests.support.replicas import ForkedReplica, Replica, wait_until
from tests.support.skills import make_skill_md

TOKEN = "a-bearer-token-of-the-tests-0001"  # noqa: S105 - only for tests
BEARER = {"Authorization": f"Bearer {TOKEN}"}
GIT_TOKEN = "a-git-token-of-the-tests-00000001"  # noqa: S105 - only for tests
SECRET = "s3cret-in-a-url"  # noqa: S105 - only for tests
WITH_ARGUMENTS = """---
name: troubleshoot
description: Looks at a pod.
arguments:
  - name: pod
    description: Which one
    required: true
  - name: depth
---
Look at {{pod}}, {{depth}} levels deep.
"""
PROMPTS = {
    "review.md": make_skill_md("review", "Reviews.", "Review it."),
    "troubleshoot.md": WITH_ARGUMENTS.encode(),
    "pdf/SKILL.md": make_skill_md("pdf", "Reads PDFs.", "Run scripts/read.sh."),
    "pdf/scripts/read.sh": b"#!/bin/bash\necho hello\n",
    "pdf/data.bin": bytes(range(256)),
}
LARGE = {f"p{n:04}.md": make_skill_md(f"p{n:04}", "Long. " * 20) for n in range(300)}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> GitRepo:
    served = tmp_path_factory.mktemp("served")
    other = git_repo(served / "acme/other.git", {"team/only.md": make_skill_md("only")})
    other.git("branch", "-m", "main", "team-skills")
    git_repo(served / "acme/large.git", LARGE)
    return git_repo(served / "acme/prompts.git", PROMPTS)


@pytest.fixture(scope="module")
def site(repo: GitRepo) -> Iterator[GitServer]:
    with run_git_server(repo.folder.parents[1]) as running:
        yield running


@pytest.fixture(scope="module")
def server(site: GitServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    variables = {
        "DOT_AI_USER_PROMPTS_REPO": site.url("acme/prompts.git"),
        "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
        "SKILLHALL_AUTH_TOKEN": TOKEN,
    }
    replica = ForkedReplica(tmp_path_factory.mktemp("server"), variables)
    try:
        replica.start()
        client = OriginalClient(replica.port, TOKEN)
        wait_until(lambda: "pdf" in client.prompts()[0])  # after the first fetch
        yield replica
    finally:
        replica.stop(signal.SIGKILL)


@pytest.fixture
def client(server: Replica) -> OriginalClient:
    return OriginalClient(server.port, TOKEN)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of skills that a user works on."""
    files = {
        "wip/SKILL.md": make_skill_md("wip", "In progress.", "Do {{thing}}."),
        "wip/run.sh": b"#!/bin/sh\n",
        "wip/.hidden": b"x",
        ".gitignore": b"*.tmp\n",
        "empty.txt": b"",
    }
    for name, data in files.items():
        path = tmp_path / "skills" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "skills/wip/run.sh").chmod(0o755)
    return tmp_path / "skills"


# Listing and rendering


def test_tools_list_is_empty(client: OriginalClient) -> None:
    assert client.tools() == []


def test_unknown_tool_is_not_found(client: OriginalClient) -> None:
    with pytest.raises(ApiError, match=r"^404 NOT_FOUND: "):
        client.call("POST", f"{API}/tools/version", body={})


def test_prompts_are_listed_with_arguments_but_no_files(
    client: OriginalClient, site: GitServer
) -> None:
    prompts, source = client.prompts()
    assert [*prompts] == [*BUILT_IN, "pdf", "review", "troubleshoot"]
    assert source == site.url("acme/prompts.git")
    assert prompts["review"] == {"name": "review", "description": "Reviews."}
    assert prompts["troubleshoot"]["arguments"] == [
        {"name": "pod", "description": "Which one", "required": True},
        {"name": "depth", "description": "", "required": False},
    ]


def test_prompt_is_rendered_with_an_empty_body(client: OriginalClient) -> None:
    assert client.render("review")["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Review it."}}
    ]


@pytest.mark.parametrize("body", [{"arguments": {}}, {"arguments": None}, {"more": 1}])
def test_prompt_is_rendered_without_arguments(client: OriginalClient, body: object) -> None:
    assert client.render("review", body=body)["description"] == "Reviews."


def test_rendered_skill_has_its_files_in_base64(client: OriginalClient) -> None:
    files = {item["path"]: item["content"] for item in client.render("pdf")["files"]}
    assert {path: base64.b64decode(text) for path, text in files.items()} == {
        "data.bin": PROMPTS["pdf/data.bin"],
        "scripts/read.sh": PROMPTS["pdf/scripts/read.sh"],
    }


@pytest.mark.parametrize(
    ("depth", "text"), [("3", "3"), (3, "3"), (1.5, "1.5"), (True, "true"), (0, "0")]
)
def test_arguments_may_be_strings_numbers_and_booleans(
    client: OriginalClient, depth: object, text: str
) -> None:
    data = client.render("troubleshoot", body={"arguments": {"pod": "web-1", "depth": depth}})
    rendered = data["messages"][0]["content"]["text"]
    assert rendered == f"Look at web-1, {text} levels deep."


def test_missing_argument_is_named(client: OriginalClient) -> None:
    with pytest.raises(ApiError) as error_info:
        client.render("troubleshoot", body={"arguments": {"depth": 1}})
    assert str(error_info.value) == "400 VALIDATION_ERROR: Missing required arguments: pod"


@pytest.mark.parametrize("name", ["nope", "a b", "ü", "a/b", "100%", "a:b+c@d=$&"])
def test_unknown_prompt_is_named(client: OriginalClient, name: str) -> None:
    with pytest.raises(ApiError) as error_info:
        client.render(name)
    assert str(error_info.value) == f"400 VALIDATION_ERROR: Prompt not found: {name}"


def test_large_list_is_compressed_and_complete(client: OriginalClient, site: GitServer) -> None:
    prompts, _ = client.prompts(Override(repo=site.url("acme/large.git")))
    assert len(prompts) == len(BUILT_IN) + len(LARGE)


# Other repositories


def test_override_selects_repository_path_and_branch(
    client: OriginalClient, site: GitServer
) -> None:
    url = site.url("acme/other.git")
    override = Override(url, "team", "team-skills")
    prompts, source = client.prompts(override)
    assert ([*prompts], source) == ([*BUILT_IN, "only"], url)
    assert client.render("only", override)["source"] == url


@pytest.mark.parametrize("query", ["path=&branch=", "path=%20", "branch="])
def test_empty_path_or_branch_means_the_default(
    server: Replica, site: GitServer, query: str
) -> None:
    url = site.url("acme/prompts.git")
    reply = server.request("GET", f"{API}/prompts?repo={url}&{query}", headers=BEARER)
    assert reply.status == 200, reply.body
    assert len(reply.json["data"]["prompts"]) == len(BUILT_IN) + 3


def test_git_token_header_of_the_original_is_accepted(
    client: OriginalClient, site: GitServer, repo: GitRepo, server: Replica
) -> None:
    git_repo(repo.folder.parent / "private.git", {"mine.md": make_skill_md("mine")})
    site.token = GIT_TOKEN
    url = site.url("acme/private.git")
    try:
        with pytest.raises(ApiError, match=r"^502 PROMPTS_SOURCE_ERROR"):
            client.prompts(Override(repo=url))
        assert "mine" in client.prompts(Override(repo=url, token=GIT_TOKEN))[0]
    finally:
        site.token = ""
    assert GIT_TOKEN not in server.log


@pytest.mark.parametrize(
    "override",
    [
        Override(repo=f"ssh://me:{SECRET}@127.0.0.1/acme/x"),
        Override(repo=f"http://me:{SECRET}@127.0.0.1:1/acme/x", path="../up"),
        Override(repo="http://127.0.0.1:1/acme/x", branch="a b"),
    ],
)
def test_invalid_repository_is_rejected_without_its_secret(
    client: OriginalClient, override: Override
) -> None:
    with pytest.raises(ApiError) as error_info:
        client.prompts(override)
    assert (error_info.value.status, error_info.value.code) == (400, "VALIDATION_ERROR")
    assert SECRET not in str(error_info.value)


def test_refresh_counts_the_prompts(client: OriginalClient) -> None:
    assert client.refresh() == len(BUILT_IN) + 3


# Uploads


def test_uploaded_folder_is_listed_and_rendered(client: OriginalClient, folder: Path) -> None:
    source = "local:tester-listed"
    assert client.upload(source, folder) == "ingested"
    assert client.upload(source, folder) == "unchanged"
    override = Override(source=source)
    prompts, shown_source = client.prompts(override)
    assert ([*prompts], shown_source) == ([*BUILT_IN, "wip"], source)
    rendered = client.render("wip", override, {"arguments": {"thing": 7}})
    assert rendered["messages"][0]["content"]["text"] == "Do 7."
    assert [item["path"] for item in rendered["files"]] == ["run.sh"]


def test_changed_folder_is_ingested_again(client: OriginalClient, folder: Path) -> None:
    client.upload("local:tester-changed", folder)
    (folder / "wip/SKILL.md").write_bytes(make_skill_md("wip", "Changed."))
    assert client.upload("local:tester-changed", folder) == "ingested"
    prompts, _ = client.prompts(Override(source="local:tester-changed"))
    assert prompts["wip"]["description"] == "Changed."


@pytest.mark.parametrize("mode", ["0644", "644", "0o755", "0755", "4755", "0100644", 420, 33188])
def test_mode_is_an_octal_string_or_a_number(client: OriginalClient, mode: object) -> None:
    files = [{"path": "a.md", "content": "", "mode": mode}]
    data = client.call("POST", INGEST, body={"source": "local:modes", "files": files})
    assert {"source": "local:modes", "fileCount": 1, "status": "ingested"}.items() <= data.items()


@pytest.mark.parametrize("mode", ["rwxr-xr-x", "0888", "", "-1", "0x1ff", 1.5, True])
def test_invalid_mode_is_rejected(client: OriginalClient, mode: object) -> None:
    files = [{"path": "a.md", "content": "", "mode": mode}]
    with pytest.raises(ApiError, match=r"^400 VALIDATION_ERROR"):
        client.call("POST", INGEST, body={"source": "local:modes", "files": files})


@pytest.mark.parametrize("path", ["../up/SKILL.md", "/etc/passwd", "a\0b"])
def test_unsafe_path_is_rejected_and_keeps_the_old_upload(
    client: OriginalClient, folder: Path, path: str
) -> None:
    client.upload("local:tester-unchanged", folder)
    files = [{"path": path, "content": "aGk=", "mode": "0644"}]
    with pytest.raises(ApiError, match=r"^400 VALIDATION_ERROR"):
        client.call("POST", INGEST, body={"source": "local:tester-unchanged", "files": files})
    assert "wip" in client.prompts(Override(source="local:tester-unchanged"))[0]


def test_body_over_the_limit_is_rejected(client: OriginalClient) -> None:
    content = base64.b64encode(b"x" * 600_000).decode()
    body = {"source": "local:huge", "files": [{"path": "a.md", "content": content}]}
    with pytest.raises(ApiError, match=r"^413 PAYLOAD_TOO_LARGE"):
        client.call("POST", INGEST, body=body)


def test_unknown_source_error_explains_how_to_upload(client: OriginalClient) -> None:
    override = Override(source="local:never")
    for call in (lambda: client.prompts(override), lambda: client.render("wip", override)):
        with pytest.raises(ApiError) as error_info:
            call()
        assert is_upload_needed(error_info.value), error_info.value
        assert error_info.value.code == "VALIDATION_ERROR"
        assert "Prompt not found" not in error_info.value.message


def test_forgotten_source_is_uploaded_again(
    client: OriginalClient, folder: Path, tmp_path: Path
) -> None:
    client.ensure_uploaded("local:tester-lost", folder)
    client.uploaded = {"local:tester-other": client.uploaded["local:tester-lost"]}
    assert client.generate_from_folder("local:tester-other", folder, tmp_path / "out") == []
    assert (tmp_path / "out/dot-ai-wip/run.sh").read_bytes() == b"#!/bin/sh\n"


@pytest.mark.parametrize(
    "source", [f"https://me:{SECRET}@git.example.org/x", f"https://h.example/x?token={SECRET}"]
)
def test_credentials_in_a_source_name_are_never_shown(
    client: OriginalClient, folder: Path, server: Replica, source: str
) -> None:
    with pytest.raises(ApiError) as error_info:
        client.prompts(Override(source=source))
    assert SECRET not in error_info.value.message
    client.upload(source, folder)
    prompts, shown_source = client.prompts(Override(source=source))
    assert "wip" in prompts
    assert "***" in shown_source
    assert client.prompts(Override(source=shown_source)) == (prompts, shown_source)
    metrics = server.request("GET", "/metrics", headers=BEARER).body.decode()
    assert SECRET not in server.log + str(server.get_readiness()) + metrics
    paths = [path for path in server.folder.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in paths)


# Generating


def test_generate_continues_after_a_prompt_that_needs_arguments(
    client: OriginalClient, tmp_path: Path
) -> None:
    assert client.generate(tmp_path) == ["troubleshoot"]
    assert (tmp_path / "dot-ai-pdf/data.bin").read_bytes() == PROMPTS["pdf/data.bin"]
    for name in BUILT_IN:
        text = (tmp_path / f"dot-ai-{name}/SKILL.md").read_text(encoding="utf-8")
        assert len(text) > 200
        assert "{{" not in text


# Access, methods and routes


@pytest.mark.parametrize("token", ["", "wrong", "x" * 500])
@pytest.mark.parametrize("path", [f"{API}/prompts", f"{API}/tools"])
def test_request_with_a_wrong_token_is_unauthorized(server: Replica, token: str, path: str) -> None:
    with pytest.raises(ApiError) as error_info:
        OriginalClient(server.port, token).call("GET", path)
    assert error_info.value.status == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_authorization_scheme_is_case_insensitive(server: Replica, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {TOKEN}"}
    assert server.request("GET", f"{API}/prompts", headers=headers).status == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", f"{API}/prompts", "GET"),
        ("GET", f"{API}/prompts/review", "POST"),
        ("GET", f"{API}/prompts/refresh", "POST"),
        ("GET", INGEST, "POST"),
        ("POST", f"{API}/tools", "GET"),
    ],
)
def test_wrong_method_lists_the_allowed_ones(
    server: Replica, method: str, path: str, allowed: str
) -> None:
    reply = server.request(method, path, headers=BEARER)
    assert (reply.status, reply.code) == (405, "METHOD_NOT_ALLOWED")
    assert allowed in reply.headers["Allow"]


@pytest.mark.parametrize(
    "path", ["/namespaces", "/resources", "/teams", "/knowledge/ask", "/tools/"]
)
def test_unknown_route_is_not_found(server: Replica, path: str) -> None:
    reply = server.request("GET", f"{API}{path}", headers=BEARER)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    check_meta(reply.json["meta"])


@pytest.mark.parametrize("path", [f"{API}/openapi", f"{API}/openapi.json"])
def test_openapi_document_needs_no_token_and_no_redirect(server: Replica, path: str) -> None:
    reply = server.request("GET", path)
    assert reply.status == 200
    document = json.loads(reply.body)
    assert document["openapi"].startswith("3.")
    assert f"{API}/tools" in document["paths"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_token(server: Replica, path: str) -> None:
    assert server.request("GET", path).status == 200
