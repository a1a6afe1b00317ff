"""Inventories as CSV and as CycloneDX 1.6, a format for lists of software components."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from skillhall._internal.policy.trust.inventory_item import InventoryItem
from skillhall._internal.render.csv_table import render_csv_table

if TYPE_CHECKING:
    from collections.abc import Sequence

CYCLONEDX_VERSION = "1.6"
_PROPERTIES = ("digest", "source", "commit", "signer", "state", "risk")


def render_csv(items: Sequence[InventoryItem]) -> str:
    """Render an inventory as CSV, with a heading."""
    return render_csv_table([InventoryItem._fields, *items])


def render_cyclonedx(items: Sequence[InventoryItem], version: str, at: str) -> str:
    """Render an inventory as CycloneDX; `version` is that of Skillhall, `at` the time."""
    components = [_build_component(item) for item in items]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": CYCLONEDX_VERSION,
        "serialNumber": _build_serial_number(repr((items, version, at))),
        "version": 1,
        "metadata": {
            "timestamp": at,
            "tools": {
                "components": [{"type": "application", "name": "skillhall", "version": version}]
            },
        },
        "components": components,
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _build_component(item: InventoryItem) -> dict[str, object]:
    component: dict[str, object] = {
        "type": "data",
        "bom-ref": _build_reference(item),
        "name": item.name,
    }
    if item.commit:
        component["version"] = item.commit
    if item.source:
        component["externalReferences"] = [
            {"type": "distribution", "url": f"https://{item.source}"}
        ]
    component["properties"] = [
        {"name": f"skillhall:{field}", "value": value}
        for field in _PROPERTIES
        if (value := getattr(item, field))
    ]
    return component


def _build_reference(item: InventoryItem) -> str:
    """Return an id that no other component of the document has."""
    return f"skill:{hashlib.sha256(repr(item).encode()).hexdigest()[:32]}"


def _build_serial_number(text: str) -> str:
    """Return a UUID of version 8, computed from the content of the document."""
    digits = hashlib.sha256(text.encode()).hexdigest()
    uuid = f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"
    return f"urn:uuid:{uuid}"
