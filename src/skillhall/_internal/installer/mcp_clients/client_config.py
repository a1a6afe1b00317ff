"""Changes of the configuration files of MCP clients: planned, shown, then written.

A change inserts or removes the text of one entry; the rest of the file stays as it is. Every
result is parsed and compared with the expected one before it is written.
"""

from __future__ import annotations

import os
import tomllib
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.mcp_clients.json_members import (
    TextChange,
    insert_member,
    parse_commented_json,
    remove_member,
)
from skillhall._internal.installer.mcp_clients.mcp_client_table import EntryForm
from skillhall._internal.installer.mcp_clients.toml_tables import append_table, remove_table
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.strict_json import InvalidJson, JsonObject, render_json
from skillhall.errors import ConfigInvalid, Conflict, NotAFile, SkillFileNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillhall._internal.installer.mcp_clients.mcp_client_table import McpClient
    from skillhall._internal.settings import Settings

RECORD_FILE: Final = "mcp-clients.json"  # in the data folder: the inserted texts, by file and name
MAX_CONFIG_BYTES: Final = 16 * 1024 * 1024  # Claude Code stores its projects in the same file
_RECORD_VERSION: Final = 1
_RECORD_FIELDS: Final[Mapping[str, type]] = {"text": str, "created": bool}
_PROGRAM: Final = "skillhall"


class ConfigFile(NamedTuple):
    """Configuration file of a client, below a folder that exists."""

    client: McpClient
    folder: str  # the project, or the nearest existing folder
    path: RelativePath  # in the folder
    is_user: bool

    @property
    def location(self) -> str:
        """The absolute path."""
        return os.path.join(self.folder, *self.path.parts)

    def build_root(self, root: str) -> str:
        """Return a folder as the client's command needs it; in the project, it stays relative."""
        path = os.path.abspath(os.path.expanduser(root))
        below = os.path.relpath(path, self.folder).replace(os.sep, "/")
        is_inside = not self.is_user and below.partition("/")[0] != ".."
        return f"{self.client.workspace}{below}" if is_inside else path


class ConfigEdit(NamedTuple):
    """Planned change of a file."""

    file: ConfigFile
    name: str
    before: bytes | None  # `None` if there is no file
    after: bytes | None
    removed: Sequence[TextChange] = ()
    added: TextChange | None = None

    @property
    def action(self) -> str:
        """What the change does: "add", "update", "remove" or "none"."""
        if self.before == self.after:
            return "none"
        return ("update" if self.removed else "add") if self.added else "remove"

    def iter_diff(self) -> Iterator[str]:
        """Yield the removed and added lines. Other lines may contain secrets."""
        text = (self.before or b"").decode("utf-8")
        for mark, changes in (("-", self.removed), ("+", [self.added] if self.added else [])):
            for change in changes:
                if change.text.strip(" \t\r\n,"):
                    yield f"@@ line {text.count(chr(10), 0, change.start) + 1} @@"
                    yield from (mark + line for line in change.text.strip("\r\n").splitlines())


def find_config_file(
    settings: Settings, client: McpClient, platform: str, *, is_user: bool
) -> ConfigFile:
    """Return the client's file, which need not exist. Raises: ConfigInvalid."""
    project, home = settings.working_directory, settings.home
    location = client.locate(
        is_user=is_user,
        home=home,
        project=project,
        variables=settings.variables,
        platform=platform,
    )
    folder = home if is_user else project
    if is_user and not location.startswith(os.path.join(home, "")):
        folder = os.path.dirname(location)  # from a variable
    parts = os.path.relpath(location, folder).split(os.sep)
    return ConfigFile(client, folder, RelativePath.parse("/".join(parts)), is_user)


