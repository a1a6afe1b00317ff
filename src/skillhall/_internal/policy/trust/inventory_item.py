"""Inventory: skills of a machine, without paths, contents, usage and accounts."""

from __future__ import annotations

from typing import NamedTuple


class InventoryItem(NamedTuple):
    """A skill on a machine."""

    name: str
    digest: str  # "" if its files cannot be read
    source: str = ""  # such as `github.com/acme/skills`; "" if it is local or unknown
    commit: str = ""
    signer: str = ""  # name of a known signer
    state: str = ""  # approved, new, changed or blocked
    risk: str = ""  # L0 to L3


class InventoryReport(NamedTuple):
    """The skills that a machine reported, and who sent the report."""

    label: str
    by: str
    at: str
    items: tuple[InventoryItem, ...] = ()
