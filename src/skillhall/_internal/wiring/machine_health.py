"""Checks of this machine and project: whether Skillhall can work here, and what to do if not."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from skillhall._internal.agents.config.agent_config import find_config, read_config
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.verify import verify
from skillhall._internal.net.connection import NetworkSettings
from skillhall._internal.project_checks.check_config import read_check_config
from skillhall._internal.settings import ClientSettings, Settings, is_present
from skillhall._internal.sources.git.process import is_git_available
from skillhall._internal.sources.server_api.rest_client import ServerConnection, ServerTimeouts
from skillhall._internal.wiring.installation import Installation, inspect_installation
from skillhall.errors import LockNotFound, NotAuthenticated, SkillhallError, SourceUnavailable

_SHORT = NetworkSettings(total=5, idle=5)


class Health(StrEnum):
    """The result of a check. Only a problem makes the command fail."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of one check, and its cause if something should be done about it."""

    subject: str
    health: Health
    message: str
    cause: str = ""  # the key of the hint that a surface shows
    facts: Mapping[str, str] = field(default_factory=dict)  # for the hint
    error: Exception | None = None  # which has its own hint


def examine_machine(settings: Settings) -> Iterator[Diagnosis]:
    """Yield the results of all checks. One that fails unexpectedly is a problem itself."""
    installation = inspect_installation()
    checks: dict[str, Callable[[], Iterator[Diagnosis]]] = {
        "python": partial(_check_python, installation),
        "git": partial(_check_git, installation),
        "sqlite": partial(_check_sqlite, installation),
        "extras": partial(_check_extras, installation),
        "folders": partial(_check_folders, settings),
        "config": partial(_check_config, settings),
        "locks": partial(_check_locks, settings),
        "server": partial(_check_server, settings),
        "model": partial(_check_model, settings),
    }
    for subject, check in checks.items():
        try:
            yield from check()
        except (SkillhallError, OSError) as error:
            message = str(error)
            yield Diagnosis(subject=subject, health=Health.PROBLEM, message=message, error=error)


def _check_python(installation: Installation) -> Iterator[Diagnosis]:
    message = f"{installation.implementation} {installation.python} on {installation.platform}"
    yield Diagnosis(subject="python", health=Health.OK, message=message)
    if sys.getfilesystemencoding() != "utf-8":
        yield Diagnosis(
            subject="python",
            health=Health.WARNING,
            message=f"file names are read as {sys.getfilesystemencoding()}, not as UTF-8",
            cause="encoding",
        )


def _check_git(installation: Installation) -> Iterator[Diagnosis]:
    if is_git_available():
        message = f"git {installation.git}"
        yield Diagnosis(subject="git", health=Health.OK, message=message)
        return
    found = "git is not installed" if installation.git is None else f"git {installation.git} is old"
    yield Diagnosis(
        subject="git",
        health=Health.WARNING,
        message=f"{found}; only skills on GitHub can be added, through its API",
        cause="git",
    )


def _check_sqlite(installation: Installation) -> Iterator[Diagnosis]:
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("CREATE VIRTUAL TABLE search USING fts5(text)")
        except sqlite3.OperationalError:
            yield Diagnosis(
                subject="sqlite",
                health=Health.PROBLEM,
                message=f"SQLite {installation.sqlite} has no full-text search",
                cause="sqlite",
            )
            return
    message = f"SQLite {installation.sqlite} with full-text search"
    yield Diagnosis(subject="sqlite", health=Health.OK, message=message)


def _check_extras(installation: Installation) -> Iterator[Diagnosis]:
    installed = ", ".join(installation.installed_extras) or "none"
    missing = [name for name, packages in installation.extras.items() if packages]
    yield Diagnosis(
        subject="extras",
        health=Health.NOTE if missing else Health.OK,
        message=f"installed: {installed}" + (f"; not: {', '.join(missing)}" if missing else ""),
        cause="extra" if missing else "",
        facts={"extra": ",".join(missing)},
    )


def _check_folders(settings: Settings) -> Iterator[Diagnosis]:
    folders = {
        "working folder": settings.working_directory,
        "data folder": settings.data_directory,
        "cache folder": settings.cache_directory,
    }
    for name, path in folders.items():
        yield _check_folder(name, path)


