"""History and bin of skills in folders without review: recorded, compared and restored."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.review_server import SKILLS, ReviewServer, review_server
from tests.support.skills import make_skill_md


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReviewServer]:
    with review_server(tmp_path, "off") as running:
        yield running


def history(server: ReviewServer, skill: str = "pdf") -> list[tuple[int, str]]:
    data = server.request("reader", "GET", f"{SKILLS}/{skill}/versions").json["data"]
    return [(row["number"], row["author"]) for row in data["versions"]]


def test_changes_are_recorded_with_their_authors(server: ReviewServer) -> None:
    server.write("One.")
    server.write("Two.", person="reviewer")
    assert history(server) == [(2, "reviewer/reviewer"), (1, "author/author")]
    diff = server.request("reader", "GET", f"{SKILLS}/pdf/versions/2/diff?against=1").json["data"]
    assert [change["path"] for change in diff["changes"]] == ["SKILL.md"]


def test_edit_by_hand_is_recorded_before_the_next_change(server: ReviewServer) -> None:
    server.write("One.")
    path = server.folder / "run/.agents/skills/pdf/SKILL.md"
    path.write_bytes(make_skill_md("pdf", "About two", "Two."))
    server.write("Three.")
    assert history(server) == [(3, "author/author"), (2, ""), (1, "author/author")]


def test_restored_version_is_a_new_version(server: ReviewServer) -> None:
    server.write("One.")
    server.write("Two.")
    response = server.request("author", "POST", f"{SKILLS}/pdf/versions/1/restore")
    assert response.status == 200, response.body
    assert response.json["data"]["number"] == 3
    assert server.body() == "One."
    assert server.request("reader", "POST", f"{SKILLS}/pdf/versions/1/restore").status == 403


def test_deleted_skill_is_restored_from_the_bin(server: ReviewServer) -> None:
    server.write("One.")
    server.write("Two.")
    assert server.request("author", "DELETE", f"{SKILLS}/pdf").status == 200
    assert server.request("reader", "GET", f"{SKILLS}/pdf@1").status == 404
    [row] = server.request("author", "GET", "/api/v1/bin").json["data"]["skills"]
    assert (row["id"], row["version"], row["deletedBy"]) == ("pdf", 2, "author/author")
    response = server.request("author", "POST", "/api/v1/bin/pdf/restore")
    assert response.status == 200, response.body
    assert server.body() == "Two."
    assert server.request("author", "GET", "/api/v1/bin").json["data"]["skills"] == []


def test_permanently_deleted_skill_is_in_no_version(server: ReviewServer) -> None:
    server.write("A secret.")
    server.request("author", "DELETE", f"{SKILLS}/pdf")
    assert server.request("reader", "DELETE", "/api/v1/bin/pdf").status == 403
    assert server.request("author", "DELETE", "/api/v1/bin/pdf").status == 200
    assert server.request("author", "POST", "/api/v1/bin/pdf/restore").status == 404
    database = next((server.folder / "data").glob("skillhall.db"))
    assert b"A secret." not in database.read_bytes()
