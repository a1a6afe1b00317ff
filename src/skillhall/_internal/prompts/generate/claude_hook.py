"""A hook in Claude Code's settings that generates skills whenever a session starts.

The settings are the person's own: only our command is added, changed or taken out, every other key
stays where it is, and the file as it was is kept before it changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from skillhall._internal.fs.handles import Kind, open_root, read_beneath
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.agent_folders import AGENTS, user_folder
from skillhall._internal.installer.targets import EVERY, agents_called
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.strict_json import NotJson, parse_json
from skillhall.errors import (
    AgentHasNoHook,
    ConfigInvalid,
    NotAFile,
    SkillFileNotFound,
    TooLarge,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillhall._internal.installer.project import Shelf

    Fields: TypeAlias = dict[str, object]

Change: TypeAlias = Literal["added", "updated", "unchanged", "removed"]

SETTINGS: Final = "settings.json"
SIGN: Final = "--as-hook"  # the option by which a command is known to be ours
EVENT: Final = "SessionStart"
MAX_SETTINGS: Final = 4 * 1024 * 1024  # bytes
_BOM: Final = "\ufeff"
_INDENT: Final = re.compile(r'\n([ \t]+)"')
_CLAUDE: Final = AGENTS["claude-code"]
_PRIVATE: Final = 0o600
_SHARED: Final = 0o644  # a project's settings are committed


class HookReport(NamedTuple):
    """What became of the hook, and where the settings as they were are kept."""

    path: str
    change: Change
    command: str = ""
    backup: str = ""


def hook_command(options: Sequence[str]) -> str:
    """The command line of the hook: fixed words, quoted for a shell."""
    return shlex.join(["skillhall", "generate", SIGN, *options])


def install_hook(
    shelf: Shelf, options: Sequence[str], agents: Sequence[str] = (_CLAUDE.id,)
) -> HookReport:
    """Have Claude Code generate with these options at every start; an older hook is updated.

    It must be one of the agents that were named, or of those used here if none was named.
    Raises: AgentHasNoHook, UnknownAgent, UnsafePath, OSError, and ConfigInvalid if the settings
    cannot be changed without loss.
    """
    _check_agents(shelf, agents or (EVERY,))
    command = hook_command(options)
    return _change(shelf, lambda settings: _put(settings, command))._replace(command=command)


def remove_hook(shelf: Shelf, agents: Sequence[str] = ()) -> HookReport:
    """Take the hook out again. Raises: as `install_hook`."""
    if agents and EVERY not in agents:
        _check_agents(shelf, agents)
    return _change(shelf, _take_out)


def _check_agents(shelf: Shelf, agents: Sequence[str]) -> None:
    named = [agent.id for agent in agents_called(shelf, agents)]
    if _CLAUDE.id not in {*named, *agents}:
        raise AgentHasNoHook(named)


def _change(shelf: Shelf, edit: Callable[[Fields], Change]) -> HookReport:
    folder = _settings_folder(shelf)
    path = os.path.join(folder, SETTINGS)
    if not os.path.lexists(path) and edit({}) == "unchanged":
        return HookReport(path, "unchanged")
    with _opened(shelf, folder) as opened, opened.locked():
        opened.recover()
        data = _read(opened, folder)
        settings = _parsed(data)
        change = edit(settings)
        if change == "unchanged":
            return HookReport(path, change)
        backup = "" if data is None else _keep(shelf.settings.data_directory, data)
        fresh = _PRIVATE if shelf.is_user else _SHARED
        mode = fresh if data is None else opened.mode(SETTINGS)
        opened.put(SETTINGS, _rendered(settings, data), mode)
        return HookReport(path, change, backup=backup)


def _settings_folder(shelf: Shelf) -> str:
    if not shelf.is_user:
        return shelf.path(os.path.dirname(_CLAUDE.project))
    skills = user_folder(_CLAUDE, shelf.root, shelf.settings.variables)
    return os.path.dirname(skills or shelf.root)


@contextmanager
def _opened(shelf: Shelf, folder: str) -> Iterator[WritableFolder]:
    with ExitStack() as stack:
        key = shelf.key(folder)
        if key is not None:
            yield stack.enter_context(shelf.opened(key))
        else:
            os.makedirs(folder, exist_ok=True)
            yield stack.enter_context(WritableFolder(folder))


def _read(opened: WritableFolder, folder: str) -> bytes | None:
    """The settings' bytes; `None` if there are none. Raises: ConfigInvalid, OSError."""
    kind = opened.kind(SETTINGS)
    if kind is None:
        return None
    if kind is not Kind.FILE:
        hint = "put the hook into the file that it leads to by hand"
        raise ConfigInvalid(SETTINGS, "it is a link, or no file; nothing was changed", hint)
    root = open_root(folder)
    try:
        return read_beneath(root, RelativePath.parse(SETTINGS), MAX_SETTINGS)
    except (SkillFileNotFound, UnsafePath, NotAFile, TooLarge):
        raise ConfigInvalid(SETTINGS, "it cannot be read; nothing was changed") from None
    finally:
        root.close()