def _check_folder(name: str, text: str) -> Diagnosis:
    path = Path(text)
    existing = next(one for one in (path, *path.parents) if is_present(str(one)))
    if not existing.is_dir():
        return Diagnosis(
            subject="folders",
            health=Health.PROBLEM,
            message=f"{name} {path}: {existing} is not a folder",
            cause="not_a_folder",
        )
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        is_own = name == "working folder"
        return Diagnosis(
            subject="folders",
            health=Health.WARNING if is_own else Health.PROBLEM,
            message=f"{name} {path}: {existing} is not readable and writable",
            cause="working_folder" if is_own else "folder_permissions",
            facts={"variable": f"SKILLHALL_{name.partition(' ')[0].upper()}_DIR"},
        )
    status = existing.stat()
    is_private = name == "data folder" and existing == path and sys.platform != "win32"
    if is_private and (status.st_uid != os.getuid() or status.st_mode & stat.S_IWOTH):
        return Diagnosis(
            subject="folders",
            health=Health.PROBLEM,
            message=f"{name} {path}: other users can change your approvals",
            cause="folder_not_private",
            facts={"path": str(path)},
        )
    note = "" if existing == path else " (created when needed)"
    return Diagnosis(subject="folders", health=Health.OK, message=f"{name} {path}{note}")


def _check_config(settings: Settings) -> Iterator[Diagnosis]:
    path = find_config(settings.working_directory)
    if path is None:
        message = "no skillhall.toml here; the defaults apply"
        yield Diagnosis(subject="config", health=Health.OK, message=message)
        return
    read_config(path)
    read_check_config(path)
    yield Diagnosis(subject="config", health=Health.OK, message=f"{path} is valid")


def _check_locks(settings: Settings) -> Iterator[Diagnosis]:
    for is_user, name in ((False, "project"), (True, "user")):
        project = Project.from_settings(settings, user=is_user)
        try:
            results = verify(project)
        except LockNotFound:
            message = f"no lock file of the {name}"
            yield Diagnosis(subject="locks", health=Health.OK, message=message)
            continue
        different = sum(not one.is_intact or one.is_signature_broken for one in results)
        missing = sum(not one.is_there for one in results)
        if different:
            message = f"{different} of {len(results)} installed folders of the {name} "
            message += f"differ from the lock file, {missing} of them missing"
            cause = "skills_missing" if missing == different else "skills_changed"
            yield Diagnosis(
                subject="locks",
                health=Health.WARNING,
                message=message,
                cause=f"{cause}.user" if is_user else cause,
            )
        else:
            message = f"all {len(results)} installed folders of the {name} are as in the lock file"
            yield Diagnosis(subject="locks", health=Health.OK, message=message)


def _check_server(settings: Settings) -> Iterator[Diagnosis]:
    server = settings.client.server
    is_default = server == ClientSettings().server
    timeouts = ServerTimeouts(_SHORT, _SHORT)
    try:
        connection = ServerConnection.from_url(
            server, settings.client.token, timeouts, settings.proxies
        )
        connection.get("/api/v1/skills", {"limit": "1"})
    except NotAuthenticated:
        yield Diagnosis(
            subject="server",
            health=Health.WARNING,
            message=f"{server} rejects the token, or needs one",
            cause="server_token",
        )
    except SourceUnavailable as error:
        yield Diagnosis(
            subject="server",
            health=Health.NOTE if is_default else Health.PROBLEM,
            message=f"no server responds at {server}" if is_default else str(error),
            cause="no_server" if is_default else "server",
        )
    else:
        message = f"{server} responds and accepts the token"
        yield Diagnosis(subject="server", health=Health.OK, message=message)


def _check_model(settings: Settings) -> Iterator[Diagnosis]:
    if not settings.model:
        yield Diagnosis(
            subject="model",
            health=Health.NOTE,
            message="no default model for chat and evals",
            cause="no_model",
        )
        return
    try:
        from skillhall._internal.agents.chat.models import (  # noqa: PLC0415 - an extra
            open_model,
        )
    except ModuleNotFoundError:
        yield Diagnosis(
            subject="model",
            health=Health.PROBLEM,
            message="the packages for models are not installed",
            cause="extra",
            facts={"extra": "pydantic-ai"},
        )
        return
    open_model(settings.model)
    message = f"{settings.model} has its package and its key; no request was sent"
    yield Diagnosis(subject="model", health=Health.OK, message=message)
