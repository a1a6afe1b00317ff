"""The values of a workspace, for everybody who shows them."""

from __future__ import annotations

from skillhall._internal.storage.records import Block as Block  # noqa: PLC0414 - part of this module
from skillhall._internal.storage.records import Budgets as Budgets  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import Content as Content  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import Event as Event  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import Session as Session  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import SkillOrigin as SkillOrigin  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import Snapshot as Snapshot  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import Template as Template  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import Zone as Zone  # noqa: PLC0414 - the same
from skillhall._internal.storage.records import ZoneSize as ZoneSize  # noqa: PLC0414 - the same
