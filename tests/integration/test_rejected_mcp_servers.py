"""Hostile MCP servers: rejected with one error, and no folder is changed."""

import json
import os
import select
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from skillhall._internal.net.connection import NetworkSettings
from skillhall._internal.sources.mcp import client as mcp_client
from skillhall._internal.sources.mcp import source as served_skills
from skillhall._internal.sources.mcp.servers_file import connect
from skillhall._internal.sources.mcp.transport import McpTimeouts
from tests.support.cli_sandbox import PASSWORD, CliSandbox
from tests.support.mcp_scripted_server import Script
from tests.support.mcp_servers import (
    DEADLINE,
    LABEL,
    PDF,
    URI,
    ScriptedHttpServer,
    add_server,
    make_contents,
    make_entry,
    make_resource,
    make_script,
    plain_skill,
    run_scripted_server,
)
from tests.support.skills import make_skill_md

ADD = ("add", "--yes")
FORMS = "skill://pdf/references/forms.md"
SKILLS = ("mcp-servers", "skills")
READ = ("mcp-servers", "read")
MANY = {f"{number}.md": b"" for number in range(512)}
SHORT = NetworkSettings(total=1, idle=0.3)
HASTY = McpTimeouts(NetworkSettings(total=5, idle=5), SHORT, SHORT, SHORT)


class HostileServer(NamedTuple):
    """Server that must be rejected, and the code of the finding."""

    script: Script
    finding: str


def resource(uri: str, **changes: object) -> dict[str, Any]:
    """Build a server with an invalid file in its entry."""
    return {**make_resource(uri, b"evil"), **changes}


def with_resource(uri: str, **changes: object) -> Script:
    """Build a server with an additional file."""
    entry = make_entry()
    entry["resources"].append(resource(uri, **changes))
    contents = {**make_contents(), uri: {"uri": uri, "text": "evil"}}
    return make_script(skills=[entry], contents=contents)


def with_content(uri: str, **content: object) -> Script:
    """Build a server whose file does not match its entry."""
    return make_script(contents={**make_contents(), uri: {"uri": uri, **content}})


def with_entry(**changes: object) -> Script:
    """Build a server with changes in its entry."""
    return make_script(skills=[{**make_entry(), **changes}])


def with_front(**fields: object) -> Script:
    """Build a server whose entry has other frontmatter than SKILL.md."""
    entry = make_entry()
    entry["frontmatter"].update(fields)
    return make_script(skills=[entry])


