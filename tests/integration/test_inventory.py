"""Inventories: the same rows in every format, without paths, and on a server."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.policy.trust.inventory_item import InventoryItem
from skillhall._internal.storage.inventories import KEPT_FOR, Inventories
from skillhall._internal.storage.sql.engine import Database, build_sqlite_url
from skillhall._internal.storage.sql.inventory_rows import SqlInventoryTable
from skillhall.errors import Conflict, FieldRefused
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.project_cli import Cli, make_cli
from tests.support.replicas import wait_until
from tests.support.servers import TOKEN
from tests.support.skills import make_skill, make_skill_md
from tests.support.trust_server import TrustServer, open_tokens, run_trust_server

DIGEST = f"sha256:{'1' * 64}"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return make_cli(tmp_path, monkeypatch, capsys)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TrustServer]:
    with run_trust_server(tmp_path / "server", token=TOKEN) as running:
        yield running


def fill_machine(cli: Cli, folder: Path) -> None:
    """Add a skill from a folder, write another, and put a third into the home folder."""
    make_skill(folder / "private", "pdf", data=make_skill_md("pdf"), files={"run.sh": b"ls\n"})
    assert cli("add", str(folder / "private" / "pdf"), "--yes").code == 0
    make_skill(Path(".agents/skills"), "new", data=make_skill_md("new"))
    make_skill(Path.home() / ".agents/skills", "own", data=make_skill_md("own"))


def test_formats_have_the_same_rows_and_no_path_or_account(cli: Cli, tmp_path: Path) -> None:
    fill_machine(cli, tmp_path)
    rows = cli("inventory", "--json").data["skills"]
    assert [(row["name"], row["state"], row["risk"]) for row in rows] == [
        ("new", "new", "L0"),
        ("own", "approved", "L0"),
        ("pdf", "approved", "L1"),
    ]
    text = cli("inventory", "--format", "csv").out
    assert [*csv.DictReader(io.StringIO(text))] == rows
    document = cli("inventory", "--format", "cyclonedx").out
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    components = json.loads(document)["components"]
    assert [one["name"] for one in components] == [row["name"] for row in rows]
    for output in (json.dumps(rows), text, document):
        for secret in (str(tmp_path), "private", str(Path.home()), f"/{Path.home().name}"):
            assert secret not in output


def test_inventory_is_sent_only_on_request_and_shows_where_a_digest_is(
    cli: Cli, server: TrustServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_machine(cli, tmp_path)
    path = "/api/v1/inventories"
    assert server.http.request("GET", path).json["data"]["machines"] == []
    with open_tokens(server.settings) as tokens:
        created = tokens.create("laptop", scopes=[AccessScope.REPORT], actor=ACTOR)
    monkeypatch.setenv("SKILLHALL_SERVER_TOKEN", created.text)
    headers = {"Authorization": f"Bearer {created.text}"}
    wait_until(lambda: server.http.request("GET", path, headers=headers).status == 403)
    for label in ("laptop-7", "ci"):
        result = cli("inventory", "send", server.url, "--as", label)
        assert (result.code, f"sent 3 skills as {label}" in result.err) == (0, True), result.err
    data = server.http.request("GET", f"{path}?q=pdf").json["data"]
    assert [one["label"] for one in data["machines"]] == ["ci", "laptop-7"]
    [row] = data["skills"]
    assert (row["state"], row["names"]) == ("unknown", ["pdf"])
    assert [one["label"] for one in row["machines"]] == ["ci", "laptop-7"]
    revocation = {"digest": row["digest"], "reason": "bad"}
    assert server.http.request("POST", "/api/v1/revocations", revocation).status == 201
    [row] = server.http.request("GET", f"{path}?state=revoked").json["data"]["skills"]
    assert row["revoked"]["reason"] == "bad"
    assert server.http.request("GET", path, headers=headers).status == 403
    assert server.http.request("POST", "/api/v1/revocations", revocation, headers).status == 403


@pytest.fixture
def now() -> list[datetime]:
    return [datetime(2026, 11, 18, tzinfo=UTC)]


@pytest.fixture
def inventories(tmp_path: Path, now: list[datetime]) -> Iterator[Inventories]:
    with closing(Database(build_sqlite_url(str(tmp_path / "server.db")), TIMESTAMP)) as database:
        yield Inventories(SqlInventoryTable(database), lambda: now[0])


def test_last_report_of_a_label_is_stored_for_90_days(
    inventories: Inventories, now: list[datetime]
) -> None:
    actor = Actor("dev1", "ci")
    inventories.put(actor, "a", [InventoryItem("pdf", DIGEST), InventoryItem("csv", "")])
    inventories.put(actor, "a", [InventoryItem("pdf", DIGEST)])
    [report] = inventories.list()
    assert (report.by, report.items) == ("dev1/ci", (InventoryItem("pdf", DIGEST),))
    now[0] += KEPT_FOR + timedelta(seconds=1)
    assert inventories.list() == []
    inventories.put(actor, "b", [])
    assert [one.label for one in inventories.list()] == ["b"]


def test_label_belongs_to_its_user(inventories: Inventories) -> None:
    inventories.put(Actor("dev1", "ci"), "a", [])
    inventories.put(Actor("dev1", "laptop"), "a", [])
    with pytest.raises(Conflict):
        inventories.put(Actor("dev2"), "a", [])


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (InventoryItem("", DIGEST), "name"),
        (InventoryItem("pdf", "sha256:1"), "digest"),
        (InventoryItem("pdf", DIGEST, "~/skills"), "source"),
        (InventoryItem("pdf", DIGEST, commit="HEAD"), "commit"),
        (InventoryItem("pdf", DIGEST, state="fine"), "state"),
        (InventoryItem("pdf", DIGEST, risk="L9"), "risk"),
        (InventoryItem("p\ndf", DIGEST), "name"),
    ],
)
def test_report_with_other_values_is_rejected(
    inventories: Inventories, item: InventoryItem, field: str
) -> None:
    with pytest.raises(FieldRefused, match=rf"skills\[0\]\.{field}"):
        inventories.put(Actor(), "a", [item])


def test_checklist_is_answered_over_rest_and_on_the_command_line(
    cli: Cli, server: TrustServer, tmp_path: Path
) -> None:
    fill_machine(cli, tmp_path)
    assert cli("checklist", "--json").data["counts"]["yes"] == 34
    rows = {row["id"]: row for row in cli("checklist", "new", "--json").data["rows"]}
    assert rows["9.3"]["problems"] == [{"kind": "fact", "name": "approved"}]
    assert rows["2.2"]["answer"] == "no"
    assert cli("checklist", "pdf", "--json").data["rows"][7]["answer"] == "yes"
    make_skill(server.skills, "key", data=make_skill_md("key", body="AKIAIOSFODNN7EXAMPLA\n"))
    data = server.http.request("GET", "/api/v1/checklist").json["data"]
    assert data["counts"]["in part"] == 13
    answers = server.http.request("GET", "/api/v1/skills/key/checklist").json["data"]["rows"]
    assert len(answers) == 64
