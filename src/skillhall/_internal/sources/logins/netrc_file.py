"""Logins in `~/.netrc`."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final

from skillhall._internal.fs.handles import open_root, read_file
from skillhall._internal.settings import Secret
from skillhall._internal.sources.logins.login import Login
from skillhall.errors import ConfigInvalid, NotAFile, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.settings import Settings

_MAX_SIZE: Final = 1024 * 1024  # bytes
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_MACRO = re.compile(r"^[ \t]*macdef\b.*?(?:\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL)
_FIELDS = ("login", "password", "account")


def find_netrc_login(host: str, settings: Settings) -> Login | None:
    """Return the login of the entry that names the host. Raises: ConfigInvalid.

    The entry `default` is ignored: it would send a password to every host that asks for one.
    """
    for machine, fields in _parse(_read_text(settings)):
        if machine == host.strip("[]") and fields.get("password"):
            return Login(fields.get("login", ""), Secret(fields["password"]))
    return None


def _read_text(settings: Settings) -> str:
    """Return the text of the file; "" if it is missing. Raises: ConfigInvalid."""
    name = "_netrc" if sys.platform == "win32" else ".netrc"
    path = settings.variables.get("NETRC") or os.path.join(settings.home, name)
    try:
        with open_root(os.path.dirname(path) or ".") as folder:
            return read_file(folder, os.path.basename(path), _MAX_SIZE).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, NotAFile, TooLarge, UnicodeDecodeError):
        raise ConfigInvalid(".netrc", "it cannot be read as a text file") from None


def _parse(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the machines in lowercase, with their fields; "" is the default entry."""
    words = _split_words(_MACRO.sub("\n", text))
    machine: str | None = None
    fields: dict[str, str] = {}
    for word in words:
        if word in {"machine", "default"}:
            if machine is not None:
                yield machine, fields
            machine, fields = next(words, "").lower() if word == "machine" else "", {}
        elif word in _FIELDS:
            fields[word] = next(words, "")
    if machine is not None:
        yield machine, fields


def _split_words(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            continue
        for quoted, plain in _WORD.findall(line):
            yield plain or re.sub(r"\\(.)", r"\1", quoted)