URIS = {
    "leads upwards": "skill://pdf/../evil.md",
    "hides upwards": "skill://pdf/%2e%2e/evil.md",
    "hides upwards in capitals": "skill://pdf/%2E%2E/%2E%2E/evil.md",
    "hides a slash": "skill://pdf/..%2f..%2Fevil.md",
    "hides a backslash": "skill://pdf/..%5cevil.md",
    "has a backslash": "skill://pdf/..\\evil.md",
    "hides a NUL": "skill://pdf/evil.md%00.png",
    "names another authority": "skill://evil/evil.md",
    "names another scheme": "file://pdf/evil.md",
    "names a web page": "https://evil.example/evil.md",
    "is absolute": "/etc/evil.md",
    "is relative": "evil.md",
    "only begins like the skill": "skill://pdf-evil/evil.md",
    "ends in a slash": "skill://pdf/evil/",
    "has an empty part": "skill://pdf//evil.md",
    "belongs to version control": "skill://pdf/.git/hooks/post-checkout",
    "is a device": "skill://pdf/aux.md",
    "has an escape": "skill://pdf/\x1b[31mevil.md",
}
HOSTILE_SERVERS = {
    "stale text": HostileServer(with_content(FORMS, text="# Forma\r\n"), "mcp-digest"),
    "stale bytes": HostileServer(with_content(FORMS, blob="eHh4eHh4eHh4"), "mcp-digest"),
    "a stale SKILL.md": HostileServer(
        with_content(URI, text=PDF["SKILL.md"].decode().replace("Steps", "Evils")), "mcp-digest"
    ),
    "line ends of its own": HostileServer(with_content(FORMS, text="# Forms\n"), "mcp-size"),
    "more than announced": HostileServer(with_content(FORMS, text="# Forms\r\nx"), "mcp-size"),
    "far more than announced": HostileServer(with_content(FORMS, text="x" * 200_000), "mcp-size"),
    "an announced file that it does not have": HostileServer(
        make_script(contents={URI: make_contents()[URI]}), "mcp-missing"
    ),
    "another license": HostileServer(with_front(license="GPL"), "mcp-frontmatter"),
    "tools that it did not announce": HostileServer(
        make_script(
            skills=[make_entry({"SKILL.md": make_skill_md("pdf", allowed_tools="Bash(*)")})],
            contents=make_contents({"SKILL.md": make_skill_md("pdf", allowed_tools="Bash(*)")}),
        ),
        "mcp-frontmatter",
    ),
    "a hook that it only announced": HostileServer(with_front(hooks={"a": "b"}), "mcp-frontmatter"),
    "another name": HostileServer(with_front(name="docx"), "mcp-name"),
    "another URI than its name": HostileServer(with_entry(uri="skill://docx/SKILL.md"), "mcp-name"),
    "skills on demand": HostileServer(with_entry(resources="dynamic"), "mcp-dynamic"),
    "no list of files": HostileServer(with_entry(resources=None), "mcp-entry"),
    "a list of nothing": HostileServer(with_entry(resources=[]), "mcp-entry"),
    "files without digests": HostileServer(
        with_entry(resources=[{"uri": URI, "size": 1}]), "mcp-entry"
    ),
    "frontmatter of text": HostileServer(with_entry(frontmatter="name: pdf"), "mcp-entry"),
    "one entry twice": HostileServer(
        make_script(skills=[make_entry(), make_entry()]), "mcp-repeated"
    ),
    "one file twice": HostileServer(with_resource(FORMS), "mcp-repeated"),
    "one file in two spellings": HostileServer(
        with_resource("skill://pdf/references/%66orms.md"), "mcp-repeated"
    ),
    "one file in two cases": HostileServer(
        with_resource("skill://pdf/references/FORMS.md"), "mcp-repeated"
    ),
    "a file where a folder is": HostileServer(
        with_resource("skill://pdf/references"), "mcp-repeated"
    ),
    "513 files": HostileServer(make_script(skills=[make_entry({**PDF, **MANY})]), "mcp-limit"),
    "16 MiB and more": HostileServer(with_resource("skill://pdf/a", size=1 << 24), "mcp-limit"),
    "a file of more than 10 MiB": HostileServer(
        with_resource("skill://pdf/a", size=11 << 20), "mcp-limit"
    ),
    "a skill inside that it does not list": HostileServer(
        make_script(skills=[make_entry(), make_entry(folder="skill://pdf/inner")]), "mcp-unlisted"
    ),
}


@pytest.mark.parametrize(("script", "finding"), HOSTILE_SERVERS.values(), ids=HOSTILE_SERVERS)
def test_add_rejects_server_with(sandbox: CliSandbox, script: Script, finding: str) -> None:
    add_server(sandbox, script)
    result = sandbox.check_rejected(ADD, [f"mcp:{LABEL}"], "invalid_skill")
    actual: Any = result.json["findings"]
    assert finding in {item["code"] for item in actual if item["effect"] == "reject"}


def test_add_rejects_file_uri_outside_skill(sandbox: CliSandbox) -> None:
    entries = []
    for number, uri in enumerate(URIS.values()):
        entry, _ = plain_skill(f"pdf-{number}")
        entry["resources"].append(make_resource(uri.replace("//pdf/", f"//pdf-{number}/"), b""))
        entries.append(entry)
    add_server(sandbox, make_script(skills=entries))
    result = sandbox.check_rejected(ADD, [f"mcp:{LABEL}"], "invalid_skill")
    actual: Any = result.json["findings"]
    assert {item["skill"]: item["code"] for item in actual} == {
        f"pdf-{number}": "mcp-uri" for number in range(len(URIS))
    }


@pytest.mark.parametrize("cheat", ["stale text", "513 files", "skills on demand"])
def test_run_directory_rejects_skill(sandbox: CliSandbox, cheat: str) -> None:
    add_server(sandbox, HOSTILE_SERVERS[cheat].script)
    sandbox.check_rejected(("local", "import", "--yes"), [f"mcp:{LABEL}"], "invalid_skill")


def test_command_with_oversized_output_is_not_used_again(sandbox: CliSandbox) -> None:
    good, contents = plain_skill("good")
    first = HOSTILE_SERVERS["far more than announced"].script
    script = make_script(
        skills=[*first["skills"], good], contents={**first["contents"], **contents}
    )
    add_server(sandbox, script)
    result = sandbox.check_rejected(ADD, [f"mcp:{LABEL}"], "upstream_error")
    assert "exceeded the size limit" in result.error["message"]


