"""`skillhall sign`: signs skills, and creates keys for it."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import click

from skillhall._internal.cli.catalog_loader import read_settings
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import require_extra
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.terminal import format_count

_MAX_KEY_SIZE = 64 * 1024  # bytes


@json_command("sign", "skillhall sign skills/pdf-tools --key acme.key")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...")
@click.option("--key", metavar="FILE", help="Sign with this private key.")
@click.option(
    "--new-key",
    metavar="NAME",
    help="Create the private key NAME.key (keep it secret) and the public key NAME.pub.",
)
def command(*, folders: tuple[str, ...], key: str | None, new_key: str | None) -> CommandResult:
    """Sign the skill in each FOLDER.

    The signature is the file skill.oms.sig in the folder, in the format of OpenSSF Model Signing.
    It covers all files of the skill. Sign again after each change. The passphrase of an encrypted
    key is read from SKILLHALL_SIGNING_PASSPHRASE; if it is set, a new key is encrypted.
    """
    secret = read_settings().signing_passphrase
    passphrase = secret.reveal().encode() if secret else None
    if new_key is not None:
        if folders or key:
            raise click.UsageError("--new-key cannot be combined with --key or FOLDER")
        return _create_key(new_key, passphrase)
    if key is None or not folders:
        raise click.UsageError("name at least one FOLDER and a --key, or use --new-key")
    with _require_signing():
        from skillhall._internal.authoring.skill_signing import sign_skill
        from skillhall._internal.signing.keys import load_private_key
    private_key = load_private_key(_read_key(key), key, passphrase)
    signed = [sign_skill(folder, private_key) for folder in folders]
    rows = [{"name": one.name, "path": one.path, "files": one.files} for one in signed]
    return CommandResult(
        {"skills": rows},
        lines=[one.path for one in signed],
        messages=[f"signed {format_count(len(signed), 'skill')}"],
    )


def _require_signing() -> AbstractContextManager[None]:
    return require_extra("signing", "the package for signatures is")


def _create_key(name: str, passphrase: bytes | None) -> CommandResult:
    with _require_signing():
        from skillhall._internal.authoring.skill_signing import create_key_files
    folder, base = os.path.split(name)
    if not base:
        raise click.UsageError("--new-key needs a file name")
    created = create_key_files(folder or ".", base, passphrase)
    protection = "encrypted" if passphrase else "not encrypted"
    return CommandResult(
        {"privateKey": created.private, "publicKey": created.public},
        lines=[created.private, created.public],
        messages=[f"created a private key ({protection}; keep it secret) and its public key"],
    )


def _read_key(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(_MAX_KEY_SIZE)
