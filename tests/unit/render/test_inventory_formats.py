"""Inventories as CSV and CycloneDX."""

import csv
import io
import json

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from skillhall._internal.policy.trust.inventory_item import InventoryItem
from skillhall._internal.render.inventory_formats import render_csv, render_cyclonedx

AT = "2026-11-18T09:00:00Z"
DIGEST = f"sha256:{'1' * 64}"
FULL = InventoryItem("pdf", DIGEST, "github.com/acme/skills", "a" * 40, "acme-ci", "approved", "L2")
ITEMS = [InventoryItem('größe, "x"', ""), FULL, FULL._replace(state="changed")]


def render(items: list[InventoryItem]) -> str:
    return render_cyclonedx(items, "1.2.3", AT)


def test_cyclonedx_passes_the_strict_validator() -> None:
    for items in (ITEMS, []):
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(render(items)) is None


def test_cyclonedx_has_all_fields_of_a_skill() -> None:
    [component] = json.loads(render([FULL]))["components"]
    assert (component["name"], component["version"]) == ("pdf", "a" * 40)
    assert component["externalReferences"] == [
        {"type": "distribution", "url": "https://github.com/acme/skills"}
    ]
    properties = {one["name"]: one["value"] for one in component["properties"]}
    fields = FULL._asdict()
    del fields["name"]
    assert properties == {f"skillhall:{field}": value for field, value in fields.items()}


def test_same_inventory_gives_the_same_bytes_and_another_one_another_number() -> None:
    assert render(ITEMS) == render(ITEMS)
    numbers = {json.loads(render(items))["serialNumber"] for items in (ITEMS, [FULL], [])}
    assert len(numbers) == 3


def test_csv_has_the_rows_of_the_inventory() -> None:
    rows = [*csv.DictReader(io.StringIO(render_csv(ITEMS)))]
    assert rows == [item._asdict() for item in ITEMS]


def test_csv_cell_is_never_a_formula() -> None:
    [_, row] = csv.reader(io.StringIO(render_csv([InventoryItem("=HYPERLINK(1)", "")])))
    assert row[0] == "'=HYPERLINK(1)"
