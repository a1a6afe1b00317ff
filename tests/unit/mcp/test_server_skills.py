"""The skills extension: lists, entries and directories."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client
from mcp_types import TextResourceContents

from skillhall._internal.catalog.manifests import MAX_MANIFEST_FILES
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.mcp.skill_index import SKILLS_PAGE_SIZE
from skillhall._internal.policy.folder_walk_rules import ScanPolicy
from skillhall._internal.policy.profiles import SKILL_IMPORT
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from tests.support.mcp_clients import (
    HANDSHAKE,
    MODERN,
    list_all,
    make_folder_server,
    read_error,
    read_error_data,
    run_client,
    send_request,
)
from tests.support.skills import make_skill, make_skill_md
from tests.support.trees import write_skill

EXTENSION = "io.modelcontextprotocol/skills"
INVALID_PARAMS, METHOD_NOT_FOUND = -32602, -32601


def listed(root: Path, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of the server
    server = make_folder_server(root, **options)
    return run_client(server, lambda client: list_all(client, "skills/list", "skills"))


def test_extension_is_declared_to_modern_clients_only(
    tmp_path: Path,
) -> None:
    async def extensions(client: Client) -> object:
        return client.server_capabilities.extensions

    assert run_client(make_folder_server(tmp_path), extensions) == {
        EXTENSION: {"directoryRead": True}
    }
    assert not run_client(make_folder_server(tmp_path), extensions, HANDSHAKE)


def test_skill_entry_is_a_complete_manifest(tmp_path: Path) -> None:
    data = make_skill_md("pdf", license="MIT", version="1.10", keywords="[a, 2, true]")
    make_skill(tmp_path, "pdf", data=data, files={"docs/a b.md": b"x", "logo.png": b"\xff\0"})
    [entry] = listed(tmp_path)
    digest = open_bundle(FolderHandle(str(tmp_path), "pdf"), ScanPolicy()).digest()
    assert entry == {
        "uri": "skill://pdf/SKILL.md",
        "frontmatter": {
            "name": "pdf",
            "description": "Reads PDF files.",
            "license": "MIT",
            "version": 1.1,
            "keywords": ["a", 2, True],
        },
        "resources": [
            {
                "uri": f"skill://pdf/{path}",
                "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
                "size": len(content),
            }
            for path, content in (
                ("SKILL.md", data),
                ("docs/a%20b.md", b"x"),
                ("logo.png", b"\xff\0"),
            )
        ],
        "_meta": {"skillhall/digest": digest},
    }


def test_string_fields_of_the_specification_stay_strings(tmp_path: Path) -> None:
    data = make_skill_md("pdf", metadata="{version: 1.0}", license="2")
    make_skill(tmp_path, "pdf", data=data)
    [entry] = listed(tmp_path)
    assert entry["frontmatter"]["metadata"] == {"version": "1.0"}
    assert entry["frontmatter"]["license"] == "2"


def test_responses_have_a_cache_ttl(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")

    async def results(client: Client) -> list[dict[str, Any]]:
        uri = "skill://pdf/SKILL.md"
        return [
            await send_request(client, "skills/list"),
            await send_request(client, "skills/get", uri=uri),
            await send_request(client, "resources/directory/read", uri="skill://pdf"),
        ]

    for result in run_client(make_folder_server(tmp_path), results):
        assert result["resultType"] == "complete"
        assert result["cacheScope"] == "private"
        assert isinstance(result["ttlMs"], int)


def test_skills_get_returns_a_skill_by_uri(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")

    async def both(client: Client) -> tuple[Any, Any]:
        entry = await send_request(client, "skills/get", uri="skill://pdf/SKILL.md")
        return entry["skill"], (await send_request(client, "skills/list"))["skills"][0]

    first, second = run_client(make_folder_server(tmp_path), both)
    assert first == second


@pytest.mark.parametrize(
    "uri",
    [
        "skill://nothing/SKILL.md",
        "skill://pdf",
        "skill://pdf/",
        "skill://pdf/notes.md",
        "skill://pdf/SKILL.md?x=1",
        "skill://pdf/../pdf/SKILL.md",
        "https://pdf/SKILL.md",
        "",
        "\0",
    ],
)
def test_skills_get_rejects_other_uris(tmp_path: Path, uri: str) -> None:
    make_skill(tmp_path, "pdf", files={"notes.md": b""})
    error = run_client(
        make_folder_server(tmp_path),
        lambda client: read_error(send_request(client, "skills/get", uri=uri)),
    )
    assert error == (INVALID_PARAMS, "not_found")


def test_pages_contain_every_skill_once(tmp_path: Path) -> None:
    names = [f"s{number:04}" for number in range(2 * SKILLS_PAGE_SIZE + 1)]
    for name in names:
        write_skill(tmp_path / name)
    assert [entry["frontmatter"]["name"] for entry in listed(tmp_path)] == names


def test_cursor_of_a_removed_skill_still_works(tmp_path: Path) -> None:
    for number in range(SKILLS_PAGE_SIZE + 2):
        write_skill(tmp_path / f"s{number:04}")

    async def two_pages(client: Client) -> list[str]:
        first = await send_request(client, "skills/list")
        last = tmp_path / f"s{SKILLS_PAGE_SIZE - 1:04}"
        (last / "SKILL.md").unlink()
        second = await send_request(client, "skills/list", cursor=first["nextCursor"])
        return [entry["uri"] for entry in second["skills"]]

    expected = [f"skill://s{SKILLS_PAGE_SIZE + more:04}/SKILL.md" for more in (0, 1)]
    assert run_client(make_folder_server(tmp_path), two_pages) == expected


def test_invalid_cursor_is_rejected(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    for method in ("skills/list", "resources/list", "prompts/list"):
        error = run_client(
            make_folder_server(tmp_path),
            lambda client, method=method: read_error(send_request(client, method, cursor="7")),  # type: ignore[misc]
        )
        assert error == (INVALID_PARAMS, "invalid_argument")


def test_skills_invalid_for_strict_hosts_are_unlisted_but_readable(
    tmp_path: Path,
) -> None:
    make_skill(tmp_path, "good")
    make_skill(tmp_path, "odd", data=make_skill_md("Odd Name"))
    make_skill(tmp_path, "tools", data=make_skill_md("tools", allowed_tools="[Read]"))
    make_skill(tmp_path, "long", data=make_skill_md("long", "x" * 1025))

    async def everything(client: Client) -> tuple[list[str], list[str]]:
        entries = await list_all(client, "skills/list", "skills")
        addresses = ("~odd/Odd%20Name", "tools", "long")
        got = [
            await send_request(client, "skills/get", uri=f"skill://{one}/SKILL.md")
            for one in addresses
        ]
        return [entry["uri"] for entry in entries], [one["skill"]["uri"] for one in got]

    in_list, got = run_client(make_folder_server(tmp_path), everything)
    assert in_list == ["skill://good/SKILL.md"]
    assert got == [
        "skill://~odd/Odd%20Name/SKILL.md",
        "skill://tools/SKILL.md",
        "skill://long/SKILL.md",
    ]


UNVERIFIABLE = {
    "repaired": b"---\nname: broken\ndescription: Use when: a PDF is involved.\n---\n",
    "duplicate key": b"---\nname: broken\ndescription: One.\ndescription: Two.\n---\n",
    "blank first line": b"\n---\nname: broken\ndescription: Reads.\n---\n",
}


@pytest.mark.parametrize("data", UNVERIFIABLE.values(), ids=UNVERIFIABLE)
def test_skill_with_nonstandard_frontmatter_has_no_entry(tmp_path: Path, data: bytes) -> None:
    make_skill(tmp_path, "broken", data=data)
    make_skill(tmp_path, "good")
    uri = "skill://broken/SKILL.md"

    async def everything(client: Client) -> object:
        [read] = (await client.read_resource(uri)).contents
        return (
            [entry["uri"] for entry in await list_all(client, "skills/list", "skills")],
            await read_error(send_request(client, "skills/get", uri=uri)),
            read.text.encode() if isinstance(read, TextResourceContents) else b"",
            (await client.call_tool("load_skill", {"name": "broken"})).is_error,
        )

    refused = INVALID_PARAMS, "invalid_skill"
    result = run_client(make_folder_server(tmp_path), everything)
    assert result == (["skill://good/SKILL.md"], refused, data, False)


def test_listed_frontmatter_equals_plain_yaml(tmp_path: Path) -> None:
    fields = {"license": "MIT", "version": "1.10", "keywords": "[a, 2, true]", "nested": "{a: 1}"}
    make_skill(tmp_path, "pdf", data=make_skill_md("pdf", **fields))
    make_skill(tmp_path, "folded", data=make_skill_md("folded", note=">-\n  a\n  b: c"))
    make_skill(tmp_path, "crlf", data=make_skill_md("crlf").replace(b"\n", b"\r\n"))
    make_skill(tmp_path, "broken", data=UNVERIFIABLE["repaired"])

    async def announced_and_read(client: Client) -> list[tuple[object, object]]:
        pairs = []
        for entry in await list_all(client, "skills/list", "skills"):
            [read] = (await client.read_resource(entry["uri"])).contents
            assert isinstance(read, TextResourceContents)
            block = read.text.replace("\r\n", "\n").split("---\n")[1]
            pairs.append((entry["frontmatter"], yaml.safe_load(block)))
        return pairs

    pairs = run_client(make_folder_server(tmp_path), announced_and_read)
    assert len(pairs) == 3
    for announced, read in pairs:
        assert announced == read


def test_skills_with_the_same_name_have_different_uris(tmp_path: Path) -> None:
    make_skill(tmp_path, "a", data=make_skill_md("pdf"))
    make_skill(tmp_path, "b", data=make_skill_md("pdf"))
    uris = [entry["uri"] for entry in listed(tmp_path, profile=SKILL_IMPORT)]
    assert uris == ["skill://pdf/SKILL.md", "skill://~b/pdf/SKILL.md"]


def test_hidden_skill_is_not_served(tmp_path: Path) -> None:
    make_skill(tmp_path, "quiet", data=make_skill_md("quiet", disable_model_invocation="true"))

    async def everything(client: Client) -> object:
        uri = "skill://quiet/SKILL.md"
        return (
            await list_all(client, "skills/list", "skills"),
            await list_all(client, "resources/list", "resources"),
            await read_error(send_request(client, "skills/get", uri=uri)),
            await read_error(client.read_resource(uri)),
        )

    unknown = INVALID_PARAMS, "not_found"
    assert run_client(make_folder_server(tmp_path), everything) == ([], [], unknown, unknown)


def test_skill_over_the_limits_is_served_only_as_resources(tmp_path: Path) -> None:
    files = {f"f{number}.txt": b"x" for number in range(MAX_MANIFEST_FILES)}
    make_skill(tmp_path, "many", files=files)
    make_skill(tmp_path, "heavy", files={"a": bytes(9 << 20), "b": bytes(8 << 20)})

    async def everything(client: Client) -> object:
        uri = "skill://heavy/SKILL.md"
        return (
            await list_all(client, "skills/list", "skills"),
            await read_error(send_request(client, "skills/get", uri="skill://many/SKILL.md")),
            await read_error(send_request(client, "skills/get", uri=uri)),
            len((await client.read_resource(uri)).contents),
            len(await list_all(client, "resources/list", "resources")),
        )

    beyond = INVALID_PARAMS, "too_large"
    result = run_client(make_folder_server(tmp_path), everything)
    assert result == ([], beyond, beyond, 1, MAX_MANIFEST_FILES + 1 + 3)


def test_skill_at_the_limit_is_listed(tmp_path: Path) -> None:
    files = {f"f{number}.txt": b"x" for number in range(MAX_MANIFEST_FILES - 1)}
    make_skill(tmp_path, "many", files=files)
    [entry] = listed(tmp_path)
    assert len(entry["resources"]) == MAX_MANIFEST_FILES


def test_editing_a_file_changes_its_digest(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "pdf", files={"notes.md": b"one"})

    async def before_and_after(client: Client) -> list[str]:
        before = await send_request(client, "skills/list")
        (folder / "notes.md").write_bytes(b"two")
        after = await send_request(client, "skills/list")
        return [one["skills"][0]["resources"][1]["digest"] for one in (before, after)]

    one, two = run_client(make_folder_server(tmp_path), before_and_after)
    assert one == f"sha256:{hashlib.sha256(b'one').hexdigest()}"
    assert two == f"sha256:{hashlib.sha256(b'two').hexdigest()}"


def test_directory_lists_its_direct_children(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf", files={"docs/a.md": b"", "docs/more/b.md": b"", "run.py": b""})

    async def two(client: Client) -> list[list[tuple[str, str]]]:
        children = []
        for uri in ("skill://pdf", "skill://pdf/docs"):
            answer = await send_request(client, "resources/directory/read", uri=uri)
            assert answer["resultType"] == "complete"
            children.append([(row["uri"], row["mimeType"]) for row in answer["resources"]])
        return children

    assert run_client(make_folder_server(tmp_path), two) == [
        [
            ("skill://pdf/SKILL.md", "text/markdown"),
            ("skill://pdf/docs", "inode/directory"),
            ("skill://pdf/run.py", "text/x-python"),
        ],
        [
            ("skill://pdf/docs/a.md", "text/markdown"),
            ("skill://pdf/docs/more", "inode/directory"),
        ],
    ]


def test_parent_directory_lists_its_skills(tmp_path: Path) -> None:
    make_skill(tmp_path, "odd", data=make_skill_md("Odd"))
    answer = run_client(
        make_folder_server(tmp_path),
        lambda client: send_request(client, "resources/directory/read", uri="skill://~odd"),
    )
    assert [row["uri"] for row in answer["resources"]] == ["skill://~odd/Odd"]


@pytest.mark.parametrize(
    "uri", ["skill://pdf/SKILL.md", "skill://pdf/nothing", "skill://x", "skill://pdf/", "skill://"]
)
def test_directory_read_rejects_other_uris(tmp_path: Path, uri: str) -> None:
    make_skill(tmp_path, "pdf")
    error = run_client(
        make_folder_server(tmp_path),
        lambda client: read_error(send_request(client, "resources/directory/read", uri=uri)),
    )
    assert error == (INVALID_PARAMS, "not_a_file")


@pytest.mark.parametrize(
    ("method", "uri", "era"),
    [
        ("resources/read", "skill://none/SKILL.md", MODERN),
        ("resources/read", "skill://none/SKILL.md", HANDSHAKE),
        ("resources/read", "skill://pdf/none.md", MODERN),
        ("resources/read", "skill://pdf/none.md", HANDSHAKE),
        ("resources/read", "skill://pdf/../x", MODERN),
        ("resources/read", "skill://pdf", MODERN),
        ("resources/read", "https://x.example/\u202e", HANDSHAKE),
        ("skills/get", "skill://none/SKILL.md", MODERN),
        ("resources/directory/read", "skill://none", MODERN),
    ],
)
def test_unknown_resource_error_contains_the_uri(
    tmp_path: Path, method: str, uri: str, era: str
) -> None:
    make_skill(tmp_path, "pdf")

    result = run_client(
        make_folder_server(tmp_path),
        lambda client: read_error_data(send_request(client, method, uri=uri)),
        era,
    )
    assert isinstance(result, dict)
    assert result["uri"] == uri
    assert result["code"] in {"not_found", "not_a_file", "invalid_path"}


@pytest.mark.parametrize("method", ["skills/list", "skills/get", "resources/directory/read"])
def test_legacy_clients_do_not_have_extension_methods(tmp_path: Path, method: str) -> None:
    make_skill(tmp_path, "pdf")
    uri = "skill://pdf/SKILL.md"
    error = run_client(
        make_folder_server(tmp_path),
        lambda client: read_error(send_request(client, method, uri=uri)),
        HANDSHAKE,
    )
    assert error[0] == METHOD_NOT_FOUND
