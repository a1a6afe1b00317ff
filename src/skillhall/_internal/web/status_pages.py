"""The page with the status of the server: health, usage of skills, and settings."""

import platform
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from starlette.responses import Response

from skillhall._internal.agents.usage_stats import SkillUsage, count_usage
from skillhall._internal.settings import Settings
from skillhall._internal.web.page_request import PageRequest
from skillhall._internal.web.rendering import render
from skillhall._version import VERSION

STATUS_PATH = "/status"
_DAYS = 30
_MAX_ROWS = 100
_CHART_HEIGHT = 80  # units of the plot


class DayBar(NamedTuple):
    """Loads of skills on one day, as a bar of the plot."""

    date: str
    loads: int
    height: float


class DiskSpace(NamedTuple):
    """Space on the disk of the data folder, in bytes."""

    free: int
    total: int


class SettingRow(NamedTuple):
    """A setting in effect."""

    name: str  # text key below `status_setting`
    variable: str
    value: str


def show_status(request: PageRequest) -> Response:
    """Show the status of this server."""
    site = request.site
    settings, sources = site.settings, site.prompt_service.status()
    uses = count_usage(settings) if settings.log_usage else []
    database_problem = site.check_database() if site.check_database else ""
    return render(
        request,
        "status.html",
        version=VERSION,
        runtime=f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        started=site.started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        skill_count=len(site.collection.snapshot().skills),
        database=_name_database(settings),
        database_problem=database_problem,
        disk=_measure_disk(settings.data_directory),
        audit=None if site.audit is None else not site.audit.is_broken,
        embedding=None if site.embedding is None else site.embedding.status,
        source_count=len(sources),
        stale_count=sum(one.stale is not None for one in sources),
        skipped_count=sum(len(one.skipped) for one in sources),
        pools=[*site.pools.status(), site.conversations.status],
        is_usage_logged=settings.log_usage,
        bars=_build_bars(uses, datetime.now(UTC).date()),
        chart_height=_CHART_HEIGHT,
        rows=uses[:_MAX_ROWS],
        total=len(uses),
        settings=[*_list_settings(settings)],
    )


def _name_database(settings: Settings) -> str:
    url = "" if settings.database_url is None else settings.database_url.reveal()
    return "PostgreSQL" if url.startswith("postgres") else "SQLite"


def _measure_disk(folder: str) -> DiskSpace | None:
    """Return the space on the disk of a folder; None if it cannot be read."""
    with suppress(OSError, ValueError):
        space = shutil.disk_usage(folder)
        return DiskSpace(space.free, space.total)
    return None


def _build_bars(uses: Iterable[SkillUsage], today: date) -> Sequence[DayBar]:
    """Return a bar for each of the last days, the oldest first."""
    days = [(today - timedelta(days=_DAYS - 1 - number)).isoformat() for number in range(_DAYS)]
    loads = dict.fromkeys(days, 0)
    for use in uses:
        for day, count in use.loads_by_day.items():
            if day in loads:
                loads[day] += count
    highest = max(loads.values()) or 1
    return [DayBar(day, count, _CHART_HEIGHT * count / highest) for day, count in loads.items()]


def _list_settings(settings: Settings) -> Iterator[SettingRow]:
    """Yield the settings that administrators need most, without secrets."""
    server = settings.server
    yield SettingRow("public_url", "SKILLHALL_PUBLIC_URL", server.public_url)
    yield SettingRow("review", "SKILLHALL_REVIEW", server.review or "off")
    yield SettingRow("audit_retention", "SKILLHALL_AUDIT_RETENTION", server.audit_retention)
    yield SettingRow("usage_log", "SKILLHALL_USAGE_LOG", "on" if settings.log_usage else "off")
    yield SettingRow("request_timeout", "SKILLHALL_REQUEST_TIMEOUT", server.request_timeout)
    yield SettingRow("max_fetches", "SKILLHALL_MAX_FETCHES", server.max_fetches)
    yield SettingRow("max_streams", "SKILLHALL_MAX_STREAMS", server.max_streams)
    yield SettingRow("mcp_sessions", "SKILLHALL_MCP_MAX_SESSIONS", server.mcp_max_sessions)
    yield SettingRow("folder_scan", "SKILLHALL_FOLDER_SCAN", "on" if server.folder_scan else "off")
    yield SettingRow("embeddings", "SKILLHALL_EMBEDDINGS_MODEL", settings.embeddings.model)