IN_PLACE = ["stale text", "more than announced", "another license", "skills on demand"]


@pytest.mark.parametrize("cheat", IN_PLACE)
def test_read_rejects_server_with(sandbox: CliSandbox, cheat: str) -> None:
    script, finding = HOSTILE_SERVERS[cheat]
    add_server(sandbox, script)
    path = "SKILL.md" if cheat == "another license" else "references/forms.md"
    result = sandbox.check_rejected(READ, [LABEL, URI, path], "invalid_skill")
    assert f"[{finding}]" in result.error["message"]


def test_unlisted_file_is_not_read(sandbox: CliSandbox) -> None:
    add_server(sandbox, with_content("skill://pdf/new.md", text="evil"))
    result = sandbox.check_rejected(READ, [LABEL, "pdf", "new.md"], "invalid_skill")
    assert "[mcp-unlisted]" in result.error["message"]


@pytest.mark.parametrize("path", ["../evil", "/etc/passwd", "a/../../b", "a\\b"])
def test_path_outside_skill_is_rejected(sandbox: CliSandbox, path: str) -> None:
    add_server(sandbox, make_script())
    sandbox.check_rejected(READ, [LABEL, "pdf", path], "invalid_path")


def test_listing_shows_rejection_reason(sandbox: CliSandbox) -> None:
    add_server(sandbox, HOSTILE_SERVERS["skills on demand"].script)
    result = sandbox.run(*SKILLS, LABEL)
    assert (result.out, result.code) == ("", 0)
    assert f"{URI}: reject[mcp-dynamic]" in result.err


def test_entry_with_other_uri_is_rejected(sandbox: CliSandbox) -> None:
    other, _ = plain_skill("docx")
    add_server(sandbox, make_script(results={"skills/get": {"skill": other}}))
    sandbox.check_rejected(ADD, [f"mcp:{LABEL}/{URI}"], "invalid_skill")


@pytest.mark.parametrize("result", [{}, {"skill": None}])
def test_malformed_entry_is_rejected(sandbox: CliSandbox, result: object) -> None:
    add_server(sandbox, make_script(results={"skills/get": result}))
    assert sandbox.run(*ADD, f"mcp:{LABEL}/{URI}").code in (3, 5)
    assert not (sandbox.project / ".agents").exists()


def test_missing_skill_is_not_found(sandbox: CliSandbox) -> None:
    add_server(sandbox, make_script())
    result = sandbox.check_rejected(ADD, [f"mcp:{LABEL}/pdff"], "not_found")
    assert "did you mean 'pdf'?" in result.error["hint"]
    add_server(sandbox, make_script(errors={"skills/get": -32603}))
    sandbox.check_rejected(ADD, [f"mcp:{LABEL}/{URI}"], "upstream_error")


# Failing servers


def page(**fields: object) -> Script:
    """Build a server with an invalid listing."""
    return make_script(results={"skills/list": {"skills": [], **fields}})


def reply(**fields: object) -> Script:
    """Build a server with an invalid file response."""
    return make_script(results={"resources/read": fields})