def _parsed(data: bytes | None) -> Fields:
    """The settings. Raises: ConfigInvalid."""
    if data is None or not data.strip():
        return {}
    try:
        settings = parse_json(data, unique=True)
    except NotJson as error:
        hint = "mend it, or put the hook in by hand; comments are not JSON"
        raise ConfigInvalid(SETTINGS, f"{error}; nothing was changed", hint) from None
    if not isinstance(settings, dict):
        raise ConfigInvalid(SETTINGS, "it is not a JSON object; nothing was changed")
    return settings


def _put(settings: Fields, command: str) -> Change:
    """Set our command in the settings; where it stood before if it did."""
    groups = _groups(settings)
    for hook in (hook for group in groups for hook in _hooks(group) if _is_ours(hook)):
        if hook["command"] == command:
            return "unchanged"
        hook["command"] = command
        return "updated"
    groups.append({"hooks": [{"type": "command", "command": command}]})
    _set_groups(settings, groups)
    return "added"


def _take_out(settings: Fields) -> Change:
    """Take our command out, and whatever is empty without it."""
    groups = _groups(settings)
    kept = [rest for group in groups if (rest := _without_ours(group)) is not None]
    if kept == groups:
        return "unchanged"
    _set_groups(settings, kept)
    return "removed"


def _groups(settings: Fields) -> list[object]:
    """The groups of hooks for the start of a session. Raises: ConfigInvalid."""
    hooks = settings.get("hooks", {})
    groups = hooks.get(EVENT, []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise ConfigInvalid(SETTINGS, "its hooks are not written as usual; nothing was changed")
    return groups


def _set_groups(settings: Fields, groups: list[object]) -> None:
    hooks = settings.get("hooks")
    known = hooks if isinstance(hooks, dict) else {}
    rest = {name: value for name, value in known.items() if name != EVENT or groups}
    if groups:
        rest[EVENT] = groups
    settings["hooks"] = rest
    if not rest:
        del settings["hooks"]


def _hooks(group: object) -> list[Fields]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return [hook for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []


def _without_ours(group: object) -> object | None:
    """The group without our command; `None` if nothing else is in it."""
    if not isinstance(group, dict) or not any(map(_is_ours, _hooks(group))):
        return group
    left = [hook for hook in group["hooks"] if not (isinstance(hook, dict) and _is_ours(hook))]
    return {**group, "hooks": left} if left else None


def _is_ours(hook: Fields) -> bool:
    command = hook.get("command")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # a quotation without end
        return False
    return words[:3] == ["skillhall", "generate", SIGN]


def _rendered(settings: Fields, before: bytes | None) -> bytes:
    """The settings as text, in the manner of the text before."""
    text = "{\n}\n" if before is None else before.decode("utf-8")
    found = _INDENT.search(text)
    indent = found[1] if found else "  "
    is_one_line = bool(text.strip()) and "\n" not in text.strip()
    rendered = json.dumps(settings, ensure_ascii=False, indent=None if is_one_line else indent)
    end = "\n" if not text.strip() or text.endswith("\n") else ""
    whole = (_BOM if text.startswith(_BOM) else "") + rendered + end
    return (whole.replace("\n", "\r\n") if "\r\n" in text else whole).encode("utf-8")


def _keep(directory: str, data: bytes) -> str:
    """Put the settings aside; where they are. Raises: OSError."""
    folder = os.path.join(directory, "backups")
    os.makedirs(folder, 0o700, exist_ok=True)
    name = f"claude-settings-{hashlib.sha256(data).hexdigest()[:16]}.json"
    with WritableFolder(folder) as opened:
        opened.put(name, data, _PRIVATE)
    return os.path.join(folder, name)
