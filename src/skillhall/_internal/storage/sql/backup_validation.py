"""Validation of backup rows. A backup may be forged, and SQLite accepts any type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillhall._internal.policy.access.roles import Role
from skillhall._internal.policy.trust.version_states import VersionState, VersionVerb
from skillhall._internal.skill.bundle import RelativePath, sha256_hex
from skillhall._internal.storage.records import Zone
from skillhall.errors import BackupRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Column, Table

_MAX_INTEGER = 2**63 - 1  # of BIGINT
_MAX_MODE = 0o777
_ZONES = frozenset(Zone)
_STATES = frozenset(VersionState)
_DECISIONS = frozenset(VersionVerb)
_ROLES = frozenset(Role)


def validate_row(table: Table, row: Mapping[str, object]) -> None:
    """Check that a server could have written the row.

    Raises: BackupRejected, UnsafePath.
    """
    for column in table.columns:  # by name: keys are the names of fields
        name, value = column.name, row[column.name]
        if not _has_column_type(column, value):
            raise BackupRejected(f"{table.name}.{name} has a value of the wrong type")
    if not _has_valid_values(table.name, row):
        raise BackupRejected(f"a row of {table.name} is invalid")


def _has_column_type(column: Column[Any], value: object) -> bool:
    if value is None:
        return bool(column.nullable)
    # `isinstance` would accept True as an int.
    if type(value) is not column.type.python_type:
        return False
    if isinstance(value, str):
        return "\0" not in value
    return not isinstance(value, int) or abs(value) <= _MAX_INTEGER


def _has_valid_values(table: str, row: Mapping[str, object]) -> bool:
    for column, values in (("zone", _ZONES), ("role", _ROLES)):
        if column in row:
            return row[column] in values
    if "path" in row:
        mode = row.get("mode", 0)
        path = RelativePath.parse(str(row["path"]))
        return path.text == row["path"] and isinstance(mode, int) and 0 <= mode <= _MAX_MODE
    check = _CHECKS.get(table)
    return check is None or check(row)


def _is_json_object(value: object) -> bool:
    try:
        return isinstance(json.loads(str(value)), dict)
    except (ValueError, RecursionError):
        return False


def _is_folder_name(value: object) -> bool:
    return len(RelativePath.parse(str(value)).parts) == 1


def _is_valid_audit(row: Mapping[str, object]) -> bool:
    number = row["id"]
    return isinstance(number, int) and number > 0 and _is_json_object(row["detail"])


def _is_valid_blob(row: Mapping[str, object]) -> bool:
    data = row["data"]
    if not isinstance(data, bytes):
        return False
    return (len(data), sha256_hex(data)) == (row["size"], row["digest"])


# The id of a skill is the name of a folder.
_CHECKS: Mapping[str, Callable[[Mapping[str, object]], bool]] = {
    "audit": _is_valid_audit,
    "blobs": _is_valid_blob,
    "events": lambda row: _is_json_object(row["data"]),
    "shared_skills": lambda row: _is_folder_name(row["id"]),
    "skill_versions": lambda row: _is_folder_name(row["skill_id"]) and row["state"] in _STATES,
    "version_reviews": lambda row: row["decision"] in _DECISIONS,
}