def plan_install(
    settings: Settings, file: ConfigFile, name: str, command: Sequence[str]
) -> ConfigEdit:
    """Plan an entry that starts `command`; an entry of ours with the name is replaced.

    Raises: Conflict if the name belongs to another program, ConfigInvalid.
    """
    entry = file.client.build_entry(command)
    current = _read_file(file)
    text = _decode(file, current)
    existing = _find_entries(file, text).get(name)
    if existing == entry:
        return ConfigEdit(file, name, current, current)
    if existing is not None and not _is_ours(existing):
        raise Conflict(f"{name!r} in {file.location}")
    removed: Sequence[TextChange] = ()
    if existing is not None:
        removed = _plan_removal(settings, file, name, text)
    base = _cut(text, removed)
    expected = _parse(file, base)
    expected.setdefault(file.client.key, {})[name] = entry
    try:
        change = _plan_insertion(file, base, name, entry)
        after = base[: change.start] + change.text + base[change.start :]
        problem = "" if _parse(file, after) == expected else "the entry cannot be inserted as text"
    except InvalidJson as error:
        problem = str(error)
    if problem:
        snippet = _plan_insertion(file, "", name, entry).text.strip()
        raise ConfigInvalid(file.location, problem, f"add this yourself: {snippet}")
    return ConfigEdit(file, name, current, after.encode("utf-8"), removed, change)


def plan_uninstall(settings: Settings, file: ConfigFile, name: str) -> ConfigEdit:
    """Plan the removal of our entry. A file that only we have written is removed.

    Raises: Conflict if the name belongs to another program, ConfigInvalid.
    """
    current = _read_file(file)
    text = _decode(file, current)
    existing = _find_entries(file, text).get(name)
    if existing is None:
        return ConfigEdit(file, name, current, current)
    if not _is_ours(existing):
        raise Conflict(f"{name!r} in {file.location}")
    removed = _plan_removal(settings, file, name, text)
    after = _cut(text, removed)
    was_created = _read_record(settings).get(file.location, {}).get(name, {}).get("created")
    is_empty = bool(was_created) and not after.strip()
    return ConfigEdit(file, name, current, None if is_empty else after.encode("utf-8"), removed)


def apply_edit(settings: Settings, edit: ConfigEdit) -> None:
    """Write the change, and record what a later removal needs.

    Raises: ConfigInvalid if the file has changed since it was planned, OSError.
    """
    if edit.action == "none":
        return
    os.makedirs(settings.data_directory, exist_ok=True)
    with WritableFolder(settings.data_directory) as data_folder, data_folder.lock():
        if _read_file(edit.file) != edit.before:
            raise ConfigInvalid(
                edit.file.location, "it has changed in the meantime", "run the command again"
            )
        record = _read_record(settings)
        entries = record.setdefault(edit.file.location, {})
        was_created = entries.pop(edit.name, {}).get("created", edit.before is None)
        if edit.added:
            entries[edit.name] = {"text": edit.added.text, "created": was_created}
        if not entries:
            del record[edit.file.location]
        _write_file(edit)
        fields = {"version": _RECORD_VERSION, "files": record}
        data_folder.write_file(RECORD_FILE, render_json(fields, sort_keys=True) + b"\n", 0o600)


def _plan_insertion(
    file: ConfigFile, text: str, name: str, entry: Mapping[str, object]
) -> TextChange:
    key = file.client.key
    if file.client.form is EntryForm.TOML:
        return append_table(text, key, name, entry)
    if text.strip(" \t\r\n\ufeff"):
        return insert_member(text, key, name, entry)
    created = render_json({key: {name: entry}}).decode("utf-8")
    return TextChange(len(text), f"{created}\n")


def _plan_removal(
    settings: Settings, file: ConfigFile, name: str, text: str
) -> Sequence[TextChange]:
    """Return the pieces that contain the entry: the recorded text, else what the file shows."""
    expected = _parse(file, text)
    del expected[file.client.key][name]
    without_key = {key: value for key, value in expected.items() if key != file.client.key}
    inserted = _read_record(settings).get(file.location, {}).get(name, {}).get("text", "")
    if inserted and text.count(inserted) == 1:
        pieces = [TextChange(text.index(inserted), inserted)]
        rest = _cut(text, pieces)
        with suppress(InvalidJson):
            found = _parse(file, rest)
            if found == expected or (found == without_key and not expected[file.client.key]):
                return pieces
    key = file.client.key
    remove = remove_table if file.client.form is EntryForm.TOML else remove_member
    with suppress(InvalidJson):
        pieces = [*remove(text, key, name)]
        found = _parse(file, _cut(text, pieces))
        if found == expected or (found == without_key and not expected[key]):
            return pieces
    problem = f"the entry {name!r} cannot be removed without other changes"
    raise ConfigInvalid(file.location, problem, f"remove {key}.{name} yourself")


