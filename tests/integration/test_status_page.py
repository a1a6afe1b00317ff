"""The status page of a server: health, usage of skills and settings."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from mcp import Client

from skillhall._internal.agents.usage_stats import DayUsage, SkillUsage
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.storage.usage_log import UsageLog, UsageRecord
from skillhall._internal.web.status_pages import _build_plots, _build_row
from tests.support.account_server import AccountServer, account_settings, run_account_server
from tests.support.mcp_clients import run_http_client
from tests.support.servers import TOKEN
from tests.support.skills import make_skill

NOW = datetime.now(UTC).isoformat(timespec="seconds")


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    folder = tmp_path_factory.mktemp("status")
    make_skill(folder / "work/.agents/skills", "pdf")
    settings = account_settings(folder, SKILLHALL_REVIEW="one", SKILLHALL_BUDGET_STABLE="500")
    log = UsageLog(settings.data_directory)
    log.record(UsageRecord(NOW, "coding", "loaded", ("forms",), 1200))
    with run_account_server(settings) as running:
        yield running


def read_page(hall: AccountServer, path: str = "/status") -> str:
    response = hall.server.request("GET", path, headers=hall.bearer(Role.ADMINISTRATOR))
    assert response.status == 200
    return response.body.decode()


def test_page_shows_health_usage_and_settings(hall: AccountServer) -> None:
    page = read_page(hall)
    for text in ("SQLite", "Other hosts", "1,200", "SKILLHALL_AUDIT_RETENTION", "SKILLHALL_REVIEW"):
        assert text in page
    assert f"<title>{NOW[:10]}: " in page
    assert TOKEN not in page


def test_settings_are_changed_on_the_page_and_by_rest(hall: AccountServer) -> None:
    admin = hall.bearer(Role.ADMINISTRATOR)
    path, form = "/status/settings", {"Content-Type": "application/x-www-form-urlencoded"}

    def post(text: str) -> tuple[int, str]:
        headers = {**admin, **form, "Accept": "text/html"}
        response = hall.server.request("POST", path, text.encode(), headers)
        return response.status, response.body.decode()

    # Only what differs from what the form showed is changed.
    status, _ = post("language=zh&language-was=&budget_total=900&budget_total-was=900")
    assert status == 303
    page = hall.server.request("GET", "/help", headers=hall.bearer(Role.READER)).body.decode()
    assert '<html lang="zh"' in page
    body = {"settings": {"language": None, "budget_total": 12000}}
    data = hall.server.request("PATCH", "/api/v1/settings", body, admin).json["data"]
    rows = {row["name"]: row for row in data["settings"]}
    assert (rows["language"]["value"], rows["budget_total"]["value"]) == (None, 12_000)
    assert rows["budget_total"]["by"].startswith("administrator/")
    session = hall.server.request("POST", "/api/v1/sessions", {"name": "New"}, admin).json["data"]
    assert (session["budgets"]["total"], session["budgets"]["stable"]) == (12_000, 500)
    assert "Set by SKILLHALL_BUDGET_STABLE on this server." in read_page(hall, path)
    status, page = post("bin_retention=0&bin_retention-was=30")
    assert status == 422
    assert "Days to keep deleted skills: must be a number from 1 to 3650." in page
    assert 'value="0"' in page  # what was entered stays
    refused = hall.server.request("PATCH", "/api/v1/settings", body, hall.bearer(Role.REVIEWER))
    assert refused.status == 403


def test_only_administrators_may_read_it(hall: AccountServer) -> None:
    for role in (Role.READER, Role.AUTHOR, Role.REVIEWER):
        response = hall.server.request("GET", "/status", headers=hall.bearer(role))
        assert response.status == 403


def test_loads_reads_and_failures_of_mcp_clients_are_counted(hall: AccountServer) -> None:
    async def call(client: Client) -> Any:  # noqa: ANN401 - JSON
        await client.call_tool("load_skill", {"name": "pdf"})
        await client.call_tool("read_skill_file", {"name": "pdf", "path": "missing.md"})
        await client.call_tool("load_skill", {"name": "no-such-skill"})

    run_http_client(hall.server.port, call, hall.bearer(Role.ADMINISTRATOR))
    page = read_page(hall)
    assert "no-such-skill" not in page
    row = page.split('<th scope="row"><bdi>pdf</bdi></th>')[1].split("</tr>")[0]
    numbers = re.findall(r'<td class="number"[^>]*>([^<]*)</td>', row)
    assert numbers[:4] == ["1", "0", "0", "1"]  # loaded, read, offered, failed


def test_plots_show_loads_tokens_and_failures_of_the_last_thirty_days() -> None:
    days = {
        "2026-01-31": DayUsage(2, 900),
        "2026-01-02": DayUsage(1, 0, 3),
        "2026-01-01": DayUsage(9),
    }
    uses = [SkillUsage("a", days=days), SkillUsage("b", days={"2026-01-31": DayUsage(2)})]
    loads, tokens, failures = _build_plots(uses, date(2026, 1, 31))
    assert len(loads.bars) == 30
    assert loads.bars[0] == ("2026-01-02", 1, 20.0)
    assert loads.bars[-1] == ("2026-01-31", 4, 80.0)
    assert (tokens.total, failures.total, failures.highest) == (900, 3, 3)


def test_line_of_a_skill_has_a_point_for_each_day() -> None:
    row = _build_row(SkillUsage("a", days={"2026-01-31": DayUsage(4)}), date(2026, 1, 31))
    points = row.points.split()
    assert (len(points), points[0], points[-1]) == (30, "0,10", "29,0")


def test_sources_show_their_state_and_storage_its_size(hall: AccountServer) -> None:
    page = read_page(hall)
    sources = page.split('<h2 id="sources">')[1].split("</section>")[0]
    assert "built-in" in sources
    assert "OK" in sources
    assert "Database, history and usage" in page
    assert "30 days" in page
