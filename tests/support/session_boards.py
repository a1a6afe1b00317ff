"""A session on a running server: made and read by REST, and shown by a browser."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Locator, Page, expect


@dataclass
class SessionBoard:
    """One session of a server."""

    server: str  # its address
    id: str

    @classmethod
    def create(cls, server: str, name: str = "Research", **budgets: int) -> "SessionBoard":
        """A new session."""
        body = {"name": name, **({"budgets": budgets} if budgets else {})}
        return cls(server, request(server, "POST", "/api/v1/sessions", body)["id"])

    @property
    def path(self) -> str:
        """Where its page is."""
        return f"/session/{self.id}"

    def request(self, method: str, path: str, body: object = None, **headers: str) -> Any:  # noqa: ANN401
        """What the server says about it."""
        place = f"/api/v1/sessions/{self.id}{path}"
        return request(self.server, method, place, body, **headers)

    def add(self, text: str, kind: str = "note") -> str:
        """A new block; its id."""
        return str(self.request("POST", "/blocks", {"type": kind, "content": text})["id"])

    def edit(self, block: str, text: str) -> None:
        """Other words for a block, as somebody else would write them."""
        tag = f'"{self.version(block)}"'
        self.request("PATCH", f"/blocks/{block}", {"content": text}, **{"If-Match": tag})

    def move(self, block: str, **position: object) -> None:
        """A block elsewhere, as somebody else would move it."""
        tag = f'"{self.version(block)}"'
        self.request("POST", f"/blocks/{block}/move", position, **{"If-Match": tag})

    def delete(self, block: str) -> None:
        """A block less, as somebody else would delete it."""
        tag = f'"{self.version(block)}"'
        self.request("DELETE", f"/blocks/{block}", None, **{"If-Match": tag})

    def version(self, block: str) -> int:
        """The version of a block."""
        return int(self.request("GET", f"/blocks/{block}")["version"])

    def list_texts(self, zone: str = "WORKING") -> list[str]:
        """What the blocks of a zone say, in order."""
        found = self.request("GET", f"/blocks?zone={zone}")["blocks"]
        return [one["content"] for one in found]


def request(server: str, method: str, path: str, body: object = None, **headers: str) -> Any:  # noqa: ANN401
    """The data of an answer."""
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers}
    with urlopen(Request(server + path, data, sent, method=method)) as answer:  # noqa: S310 - loopback
        return json.load(answer)["data"]


def card(page: Page, title: str) -> Locator:
    """The card of a block."""
    return page.locator(".block").filter(has=page.get_by_role("link", name=title, exact=True))


def zone_titles(page: Page, zone: str = "working") -> Locator:
    """The titles of a zone, from top to bottom."""
    return page.locator(f"#cards-{zone} h3")


def start_drag(page: Page, title: str) -> None:
    """Take hold of a card, and lift it a little."""
    card(page, title).locator(".meta-text").hover()
    page.mouse.down()
    box = card(page, title).first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 40, box["y"] + 12, steps=4)
    expect(page.locator(".cards .is-ghost")).to_have_count(1)


def drag_over(page: Page, target: Locator) -> None:
    """Carry what is held above another card, and wait until it has moved to that card's zone.

    Sortable reads the pointer's position every 50 ms. A card that is dropped earlier stays.
    """
    box = target.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 4, steps=8)
    page.mouse.move(box["x"] + 60, box["y"] + 6, steps=2)
    expect(target.locator("xpath=..").locator(".is-ghost")).to_have_count(1)


def wait_for_moves(page: Page) -> None:
    """Wait until the server knows every move."""
    expect(page.locator("#board")).not_to_have_attribute("aria-busy", "true")