TEXT = {"uri": URI, "text": PDF["SKILL.md"].decode()}
FAULTS: dict[str, tuple[Script, str]] = {
    "no skills": (make_script(skills=[]), "not_found"),
    "no extension": (make_script(capabilities={"resources": {}}), "not_found"),
    "no extension, and is old": (make_script(capabilities={}, is_old=True), "not_found"),
    "an extension of text": (
        make_script(capabilities={"extensions": {"io.modelcontextprotocol/skills": "yes"}}),
        "not_found",
    ),
    "capabilities of text": (make_script(capabilities="all"), "upstream_error"),
    "capabilities of text, and is old": (
        make_script(capabilities="all", is_old=True),
        "upstream_error",
    ),
    "a protocol of its own": (
        make_script(
            is_old=True, results={"initialize": {"protocolVersion": "9", "capabilities": {}}}
        ),
        "upstream_error",
    ),
    "pages without end": (page(nextCursor="again"), "upstream_error"),
    "a cursor of a number": (page(nextCursor=1), "upstream_error"),
    "a cursor of great length": (page(nextCursor="x" * 5000), "upstream_error"),
    "an empty cursor": (page(nextCursor=""), "upstream_error"),
    "a listing of text": (page(skills="none"), "upstream_error"),
    "a result of nothing": (make_script(results={"skills/list": None}), "upstream_error"),
    "a result that wants more": (page(resultType="input_required"), "upstream_error"),
    "a result of a list": (make_script(results={"skills/list": []}), "upstream_error"),
    "an error": (make_script(errors={"skills/list": -32603}), "upstream_error"),
    "no such method": (make_script(errors={"skills/list": -32601}), "upstream_error"),
    "garbage": (make_script(raw={"skills/list": "Traceback: oh no"}), "upstream_error"),
    "a number": (make_script(raw={"skills/list": "1"}), "upstream_error"),
    "deep nesting": (make_script(raw={"skills/list": "[" * 100_000}), "upstream_error"),
    "no JSON-RPC": (make_script(raw={"skills/list": "{}"}), "upstream_error"),
    "NaN": (make_script(raw={"skills/list": '{"jsonrpc": "2.0", "id": NaN}'}), "upstream_error"),
    "an end at once": (make_script(dies=["server/discover"]), "upstream_error"),
    "an end at its listing": (make_script(dies=["skills/list"]), "upstream_error"),
    "an end in the middle": (make_script(dies=["resources/read"]), "upstream_error"),
    "an error in the middle": (make_script(errors={"resources/read": -32603}), "upstream_error"),
    "questions without end": (make_script(asks=1000), "upstream_error"),
    "a question of great length": (make_script(asks=1, asked_as="q" * 200), "upstream_error"),
    "no ears": (make_script(skills=[], is_deaf=True), "upstream_error"),
    "no contents": (reply(contents=[]), "upstream_error"),
    "two contents": (reply(contents=[TEXT, TEXT]), "upstream_error"),
    "contents of text": (reply(contents="x"), "upstream_error"),
    "a content of another file": (reply(contents=[{**TEXT, "uri": FORMS}]), "upstream_error"),
    "text and bytes at once": (reply(contents=[{**TEXT, "blob": ""}]), "upstream_error"),
    "neither text nor bytes": (reply(contents=[{"uri": URI}]), "upstream_error"),
    "broken base64": (reply(contents=[{"uri": URI, "blob": "%%%"}]), "upstream_error"),
    "half a character": (reply(contents=[{"uri": URI, "text": "\ud800"}]), "upstream_error"),
    "a line without end": (make_script(floods=["skills/list"]), "too_large"),
}


@pytest.mark.parametrize(("script", "code"), FAULTS.values(), ids=FAULTS)
def test_malformed_response_fails(
    sandbox: CliSandbox, script: Script, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_client, "MAX_PAGE_BYTES", 1_000_000)  # avoids sending 16 MiB
    add_server(sandbox, script)
    sandbox.check_rejected(ADD, [f"mcp:{LABEL}"], code)


def test_server_without_skills_extension_fails(sandbox: CliSandbox) -> None:
    add_server(sandbox, FAULTS["no extension"][0])
    result = sandbox.check_rejected(SKILLS, [LABEL], "not_found")
    assert "this server does not offer skills" in result.error["message"]
    assert "io.modelcontextprotocol/skills" in result.error["message"]


def test_too_many_skills_are_rejected(sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_client, "MAX_ENTRIES", 3)
    entries = [plain_skill(f"s-{number}")[0] for number in range(4)]
    add_server(sandbox, make_script(skills=entries, page=2))
    sandbox.check_rejected(SKILLS, [LABEL], "too_large")


def test_endless_pages_are_rejected(sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_client, "MAX_PAGES", 3)
    entries = [plain_skill(f"s-{number}")[0] for number in range(4)]
    add_server(sandbox, make_script(skills=entries, page=1))
    result = sandbox.check_rejected(SKILLS, [LABEL], "upstream_error")
    assert "too many pages" in result.error["message"]


@pytest.mark.parametrize("method", ["skills/list", "resources/read"])
def test_slow_server_times_out(
    sandbox: CliSandbox, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_skills, "connect", partial(connect, timing=HASTY))
    add_server(sandbox, make_script(silent=[method]))
    sandbox.check_rejected(ADD, [f"mcp:{LABEL}"], "upstream_timeout")


