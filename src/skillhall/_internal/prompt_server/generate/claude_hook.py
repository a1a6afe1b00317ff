"""Hook in Claude Code's settings that generates skills when a session starts.

The settings belong to the user. Only our command is added, changed or removed, the other keys keep
their order, and the file is backed up before each change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import EntryKind, open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.agent_folders import (
    AGENTS,
    ALL_AGENTS,
    find_agents,
    resolve_user_folder,
)
from skillhall._internal.prompt_server.generate.writer import GenerateTarget
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.strict_json import InvalidJson, parse_json
from skillhall.errors import (
    AgentHasNoHook,
    ConfigInvalid,
    NotAFile,
    SkillFileNotFound,
    TooLarge,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.installer.project import Project

    HookSettings: TypeAlias = dict[str, object]

HookChange: TypeAlias = Literal["added", "updated", "unchanged", "removed"]

SETTINGS_FILE: Final = "settings.json"
HOOK_OPTION: Final = "--as-hook"  # identifies our command
HOOK_EVENT: Final = "SessionStart"
MAX_SETTINGS_SIZE: Final = 4 * 1024 * 1024  # bytes
_BOM: Final = "\ufeff"
_INDENT: Final = re.compile(r'\n([ \t]+)"')
_CLAUDE_CODE: Final = AGENTS["claude-code"]
_PRIVATE_MODE: Final = 0o600
_SHARED_MODE: Final = 0o644  # a project's settings are committed


class HookReport(NamedTuple):
    """Result of changing the hook, with the path of the settings' backup, if any."""

    path: str
    change: HookChange
    command: str = ""
    backup: str = ""


def build_hook_command(options: Sequence[str]) -> str:
    """Return the command line of the hook, quoted for a shell."""
    return shlex.join(["skillhall", "generate", HOOK_OPTION, *options])


def install_hook(
    project: Project, options: Sequence[str], agents: Sequence[str] = (_CLAUDE_CODE.id,)
) -> HookReport:
    """Install the hook that generates skills when a session starts, or update it.

    Claude Code must be among `agents`, or, if that is empty, among the agents used here.
    Raises: AgentHasNoHook, UnknownAgent, UnsafePath, OSError, and ConfigInvalid if the settings
    cannot be changed without loss.
    """
    _check_agents(project, agents or (ALL_AGENTS,))
    command = build_hook_command(options)
    report = _edit_settings(project, lambda settings: _set_hook(settings, command))
    return report._replace(command=command)


def remove_hook(project: Project, agents: Sequence[str] = ()) -> HookReport:
    """Remove the hook. Raises: as `install_hook`."""
    if agents and ALL_AGENTS not in agents:
        _check_agents(project, agents)
    return _edit_settings(project, _remove_hook)


def _check_agents(project: Project, agents: Sequence[str]) -> None:
    named = [agent.id for agent in find_agents(project, agents)]
    if _CLAUDE_CODE.id not in {*named, *agents}:
        raise AgentHasNoHook(named)


def _edit_settings(project: Project, edit: Callable[[HookSettings], HookChange]) -> HookReport:
    if project.is_user:
        skills = resolve_user_folder(_CLAUDE_CODE, project.root, project.settings.variables)
        folder = os.path.dirname(skills or project.root)
    else:
        folder = project.path(os.path.dirname(_CLAUDE_CODE.project_folder))
    path, key = os.path.join(folder, SETTINGS_FILE), project.key(folder)
    # Do not create a folder only to find that there is no hook to remove.
    if not os.path.lexists(path) and edit({}) == "unchanged":
        return HookReport(path, "unchanged")
    target = GenerateTarget(folder) if key is None else GenerateTarget(folder, project, key)
    with target.open(make=True) as opened, opened.lock():
        opened.recover()
        data = _read_settings(opened, folder)
        settings = _parse_settings(data)
        change = edit(settings)
        if change == "unchanged":
            return HookReport(path, change)
        backup = "" if data is None else _back_up(project.settings.data_directory, data)
        new_mode = _PRIVATE_MODE if project.is_user else _SHARED_MODE
        mode = new_mode if data is None else opened.mode(SETTINGS_FILE)
        opened.write_file(SETTINGS_FILE, _render_settings(settings, data), mode)
        return HookReport(path, change, backup=backup)


