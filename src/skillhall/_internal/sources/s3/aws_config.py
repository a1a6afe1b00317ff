"""Credentials, region and endpoint in the environment or in `~/.aws`, as for the AWS tools.

Nothing else is asked: no metadata service of a cloud, no `credential_process`, no sign-in.
"""

from __future__ import annotations

import os
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_file
from skillhall._internal.settings import Secret
from skillhall.errors import ConfigInvalid, NotAFile, TooLarge

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings

DEFAULT_REGION: Final = "us-east-1"
_MAX_SIZE: Final = 1024 * 1024  # bytes


class AwsConfig(NamedTuple):
    """Where a store is, and how to sign requests; without a key, requests are anonymous."""

    region: str
    endpoint: str = ""  # "" is AWS
    key_id: str = ""
    secret_key: Secret | None = None
    session_token: Secret | None = None

    @classmethod
    def read(cls, settings: Settings, *, with_credentials: bool) -> AwsConfig:
        """Read the configuration. Raises: ConfigInvalid."""
        variables, secrets = settings.variables, settings.credentials
        profile = variables.get("AWS_PROFILE") or "default"
        section = profile if profile == "default" else f"profile {profile}"
        config = _read_section(settings, "AWS_CONFIG_FILE", "config", section)
        region = (
            variables.get("AWS_REGION")
            or variables.get("AWS_DEFAULT_REGION")
            or config.get("region")
        )
        endpoint = (
            variables.get("AWS_ENDPOINT_URL_S3")
            or variables.get("AWS_ENDPOINT_URL")
            or config.get("endpoint_url", "")
        )
        unsigned = cls(region or DEFAULT_REGION, endpoint.rstrip("/"))
        if not with_credentials:
            return unsigned
        key_id = secrets.get("AWS_ACCESS_KEY_ID")
        secret_key, token = secrets.get("AWS_SECRET_ACCESS_KEY"), secrets.get("AWS_SESSION_TOKEN")
        if key_id is None or secret_key is None:
            name = "AWS_SHARED_CREDENTIALS_FILE"
            found = config | _read_section(settings, name, "credentials", profile)
            values = [found.get(key) for key in ("aws_access_key_id", "aws_secret_access_key")]
            if not all(values):
                return unsigned
            key_id, secret_key = (Secret(value or "") for value in values)
            session = found.get("aws_session_token")
            token = Secret(session) if session else None
        return unsigned._replace(key_id=key_id.reveal(), secret_key=secret_key, session_token=token)


def _read_section(settings: Settings, variable: str, name: str, section: str) -> dict[str, str]:
    """Return a section of a file; empty if there is none. Raises: ConfigInvalid."""
    path = settings.variables.get(variable) or os.path.join(settings.home, ".aws", name)
    parser = ConfigParser(interpolation=None, strict=False, default_section="\0")
    try:
        with open_root(os.path.dirname(path) or ".") as folder:
            parser.read_string(read_file(folder, os.path.basename(path), _MAX_SIZE).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, NotAFile, TooLarge, UnicodeDecodeError, ConfigParserError):
        # The messages of the parser quote lines, which may be secrets.
        raise ConfigInvalid(f"~/.aws/{name}", "it cannot be read") from None
    return dict(parser[section]) if parser.has_section(section) else {}
