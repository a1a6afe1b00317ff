"""Pages for administrators: health, usage of skills and settings of the server."""

import platform
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from starlette.responses import Response

from skillhall._internal.agents.usage_stats import SkillUsage, count_usage
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.storage_sizes import measure_storage
from skillhall._internal.web.page_request import PageRequest, on_error
from skillhall._internal.web.rendering import form_status, render
from skillhall._internal.web.source_pages import SourceRow
from skillhall._internal.wiring.database import RuntimeSettings
from skillhall._version import VERSION
from skillhall.errors import FieldRefused

STATUS_PATH = "/status"
SETTINGS_PATH = f"{STATUS_PATH}/settings"
_DAYS = 30
_MAX_ROWS = 100
_CHART_HEIGHT = 80  # units of the plot


class DayBar(NamedTuple):
    """A day in a plot."""

    date: str
    amount: int
    height: float


class UsagePlot(NamedTuple):
    """Loads, tokens or failures of the last days."""

    name: str  # text key below `status_plot`
    bars: Sequence[DayBar]

    @property
    def total(self) -> int:
        """Sum of all days."""
        return sum(bar.amount for bar in self.bars)

    @property
    def highest(self) -> int:
        """Count of the day with the most."""
        return max(bar.amount for bar in self.bars)


class UsageRow(NamedTuple):
    """The usage of one skill, with its loads of the last days as points of a line."""

    use: SkillUsage
    points: str


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
    today = datetime.now(UTC).date()
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
        plots=[*_build_plots(uses, today)],
        chart_height=_CHART_HEIGHT,
        rows=[_build_row(use, today) for use in uses[:_MAX_ROWS]],
        sources=[SourceRow.from_status(status) for status in sources],
        own_skipped=len(site.collection.snapshot().skipped),
        storage=measure_storage(settings),
        examined=site.collection.facts.progress,  # None if all skills are examined
        total=len(uses),
        settings=[*_list_settings(settings)],
        changeable=site.runtime.list() if site.runtime else (),
    )


def show_settings(request: PageRequest) -> Response:
    """Show the settings that can be changed while the server runs."""
    rows = _get_runtime(request).list()
    fields = request.fields
    return render(
        request,
        "server_settings.html",
        rows=rows,
        entered={row.setting.name: fields.get(row.setting.name, row.value) for row in rows},
        status=form_status(request.error),
    )


@on_error(show_settings)
def save_settings(request: PageRequest) -> Response:
    """Save the settings that differ from those that the form showed."""
    runtime = _get_runtime(request)
    names = [row.setting.name for row in runtime.list() if not row.is_fixed]
    values = {name: request.field(name) for name in names}
    changed = {name: text for name, text in values.items() if text != request.field(f"{name}-was")}
    try:
        runtime.change(request.actor, changed)
    except FieldRefused as error:
        label = request.translations(f"runtime_setting.{error.field}")
        raise FieldRefused(label, error.problem) from None
    return request.redirect(SETTINGS_PATH, "settings_saved", "")


def _get_runtime(request: PageRequest) -> RuntimeSettings:
    if request.site.runtime is None:
        raise HttpError("not_found", "settings are not stored on this server")
    return request.site.runtime


def _name_database(settings: Settings) -> str:
    url = "" if settings.database_url is None else settings.database_url.reveal()
    return "PostgreSQL" if url.startswith("postgres") else "SQLite"


def _measure_disk(folder: str) -> DiskSpace | None:
    """Return the space on the disk of a folder; None if it cannot be read."""
    with suppress(OSError, ValueError):
        space = shutil.disk_usage(folder)
        return DiskSpace(space.free, space.total)
    return None


def _list_days(today: date) -> list[str]:
    """Return the dates of the last days, the oldest first."""
    return [(today - timedelta(days=_DAYS - 1 - number)).isoformat() for number in range(_DAYS)]


def _build_plots(uses: Iterable[SkillUsage], today: date) -> Iterator[UsagePlot]:
    """Yield plots of the last days."""
    days = _list_days(today)
    counts = {name: dict.fromkeys(days, 0) for name in ("loads", "tokens", "failures")}
    for use in uses:
        for day in use.days.keys() & set(days):
            for name, count in counts.items():
                count[day] += getattr(use.days[day], name)
    for name, count in counts.items():
        highest = max(count.values()) or 1
        bars = [DayBar(day, one, _CHART_HEIGHT * one / highest) for day, one in count.items()]
        yield UsagePlot(name, bars)


def _build_row(use: SkillUsage, today: date) -> UsageRow:
    """Return the row of a skill; the line is 30 wide and 10 high."""
    loads = [use.days[day].loads if day in use.days else 0 for day in _list_days(today)]
    highest = max(loads) or 1
    points = (f"{x},{10 - 10 * count / highest:g}" for x, count in enumerate(loads))
    return UsageRow(use, " ".join(points))


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