def _cut(text: str, pieces: Sequence[TextChange]) -> str:
    for piece in sorted(pieces, reverse=True):
        text = text[: piece.start] + text[piece.start + len(piece.text) :]
    return text


def _parse(file: ConfigFile, text: str) -> dict[str, Any]:
    """Return the content of the file; {} if it is empty. Raises: InvalidJson."""
    if not text.strip(" \t\r\n\ufeff"):
        return {}
    if file.client.form is not EntryForm.TOML:
        return parse_commented_json(text)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise InvalidJson("the file is not TOML") from None


def _find_entries(file: ConfigFile, text: str) -> Mapping[str, object]:
    try:
        servers = _parse(file, text).get(file.client.key, {})
    except InvalidJson as error:
        raise ConfigInvalid(file.location, str(error), "correct the file first") from None
    if not isinstance(servers, dict):
        raise ConfigInvalid(file.location, f"{file.client.key!r} is not a table or object")
    return servers


def _is_ours(entry: object) -> bool:
    """Whether an entry starts `skillhall mcp`."""
    fields = entry if isinstance(entry, dict) else {}
    command, arguments = fields.get("command"), fields.get("args", [])
    words = command if isinstance(command, list) else [command]
    words = [str(word) for word in [*words, *(arguments if isinstance(arguments, list) else [])]]
    for index, word in enumerate(words[:-1]):
        name = word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
        if name == _PROGRAM and words[index + 1] == "mcp":
            return True
    return False


def _decode(file: ConfigFile, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigInvalid(file.location, "it is not UTF-8") from None


def _read_file(file: ConfigFile) -> bytes | None:
    """Return the content of the file, `None` if it does not exist. Raises: ConfigInvalid."""
    try:
        with open_root(file.folder) as root:
            return read_below(root, file.path, MAX_CONFIG_BYTES)
    except (FileNotFoundError, SkillFileNotFound):
        return None
    except (NotAFile, UnsafePath):
        hint = "replace the link with a file, or add the entry yourself"
        raise ConfigInvalid(file.location, "it is not a regular file", hint) from None


def _write_file(edit: ConfigEdit) -> None:
    *folders, name = edit.file.path.parts
    os.makedirs(edit.file.folder, exist_ok=True)
    with ExitStack() as stack:
        folder = stack.enter_context(WritableFolder(edit.file.folder))
        for part in folders:
            folder = stack.enter_context(folder.open_folder(part, create=True))
        if edit.after is None:
            folder.remove_atomically(name)
        elif edit.before is None:
            folder.write_file(name, edit.after, 0o600 if edit.file.is_user else 0o644)
        else:
            folder.write_file(name, edit.after, folder.mode(name))


def _read_record(settings: Settings) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the recorded entries by file and name. Raises: ConfigInvalid."""
    try:
        with open_root(settings.data_directory) as root:
            data = read_below(root, RelativePath.parse(RECORD_FILE), MAX_CONFIG_BYTES)
    except (FileNotFoundError, SkillFileNotFound):
        return {}
    try:
        return {
            path: {
                name: {
                    "text": entry.require("text", str),
                    "created": entry.require("created", bool),
                }
                for name, entry in JsonObject({path: file.fields}).require_map(path)
            }
            for path, file in JsonObject.parse(data).require_map("files")
        }
    except InvalidJson as error:
        raise ConfigInvalid(RECORD_FILE, str(error), f"remove {RECORD_FILE}") from None