def test_missing_command_fails(sandbox: CliSandbox) -> None:
    sandbox.run("mcp-servers", "add", LABEL, "--", "no-such-command-anywhere")
    sandbox.check_rejected(SKILLS, [LABEL], "upstream_error")


def test_child_processes_of_command_are_killed(sandbox: CliSandbox) -> None:
    pipe = sandbox.outside / "pipe"
    os.mkfifo(pipe)
    words = f"exec 9>{pipe}; sleep 60 & echo garbage; wait"
    sandbox.run("mcp-servers", "add", LABEL, "--", "sh", "-c", words)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert sandbox.run(*SKILLS, LABEL).code == 5
    # Reading the pipe ends when no process is left that could write to it.
    assert select.select([reading], [], [], DEADLINE)[0]
    assert os.read(reading, 1) == b""
    os.close(reading)


# HTTP


@pytest.fixture
def web(sandbox: CliSandbox) -> Iterator[ScriptedHttpServer]:
    with run_scripted_server(make_script()) as server:
        sandbox.run("mcp-servers", "add", LABEL, server.url)
        yield server


JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}
ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "a fault": ({"status": 500, "body": PASSWORD.encode()}, "upstream_error"),
    "nothing there": ({"status": 404, "body": b"no"}, "upstream_error"),
    "a bad request": ({"status": 400, "body": b"{}", "headers": JSON}, "upstream_error"),
    "a way elsewhere": (
        {"status": 307, "headers": {"Location": "http://169.254.169.254/"}},
        "upstream_error",
    ),
    "not allowed": ({"status": 401}, "unauthenticated"),
    "forbidden": ({"status": 403}, "unauthenticated"),
    "too many requests": ({"status": 429, "headers": {"Retry-After": "9"}}, "rate_limited"),
    "a page": ({"body": b"<html>Sign in</html>"}, "upstream_error"),
    "garbage": ({"body": b"oh", "headers": JSON}, "upstream_error"),
    "an empty answer": ({"body": b"", "headers": JSON}, "upstream_error"),
    "another message": (
        {"body": b'{"jsonrpc": "2.0", "id": 99, "result": {}}', "headers": JSON},
        "upstream_error",
    ),
    "both result and error": (
        {"body": b'{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}', "headers": JSON},
        "upstream_error",
    ),
    "a list of messages": ({"body": b"[]", "headers": JSON}, "upstream_error"),
    "events of nothing": ({"body": b": x\n\n", "headers": EVENTS}, "upstream_error"),
    "an event that does not end": ({"body": b"data: {", "headers": EVENTS}, "upstream_error"),
    "an event of garbage": ({"body": b"data: oh\n\n", "headers": EVENTS}, "upstream_error"),
    "less than promised": (
        {"body": b"{", "headers": {**JSON, "Content-Length": "9"}},
        "upstream_error",
    ),
    "more than is taken": ({"body": b" " * 1_100_000, "headers": JSON}, "too_large"),
    "events without end": ({"body": b": x\n" * 300_000, "headers": EVENTS}, "too_large"),
    "accepted, and no more": ({"status": 202}, "upstream_error"),
}


@pytest.mark.parametrize(("ways", "code"), ANSWERS.values(), ids=ANSWERS)
def test_http_server_fails_with(
    sandbox: CliSandbox, web: ScriptedHttpServer, ways: dict[str, Any], code: str
) -> None:
    for name, value in ways.items():
        setattr(web, name, value)
    sandbox.check_rejected(ADD, [f"mcp:{LABEL}"], code)


