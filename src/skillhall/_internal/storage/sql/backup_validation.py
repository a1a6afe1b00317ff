"""Validation of backup rows. A backup may be forged, and SQLite accepts any type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from skillhall._internal.skill.bundle import RelativePath, sha256_hex
from skillhall._internal.storage.records import Zone
from skillhall.errors import BackupRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Column, Table

    BackupRow: TypeAlias = Mapping[str, object]

_MAX_INTEGER = 2**63 - 1  # of BIGINT
_ZONES = frozenset(Zone)


def validate_row(table: Table, row: BackupRow) -> None:
    """Check a row. Raises: BackupRejected, UnsafePath if no server could have written it."""
    for name, value in row.items():
        if not _has_column_type(table.c[name], value):
            raise BackupRejected(f"{table.name}.{name} has a value of the wrong type")
    for check in _CHECKS.get(table.name, ()):
        if not check(row):
            raise BackupRejected(f"a row of {table.name} is invalid")


def _has_column_type(column: Column[object], value: object) -> bool:
    if value is None:
        return bool(column.nullable)
    # The exact type: True is an int, too.
    if type(value) is not column.type.python_type:
        return False
    if isinstance(value, str):
        return "\0" not in value
    return not isinstance(value, int) or abs(value) <= _MAX_INTEGER


def _has_valid_zone(row: BackupRow) -> bool:
    return row.get("zone") in _ZONES


def _has_matching_digest(row: BackupRow) -> bool:
    data = row.get("data")
    if not isinstance(data, bytes):
        return False
    return row.get("size") == len(data) and row.get("digest") == sha256_hex(data)


def _has_valid_path(row: BackupRow) -> bool:
    return bool(RelativePath.parse(str(row.get("path"))))


def _has_valid_id(row: BackupRow) -> bool:
    return len(RelativePath.parse(str(row.get("id"))).parts) == 1


def _has_json_data(row: BackupRow) -> bool:
    try:
        return isinstance(json.loads(str(row.get("data"))), dict)
    except (ValueError, RecursionError):
        return False


_CHECKS: Mapping[str, tuple[Callable[[BackupRow], bool], ...]] = {
    "blocks": (_has_valid_zone,),
    "template_blocks": (_has_valid_zone,),
    "snapshot_blocks": (_has_valid_zone,),
    "blobs": (_has_matching_digest,),
    "shared_skills": (_has_valid_id,),
    "shared_skill_files": (_has_valid_path,),
    "upload_files": (_has_valid_path,),
    "events": (_has_json_data,),
}