def _read_settings(opened: WritableFolder, folder: str) -> bytes | None:
    """Return the settings' bytes; None if there is no file.

    Raises: ConfigInvalid, OSError.
    """
    kind = opened.entry_kind(SETTINGS_FILE)
    if kind is None:
        return None
    if kind is not EntryKind.FILE:
        problem = "it is a link or not a regular file; nothing was changed"
        hint = "add the hook by hand to the file that it points to"
        raise ConfigInvalid(SETTINGS_FILE, problem, hint)
    with open_root(folder) as root:
        try:
            return read_below(root, RelativePath.parse(SETTINGS_FILE), MAX_SETTINGS_SIZE)
        except (SkillFileNotFound, UnsafePath, NotAFile, TooLarge):
            raise ConfigInvalid(SETTINGS_FILE, "it cannot be read; nothing was changed") from None


def _parse_settings(data: bytes | None) -> HookSettings:
    if data is None or not data.strip():
        return {}
    try:
        settings = parse_json(data, unique_keys=True)
    except InvalidJson as error:
        hint = "correct it, or add the hook by hand; JSON does not allow comments"
        raise ConfigInvalid(SETTINGS_FILE, f"{error}; nothing was changed", hint) from None
    if not isinstance(settings, dict):
        raise ConfigInvalid(SETTINGS_FILE, "it is not a JSON object; nothing was changed")
    return settings


def _set_hook(settings: HookSettings, command: str) -> HookChange:
    """Add our command, or update it in place."""
    groups = _get_groups(settings)
    for hook in (hook for group in groups for hook in _list_own_hooks(group)):
        if hook["command"] == command:
            return "unchanged"
        hook["command"] = command
        return "updated"
    groups.append({"hooks": [{"type": "command", "command": command}]})
    _set_groups(settings, groups)
    return "added"


def _remove_hook(settings: HookSettings) -> HookChange:
    """Remove our command, and the groups that are empty without it."""
    remaining: list[object] = []
    groups = _get_groups(settings)
    for group in groups:
        own = _list_own_hooks(group)
        if not isinstance(group, dict) or not own:
            remaining.append(group)
        elif rest := [hook for hook in group["hooks"] if hook not in own]:
            remaining.append({**group, "hooks": rest})
    if remaining == groups:
        return "unchanged"
    _set_groups(settings, remaining)
    return "removed"


def _get_groups(settings: HookSettings) -> list[object]:
    """Return the hook groups for the start of a session. Raises: ConfigInvalid."""
    hooks = settings.get("hooks", {})
    groups = hooks.get(HOOK_EVENT, []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        problem = "its hooks have an unknown structure; nothing was changed"
        raise ConfigInvalid(SETTINGS_FILE, problem)
    return groups


def _set_groups(settings: HookSettings, groups: list[object]) -> None:
    hooks = settings.get("hooks")
    present = hooks if isinstance(hooks, dict) else {}
    rest = {name: value for name, value in present.items() if name != HOOK_EVENT or groups}
    if groups:
        rest[HOOK_EVENT] = groups
    settings["hooks"] = rest
    if not rest:
        del settings["hooks"]


def _list_own_hooks(group: object) -> list[HookSettings]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(hooks, list):
        return []
    return [hook for hook in hooks if isinstance(hook, dict) and _is_own_hook(hook)]


def _is_own_hook(hook: HookSettings) -> bool:
    command = hook.get("command")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # unbalanced quotes
        return False
    return words[:3] == ["skillhall", "generate", HOOK_OPTION]


def _render_settings(settings: HookSettings, before: bytes | None) -> bytes:
    """Render the settings in the style of the previous text: indent, newlines, BOM."""
    text = "{\n}\n" if before is None else before.decode("utf-8")
    match = _INDENT.search(text)
    indent = match[1] if match else "  "
    is_one_line = bool(text.strip()) and "\n" not in text.strip()
    rendered = json.dumps(settings, ensure_ascii=False, indent=None if is_one_line else indent)
    end = "\n" if not text.strip() or text.endswith("\n") else ""
    result = (_BOM if text.startswith(_BOM) else "") + rendered + end
    return (result.replace("\n", "\r\n") if "\r\n" in text else result).encode("utf-8")


def _back_up(directory: str, data: bytes) -> str:
    """Back up the settings; return the path. Raises: OSError."""
    folder = os.path.join(directory, "backups")
    os.makedirs(folder, 0o700, exist_ok=True)
    name = f"claude-settings-{hashlib.sha256(data).hexdigest()[:16]}.json"
    with WritableFolder(folder) as opened, opened.lock():
        opened.write_file(name, data, _PRIVATE_MODE)
    return os.path.join(folder, name)