def test_token_is_not_sent_after_redirect(
    sandbox: CliSandbox, web: ScriptedHttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", PASSWORD)
    words = ("mcp-servers", "add", "--overwrite", LABEL, web.url, "--token-variable", "ACME_TOKEN")
    sandbox.run(*words)
    with run_scripted_server(make_script()) as other:
        web.status, web.headers = 307, {"Location": other.url}
        sandbox.check_rejected(SKILLS, [LABEL], "upstream_error")
        assert other.requests == []


def test_token_with_spaces_is_rejected(
    sandbox: CliSandbox, web: ScriptedHttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", f"a\r\nX: {PASSWORD}")
    words = ("mcp-servers", "add", "--overwrite", LABEL, web.url, "--token-variable", "ACME_TOKEN")
    sandbox.run(*words)
    sandbox.check_rejected(SKILLS, [LABEL], "invalid_config")
    assert web.requests == []


ADDRESSES = {
    "a private network": "https://10.0.0.1/mcp",
    "a cloud's metadata": "http://169.254.169.254/mcp",
    "plain http": "http://192.0.2.1/mcp",
    "an odd spelling of this machine": "http://[::ffff:127.0.0.1]/mcp",
}


@pytest.mark.parametrize("url", ADDRESSES.values(), ids=ADDRESSES)
def test_disallowed_address_is_rejected(sandbox: CliSandbox, url: str) -> None:
    sandbox.run("mcp-servers", "add", LABEL, url)
    sandbox.check_rejected(SKILLS, [LABEL], "source_rejected")


# Configuration of servers


WRONG: dict[str, tuple[list[str], str]] = {
    "a label with a slash": (["a/b", "https://a.example/"], "source_rejected"),
    "a label of dots": (["..", "https://a.example/"], "source_rejected"),
    "a label in capitals": (["Acme", "https://a.example/"], "source_rejected"),
    "a label of a device": (["con", "https://a.example/"], "source_rejected"),
    "a label that is too long": (["a" * 33, "https://a.example/"], "source_rejected"),
    "a label that ends in a hyphen": (["a-", "https://a.example/"], "source_rejected"),
    "a password": (["acme", f"https://a:{PASSWORD}@b.example/"], "source_rejected"),
    "a query": (["acme", f"https://b.example/?token={PASSWORD}"], "source_rejected"),
    "an odd host": (["acme", "http://2130706433/mcp"], "source_rejected"),
    "an odd variable": (
        ["acme", "https://a.example/", "--token-variable", "A B"],
        "invalid_config",
    ),
    "a token for a command": (["acme", "--token-variable", "A", "serve"], "invalid_config"),
    "a variable for an address": (
        ["acme", "--variable", "A", "https://a.example/"],
        "invalid_config",
    ),
    "a command of nothing": (["acme", "--", ""], "invalid_config"),
}


@pytest.mark.parametrize(("words", "code"), WRONG.values(), ids=WRONG)
def test_invalid_server_is_rejected(sandbox: CliSandbox, words: list[str], code: str) -> None:
    sandbox.check_rejected(("mcp-servers", "add"), words, code, ignored=("data",))
    assert not (sandbox.folder / "data/mcp-servers.json").exists()


SOURCES = [
    "mcp:",
    "mcp:/pdf",
    "mcp:A",
    "mcp:a/../b",
    "mcp:a/skill://../b",
    "mcp:a/x://b?c",
    "mcp:a\\b",
]


@pytest.mark.parametrize("text", SOURCES)
def test_invalid_reference_is_rejected(sandbox: CliSandbox, text: str) -> None:
    sandbox.check_rejected(ADD, [text], "source_rejected")


def test_unknown_server_is_not_found(sandbox: CliSandbox) -> None:
    for command, words in ((ADD, ["mcp:acme"]), (SKILLS, ["acme"])):
        sandbox.check_rejected(command, words, "not_found")


Damage = Callable[[dict[str, Any]], object]
DAMAGES: dict[str, Damage] = {
    "another version": lambda value: value.update(version=2),
    "no version": lambda value: value.pop("version"),
    "servers of a list": lambda value: value.update(servers=[]),
    "a server of text": lambda value: value.update(servers={"acme": "x"}),
    "a server of nothing": lambda value: value.update(servers={"acme": {}}),
    "an odd label": lambda value: value.update(servers={"../a": {"url": "https://a.example"}}),
    "an odd address": lambda value: value.update(servers={"acme": {"url": "ftp://a"}}),
    "a command of text": lambda value: value.update(servers={"acme": {"command": "rm -r x"}}),
    "address and command": lambda value: value.update(
        servers={"acme": {"url": "https://a.example", "command": ["x"]}}
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_invalid_servers_file_is_rejected(sandbox: CliSandbox, damage: Damage) -> None:
    value: dict[str, Any] = {"version": 1, "servers": {}}
    damage(value)
    (sandbox.folder / "data/mcp-servers.json").write_text(json.dumps(value), encoding="utf-8")
    sandbox.check_rejected(SKILLS, ["acme"], "invalid_config")


def test_servers_file_that_is_not_json_is_rejected(sandbox: CliSandbox) -> None:
    (sandbox.folder / "data/mcp-servers.json").write_bytes(b"{")
    sandbox.check_rejected(("mcp-servers", "list"), [], "invalid_config")
