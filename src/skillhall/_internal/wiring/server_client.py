"""Requests to another Skillhall server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.sources.server_api.rest_client import ServerConnection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.trust.inventory_item import InventoryItem
    from skillhall._internal.settings import Settings

_INVENTORIES = "/api/v1/inventories"


def post_inventory(
    server: str, label: str, items: Sequence[InventoryItem], settings: Settings
) -> None:
    """Send the inventory of this machine. Raises: as `ServerConnection.post`."""
    connection = ServerConnection.from_url(server, settings.client.token, proxies=settings.proxies)
    body = {"label": label, "skills": [item._asdict() for item in items]}
    connection.post(_INVENTORIES, {}, body)
