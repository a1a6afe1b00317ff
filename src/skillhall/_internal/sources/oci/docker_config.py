"""Logins that `docker login` and similar programs stored."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from base64 import b64decode
from typing import TYPE_CHECKING, Final

from skillhall._internal.fs.handles import open_root, read_file
from skillhall._internal.settings import Secret, read_environment
from skillhall._internal.sources.logins.login import Login
from skillhall._internal.strict_json import InvalidJson, JsonObject
from skillhall.errors import ConfigInvalid, NotAFile, TooLarge

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings

_FILE: Final = "config.json"
_MAX_SIZE: Final = 1024 * 1024  # bytes
_HELPER_TIMEOUT: Final = 20  # seconds; some helpers ask a server
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Names under which programs store the login of Docker Hub.
_HUB: Final = "docker.io"
_HUB_KEY: Final = "https://index.docker.io/v1/"
_TOKEN_USER: Final = "<token>"  # noqa: S105 - of a login with an identity token


def find_docker_login(registry: str, settings: Settings) -> Login | None:
    """Return the login for a registry, named by its host and port. Raises: ConfigInvalid."""
    config = _read_config(settings)
    try:
        helper = dict(_get_map(config, "credHelpers")).get(registry)
        helper = helper or config.fields.get("credsStore")
        login = None
        if isinstance(helper, str) and helper:
            login = _ask_helper(helper, _HUB_KEY if registry == _HUB else registry)
        return login or _find_in_file(config, registry)
    except InvalidJson as error:
        raise ConfigInvalid(_FILE, str(error)) from None


def _read_config(settings: Settings) -> JsonObject:
    """Return the configuration; empty if there is none. Raises: ConfigInvalid."""
    folder = settings.variables.get("DOCKER_CONFIG") or os.path.join(settings.home, ".docker")
    try:
        with open_root(folder) as opened:
            return JsonObject.parse(read_file(opened, _FILE, _MAX_SIZE))
    except FileNotFoundError:
        return JsonObject({})
    except (OSError, NotAFile, TooLarge, InvalidJson):
        # The message of the parser could quote a secret.
        raise ConfigInvalid(f"~/.docker/{_FILE}", "it cannot be read") from None


def _get_map(config: JsonObject, name: str) -> dict[str, object]:
    return config.require(name, dict) if config.fields.get(name) is not None else {}


def _find_in_file(config: JsonObject, registry: str) -> Login | None:
    """Return the login in the file itself. Raises: ConfigInvalid, InvalidJson."""
    for key, value in _get_map(config, "auths").items():
        if not isinstance(value, dict) or _normalize(key) != registry:
            continue
        if value.get("identitytoken"):
            raise _build_token_error(registry)
        encoded = value.get("auth")
        if not isinstance(encoded, str) or not encoded:
            continue  # the login is in a helper
        try:
            user, colon, password = b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:
            colon = ""
        if not colon:
            raise ConfigInvalid(f"~/.docker/{_FILE}", f"the login for {registry} is malformed")
        return Login(user, Secret(password.rstrip("\0")))
    return None


def _normalize(key: str) -> str:
    """Return the host and port of a key, which may be a URL."""
    host = key.partition("://")[2] or key
    host = host.partition("/")[0].lower()
    return _HUB if host in {"index.docker.io", "registry-1.docker.io"} else host


def _ask_helper(name: str, server: str) -> Login | None:
    """Run the helper that the user configured; `None` if it has no login.

    Raises: ConfigInvalid.
    """
    program = shutil.which(f"docker-credential-{name}") if _HELPER.fullmatch(name) else None
    if program is None:
        problem = f"the credential helper {name!r} is not installed"
        raise ConfigInvalid(f"~/.docker/{_FILE}", problem)
    try:
        result = subprocess.run(  # noqa: S603 - the user configured it
            [program, "get"],
            input=server.encode("ascii"),
            env=read_environment(),
            capture_output=True,
            check=False,
            timeout=_HELPER_TIMEOUT,
        )
        document = JsonObject.parse(result.stdout)
        user, secret = document.require("Username", str), document.require("Secret", str)
    except (OSError, subprocess.TimeoutExpired, InvalidJson):
        return None
    if user == _TOKEN_USER:
        raise _build_token_error(server)
    return Login(user, Secret(secret)) if secret else None


def _build_token_error(registry: str) -> ConfigInvalid:
    problem = f"the login for {registry} is an identity token, which is not supported"
    hint = "log in with a password or an access token"
    return ConfigInvalid(f"~/.docker/{_FILE}", problem, hint)
