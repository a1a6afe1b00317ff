"""Workspaces for tests, with predictable ids and times, and skills to import."""

from collections.abc import Callable
from itertools import count

from skillhall._internal.catalog.trust.server_gate import ServerGate
from skillhall._internal.storage.ports import WorkspaceStore
from skillhall._internal.workspace.importer import (
    DEFAULT_OPTIONS,
    ImportOptions,
    ImportResult,
    OpenedSkills,
    SkillImporter,
)
from skillhall._internal.workspace.unit_of_work import UnitOfWork
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import SourceRejected


def make_id_sequence(prefix: str = "id") -> Callable[[], str]:
    """Return a function that returns consecutive ids."""
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers):06d}"


def ticking_clock() -> Callable[[], str]:
    """Return a clock that advances with every call."""
    numbers = count(1)
    return lambda: f"2026-01-01T00:00:{next(numbers) // 1000:02d}.000Z"


def reject_source(text: str, allow_tokens: bool) -> OpenedSkills:
    del allow_tokens
    raise SourceRejected("path", text, "tests open no sources")


def make_workspace(
    store: WorkspaceStore, prefix: str = "id", *, folder_scan: bool = False, folder: str = "/"
) -> Workspace:
    """Return a workspace with predictable ids and times."""
    unit_of_work = UnitOfWork(store, ticking_clock(), make_id_sequence(prefix))
    importer = SkillImporter(unit_of_work, ServerGate(), reject_source, folder_scan, folder)
    return Workspace(unit_of_work, importer, None, lambda: None)


def skill_md(name: str, body: str, description: str = "Does one thing.") -> bytes:
    """Return a SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n".encode()


def list_texts(workspace: Workspace, session: str) -> list[str]:
    """Return the contents of a session's blocks, in order."""
    return [block.content.text for block in workspace.blocks.list(session)]


def import_upload(
    importer: SkillImporter,
    session: str,
    data: bytes,
    name: str,
    options: ImportOptions = DEFAULT_OPTIONS,
) -> ImportResult:
    """Import an uploaded file into a session."""
    return importer.import_choices(session, importer.read_upload(data, name), options)
