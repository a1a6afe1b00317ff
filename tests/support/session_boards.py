"""Sessions on a running server, changed by REST and shown in a browser."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Locator, Page, expect


@dataclass
class SessionBoard:
    """A session of a server."""

    server: str  # URL
    id: str
    token: str = ""

    @classmethod
    def create(
        cls, server: str, name: str = "Research", *, token: str = "", **budgets: int
    ) -> "SessionBoard":
        """Create a session."""
        body = {"name": name, **({"budgets": budgets} if budgets else {})}
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        return cls(server, request(server, "POST", "/api/v1/sessions", body, **sent)["id"], token)

    @property
    def path(self) -> str:
        """Return the path of the session's page."""
        return f"/session/{self.id}"

    def request(self, method: str, path: str, body: object = None, **headers: str) -> Any:  # noqa: ANN401
        """Send a request below the session's path and return the data."""
        full_path = f"/api/v1/sessions/{self.id}{path}"
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return request(self.server, method, full_path, body, **headers)

    def add(self, text: str, kind: str = "note", **fields: str) -> str:
        """Add a block and return its id."""
        body = {"type": kind, "content": text, **fields}
        return str(self.request("POST", "/blocks", body)["id"])

    def edit(self, block: str, text: str) -> None:
        """Change a block, as another user would."""
        tag = f'"{self.version(block)}"'
        self.request("PATCH", f"/blocks/{block}", {"content": text}, **{"If-Match": tag})

    def move(self, block: str, **position: object) -> None:
        """Move a block, as another user would."""
        tag = f'"{self.version(block)}"'
        self.request("POST", f"/blocks/{block}/move", position, **{"If-Match": tag})

    def delete(self, block: str) -> None:
        """Delete a block, as another user would."""
        tag = f'"{self.version(block)}"'
        self.request("DELETE", f"/blocks/{block}", None, **{"If-Match": tag})

    def version(self, block: str) -> int:
        """Return the version of a block."""
        return int(self.request("GET", f"/blocks/{block}")["version"])

    def list_texts(self, zone: str = "WORKING") -> list[str]:
        """Return the contents of a zone's blocks, in order."""
        blocks = self.request("GET", f"/blocks?zone={zone}")["blocks"]
        return [block["content"] for block in blocks]


def request(server: str, method: str, path: str, body: object = None, **headers: str) -> Any:  # noqa: ANN401
    """Send a request and return the data of the response."""
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers}
    with urlopen(Request(server + path, data, sent, method=method)) as response:  # noqa: S310 - loopback
        return json.load(response)["data"]


def card(page: Page, title: str) -> Locator:
    """Return the card of a block."""
    return page.locator(".block").filter(has=page.get_by_role("link", name=title, exact=True))


def zone_titles(page: Page, zone: str = "working") -> Locator:
    """Return the titles of a zone's cards, from top to bottom."""
    return page.locator(f"#cards-{zone} h3")


def start_drag(page: Page, title: str) -> None:
    """Press the mouse on a card and move it a little."""
    card(page, title).locator(".meta-text").hover()
    page.mouse.down()
    box = card(page, title).first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 40, box["y"] + 12, steps=4)
    expect(page.locator(".cards .is-ghost")).to_have_count(1)


def drag_over(page: Page, target: Locator) -> None:
    """Drag the card over another one and wait until it is in that card's zone.

    Sortable reads the pointer position every 50 ms. A card that is dropped earlier does not move.
    """
    box = target.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 4, steps=8)
    page.mouse.move(box["x"] + 60, box["y"] + 6, steps=2)
    expect(target.locator("xpath=..").locator(".is-ghost")).to_have_count(1)


def wait_for_moves(page: Page) -> None:
    """Wait until the server has saved every move."""
    expect(page.locator("#board")).not_to_have_attribute("aria-busy", "true")
