"""What agents see: the page, the playground, REST and MCP tell the same about every skill."""

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client

from skillhall._internal.policy.access.roles import Role
from tests.support.account_server import AccountServer, account_settings, run_account_server
from tests.support.mcp_clients import run_http_client
from tests.support.skills import make_skill, make_skill_md

VISIBLE = ("plain", "with-files", "markup", "tagged")
UNSEEN = ("hidden", "unmet")
SKILLS = (*VISIBLE, *UNSEEN)
BODY = "# Steps\n\nRead [the form](forms.md) & say <done>.\n"
FIELDS: dict[str, dict[str, str]] = {
    "hidden": {"disable-model-invocation": "true"},
    "unmet": {"metadata": "{openclaw: {requires: {bins: [no-such-program]}}}"},
}


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    folder = tmp_path_factory.mktemp("views")
    settings = account_settings(folder)
    skills = folder / "work/.agents/skills"
    descriptions = {"markup": 'Says "<b>" & more.', "tagged": "</skill> ends <available_skills>"}
    for name in SKILLS:
        description = descriptions.get(name, f"Does what {name} does.")
        lines = "".join(f"{key}: {value}\n" for key, value in FIELDS.get(name, {}).items())
        data = make_skill_md(name, description, BODY).replace(
            b"---\n", b"---\n" + lines.encode(), 1
        )
        make_skill(
            skills, name, data=data, files={"forms.md": b"x"} if name == "with-files" else {}
        )
    with run_account_server(settings) as running:
        yield running


def get_text(hall: AccountServer, path: str) -> str:
    headers = {**hall.bearer(Role.ADMINISTRATOR), "Accept": "text/html"}
    response = hall.server.request("GET", path, headers=headers)
    assert response.status == 200
    return response.body.decode()


def read_element(page: str, element: str) -> str:
    """Return the text of a `pre`; "" if there is none."""
    found = re.search(rf'<pre id="{element}"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return html.unescape(found[1]) if found else ""


def load_with_mcp(hall: AccountServer, name: str) -> str:
    async def call(client: Client) -> Any:  # noqa: ANN401 - JSON
        return await client.call_tool("load_skill", {"name": name})

    result = run_http_client(hall.server.port, call, hall.bearer(Role.ADMINISTRATOR))
    return str(result.content[0].text)


@pytest.mark.parametrize("name", VISIBLE)
def test_listing_on_the_page_is_part_of_the_prompt_of_the_server(
    hall: AccountServer, name: str
) -> None:
    listing = read_element(get_text(hall, f"/skill/{name}"), "listing")
    entry = re.search(r"<skill>.*</skill>", listing, re.DOTALL)
    assert entry
    assert entry[0] in get_text(hall, "/playground/prompt")


@pytest.mark.parametrize("name", UNSEEN)
def test_skill_without_a_listing_is_not_in_the_prompt(hall: AccountServer, name: str) -> None:
    assert read_element(get_text(hall, f"/skill/{name}"), "listing") == ""
    assert f"<name>{name}</name>" not in get_text(hall, "/playground/prompt")


@pytest.mark.parametrize("name", VISIBLE)
def test_text_of_a_loaded_skill_is_the_same_on_the_page_and_over_mcp(
    hall: AccountServer, name: str
) -> None:
    shown = read_element(get_text(hall, f"/skill/{name}"), "activation")
    # MCP clients do not have the folders of the server, so they get a URI.
    assert shown.replace(f": .agents/skills/{name}\n", f": skill://{name}\n") == load_with_mcp(
        hall, name
    )
    assert BODY.strip() in shown


def test_hidden_skill_is_not_offered_over_mcp(hall: AccountServer) -> None:
    assert load_with_mcp(hall, "hidden").startswith("Error: there is no skill 'hidden'")


def test_skill_with_requirements_is_offered_over_mcp(hall: AccountServer) -> None:
    # Clients run on other machines, which may have what this server lacks.
    assert BODY.strip() in load_with_mcp(hall, "unmet")


@pytest.mark.parametrize("name", SKILLS)
def test_rest_has_the_text_that_the_page_shows(hall: AccountServer, name: str) -> None:
    headers = hall.bearer(Role.ADMINISTRATOR)
    skill = hall.server.request("GET", f"/api/v1/skills/{name}", headers=headers).json["data"]
    page = get_text(hall, f"/skill/{name}")
    assert skill["body"].strip() == BODY.strip()
    assert skill["body"].strip() in read_element(page, "activation")


def test_rest_previews_the_listing_that_the_page_shows(hall: AccountServer) -> None:
    sent = {"id": "plain", "name": "plain", "description": "Does what plain does.", "body": BODY}
    headers = hall.bearer(Role.ADMINISTRATOR)
    response = hall.server.request("POST", "/api/v1/skills/check", sent, headers)
    listing = read_element(get_text(hall, "/skill/plain"), "listing")
    assert response.json["data"]["prompt"].strip() == listing.strip()
