"""Registries and tokens in npm's own configuration.

The environment and the user's `.npmrc` are read. A project's `.npmrc` is not: it may come from a
stranger, and could send tokens of the environment to another host.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_file
from skillhall._internal.net.connection import TOKEN_PATTERN
from skillhall.errors import ConfigInvalid, NotAFile, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.settings import Settings

REGISTRY_VARIABLE: Final = "NPM_CONFIG_REGISTRY"
_MAX_SIZE: Final = 1024 * 1024  # bytes
_VARIABLE = re.compile(r"(?<!\\)\$\{([A-Za-z0-9_]+)\??\}")


class NpmConfig(NamedTuple):
    """Values of the user's npm configuration by key."""

    values: Mapping[str, str]

    @classmethod
    def read(cls, settings: Settings) -> NpmConfig:
        """Read the configuration. Raises: ConfigInvalid."""
        path = settings.variables.get("NPM_CONFIG_USERCONFIG") or os.path.join(
            settings.home, ".npmrc"
        )
        values = _parse(_read_text(path), settings)
        if registry := settings.variables.get(REGISTRY_VARIABLE):
            values["registry"] = registry
        return cls(values)

    def find_registry(self, package: str) -> str:
        """Return the URL of the package's registry, without a final slash. Raises: ConfigInvalid.

        There is no default: which registry a machine may use is its owner's decision.
        """
        scope = package.partition("/")[0] if package.startswith("@") else ""
        registry = self.values.get(f"{scope}:registry") if scope else ""
        if url := registry or self.values.get("registry"):
            return url.rstrip("/")
        hint = "set it to the output of `npm config get registry`"
        raise ConfigInvalid(REGISTRY_VARIABLE, "no npm registry is configured", hint)

    def find_authorization(self, url: str) -> str:
        """Return the value of the Authorization header for a URL, or "". Raises: ConfigInvalid.

        As in npm, credentials belong to a host and a path, and the longest path wins.
        """
        location = url.partition(":")[2]  # //host/path
        while location.startswith("//") and len(location) > 2:  # noqa: PLR2004 - the slashes
            prefix = location if location.endswith("/") else f"{location}/"
            if value := self._find_at(prefix):
                return value
            location = location.rstrip("/").rpartition("/")[0]
        return ""

    def _find_at(self, prefix: str) -> str:
        token = self.values.get(f"{prefix}:_authToken", "")
        if token:
            return f"Bearer {_check(token)}"
        basic = self.values.get(f"{prefix}:_auth", "")
        name = self.values.get(f"{prefix}:username", "")
        password = self.values.get(f"{prefix}:_password", "")  # in base 64
        if not basic and name and password:
            try:
                pair = f"{name}:{b64decode(password, validate=True).decode()}"
            except ValueError:
                raise ConfigInvalid(".npmrc", "_password is not base 64") from None
            basic = b64encode(pair.encode()).decode()
        return f"Basic {_check(basic)}" if basic else ""


def _check(token: str) -> str:
    if not TOKEN_PATTERN.fullmatch(token):
        raise ConfigInvalid(".npmrc", "a token contains spaces or non-ASCII characters")
    return token


def _read_text(path: str) -> str:
    """Return the text of the file; "" if it is missing. Raises: ConfigInvalid."""
    try:
        with open_root(os.path.dirname(path) or ".") as folder:
            return read_file(folder, os.path.basename(path), _MAX_SIZE).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, NotAFile, TooLarge, UnicodeDecodeError):
        raise ConfigInvalid(".npmrc", "it cannot be read as a text file") from None


def _parse(text: str, settings: Settings) -> dict[str, str]:
    """Parse `key = value` lines; `${NAME}` is the value of a variable that holds a token."""
    values: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        key, is_found, value = line.partition("=")
        if is_found and not line.startswith(("#", ";", "[")):
            value = value.strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            for name in _VARIABLE.findall(value):
                secret = settings.credentials.get(name)
                shown = "" if secret is None else secret.reveal()
                value = value.replace(f"${{{name}?}}", shown).replace(f"${{{name}}}", shown)
            values[key.strip()] = value
    return values
